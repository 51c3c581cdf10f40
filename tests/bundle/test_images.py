"""Images under a shared dictionary: each comes back, and a damaged dictionary is an error."""

from random import Random

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import BundleError
from tests.bundle.forge import contents_of, reseal
from tests.fakes.bundles import entry, write_bundle
from tests.fakes.variants import variant

BASE = Random(1).randbytes(3000)
MADE = [
    entry(variant(tile=tile), image=BASE + Random(tile).randbytes(tile)) for tile in range(1, 25)
]


@pytest.fixture
def path(tmp_path):
    """A bundle of enough images for a dictionary."""
    return write_bundle(tmp_path / "x.kpk", MADE)


def test_there_is_a_dictionary(path):
    """What the images share is stored once."""
    assert contents_of(path).dictionary
    assert path.stat().st_size < sum(len(made.image) for made in MADE)


def test_images_come_back(path):
    """Every image is read with the dictionary."""
    bundle = open_bundle(path)
    assert [made.image for made in MADE] == [bundle.image(made.variant.id) for made in MADE]


@pytest.mark.parametrize("edit", [lambda d: d[:100], lambda d: d[::-1], lambda _: b""])
def test_another_dictionary(path, edit):
    """Frames that were written with another dictionary are refused."""
    reseal(path, dictionary=edit(contents_of(path).dictionary))
    bundle = open_bundle(path)
    with pytest.raises(BundleError, match=r"cannot be read|is not what its digest says"):
        bundle.image(MADE[0].variant.id)


def test_an_absurd_dictionary(path):
    """A dictionary above the format's limit is not read."""
    reseal(path, dictionary=bytes((16 << 20) + 1))
    bundle = open_bundle(path)
    with pytest.raises(BundleError, match="a dictionary of 16777217 bytes"):
        bundle.image(MADE[0].variant.id)
