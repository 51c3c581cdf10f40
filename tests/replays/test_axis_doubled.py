"""A kernel's manifest gains values on one axis, until its wheel is too large."""

from random import Random

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import BundleError
from kernelpack.wheel import wheel as module
from kernelpack.wheel.wheel import wheels
from tests.fakes.bundles import entry, write_bundle
from tests.fakes.variants import variant

CODE_BYTES, LIMIT_BYTES = 30_000, 200_000
TILES, DOUBLED = (1, 2), (1, 2, 3, 4)


def code(seed):
    """Machine code that does not compress."""
    return Random(seed).randbytes(CODE_BYTES)


@pytest.fixture(autouse=True)
def limit(monkeypatch):
    """A limit that is as far from a test's bundle as 95 MB are from a real one."""
    monkeypatch.setattr(module, "LIMIT_BYTES", LIMIT_BYTES)


@pytest.fixture
def bundle(tmp_path):
    """A bundle of two types by so many tiles."""

    def made(tiles):
        variants = [variant(dtype=d, tile=t) for d in ("bf16", "fp16") for t in tiles]
        entries = [entry(v, image=code(seed)) for seed, v in enumerate(variants)]
        return open_bundle(write_bundle(tmp_path / "x.kpk", entries))

    return made


def test_before_it_was_doubled(bundle):
    """The wheel was made."""
    assert len(list(wheels(bundle(TILES)))) == 1


def test_the_axis_is_named(bundle):
    """The error names the axis that costs most, its values, and what they take."""
    with pytest.raises(BundleError, match=r"TILE of lora_shrink_qkv: 0\.2 MB for 4 values; DTYPE"):
        list(wheels(bundle(DOUBLED)))
