"""The same sources give the same bytes wherever they lie, and both toolchains take them."""

from shutil import copytree

import pytest

from kernelpack.bundle.reader import open_bundle, twin_of
from tests.machine_code.build import ROOT, build_in

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

SAMPLE = (
    "out=bf16 and dtype=bf16 and "
    "(sm_100a and prefill and tile_flat=48 or sm_90a and decode and tile_flat=48)"
)
"""A few variants of each target."""


def build_copy(folder):
    """A bundle built in a copy of the sources, with a cache of its own."""
    for name in ("manifests", "templates"):
        copytree(ROOT / name, folder / name)
    manifests = tuple(sorted((folder / "manifests").glob("*.yaml")))
    templates = folder / "templates"
    own = folder / "cache"
    return build_in(folder, manifests=manifests, templates=templates, cache_dir=own, keep=SAMPLE)


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """The same sources built in two places."""
    root = tmp_path_factory.mktemp("reproducible")
    return build_copy(root / "here"), build_copy(root / "some" / "where" / "else")


def test_same_bundle(twice):
    """The bundles are the same to the last bit."""
    here, there = twice
    assert here.read_bytes() == there.read_bytes()


def test_same_ptx(twice):
    """So are their twins."""
    here, there = map(twin_of, twice)
    assert here.read_bytes() == there.read_bytes()


@pytest.mark.parametrize("toolchain", ["cuda-13.4", "cuda-12.9"])
def test_each_toolchain_builds(tmp_path, toolchain):
    """Both releases compile the kernels, without a spill."""
    bundle = open_bundle(build_in(tmp_path, toolchain=toolchain, keep=SAMPLE))
    assert bundle.provenance.toolchain == toolchain
    assert {record.target for record in bundle.records()} == {"sm_100a", "sm_90a"}
    assert {record.spill_bytes for record in bundle.records()} == {0}
