"""Several bundles as one."""

import pytest

from kernelpack.bundle.joined import Joined, join
from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import BundleError
from tests.fakes.bundles import write_bundle
from tests.fakes.variants import variant

HOPPER, BLACKWELL = variant(arch="sm_90a"), variant(arch="sm_100a")


@pytest.fixture
def bundles(tmp_path):
    paths = tmp_path / "hopper.kpk", tmp_path / "blackwell.kpk"
    made = zip(paths, (HOPPER, BLACKWELL), strict=True)
    return [open_bundle(write_bundle(path, [variant])) for path, variant in made]


def test_one_is_itself(bundles):
    """A bundle alone needs no other to be joined with."""
    assert join(bundles[:1]) is bundles[0]


def test_variants(bundles):
    """Those of all are there, by kernel and id."""
    assert Joined(bundles).variants() == (BLACKWELL, HOPPER)


@pytest.mark.parametrize(("kernel", "count"), [("lora_shrink_qkv", 2), ("other", 0)])
def test_variants_of_a_kernel(bundles, kernel, count):
    """Those of one kernel can be asked for."""
    assert len(Joined(bundles).variants(kernel)) == count


def test_holding(bundles):
    """An entry is in one of them."""
    assert Joined(bundles).holding(BLACKWELL.id) is bundles[1]


def test_holding_none(bundles):
    """An entry that none holds is refused; both files are named."""
    joined = Joined(bundles)
    with pytest.raises(BundleError, match="no entry `x`") as caught:
        joined.holding("x")
    assert caught.value.where == f"{joined.paths[0]}, {joined.paths[1]}"


def test_twice(bundles, tmp_path):
    """An entry that two bundles hold is refused: nobody knows which one is meant."""
    other = open_bundle(write_bundle(tmp_path / "other.kpk", [HOPPER]))
    with pytest.raises(BundleError, match=r"hopper\.kpk too") as caught:
        Joined([*bundles, other]).variants()
    assert caught.value.where == str(other.path)
