"""LoRA shrink's launches: which variant, how many slices of K, how many clusters.

Those of docs/performance.md were measured; what is chosen for them must not change unseen.
"""

from functools import cache
from pathlib import Path

import pytest

from kernelpack.formats.dtype import DType
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.spec.arch import Arch
from kernelpack.spec.launch import Shape, shape_of
from kernelpack.spec.select import select
from kernelpack.spec.variant import Variant

MANIFEST = Path(__file__).parents[2] / "manifests" / "lora_shrink_qkv.yaml"
HOPPER, BLACKWELL = Arch("sm_90a"), Arch("sm_100a")
H200 = {2: 66, 4: 30, 8: 15, 16: 7}
"""Clusters of CTAs that each fill a multiprocessor, as an H200 holds them."""


@cache
def variants(arch: Arch) -> tuple[Variant, ...]:
    return expand(load(MANIFEST), [arch])


def launched(arch, m, k, n, adapters, fits=None) -> tuple[Variant, Shape]:
    """What is chosen for bf16 rows and results, each adapter a group, and how it is laid out."""
    sizes = {"m": m, "k": k, "n": n, "g": adapters, "n_active": adapters, "choose_for": 0}
    sizes |= {"a_dtype": int(DType.BF16), "out_dtype": int(DType.BF16)}
    sizes |= {"sm_count": arch.multiprocessors}
    chosen = select(variants(arch), sizes, arch.capabilities[0])
    return chosen, shape_of(chosen, sizes, fits)


@pytest.mark.parametrize(
    ("shape", "tile", "grid", "cluster"),
    [
        ((8192, 7168, 16, 8), (64, 48, 128), (1, 132), (1, 2)),
        ((8192, 7168, 64, 8), (128, 192, 64), (2, 66), (2, 1)),
        ((4096, 4096, 32, 32), (64, 96, 128), (2, 66), (2, 1)),
        ((2048, 4096, 16, 4), (64, 48, 128), (2, 36), (2, 1)),
        ((128, 7168, 16, 32), (8, 24, 256), (2, 96), (2, 1)),
        ((128, 7168, 64, 32), (8, 48, 256), (1, 132), (1, 1)),
        ((16, 7168, 16, 4), (8, 24, 256), (7, 12), (7, 1)),
    ],
    ids=lambda value: "x".join(map(str, value)),
)
def test_what_was_measured_on_hopper(shape, tile, grid, cluster):
    """Each shape of docs/performance.md gets the tile, slices and clusters it was timed with."""
    chosen, found = launched(HOPPER, *shape)
    axes = dict(chosen.axes)
    assert tile == tuple(axes[name] for name in ("TILE_TOKENS", "TILE_FLAT", "BLOCK_K"))
    assert (tuple(found.grid), tuple(found.cluster)) == ((*grid, 1), (*cluster, 1))


@pytest.mark.parametrize(
    ("shape", "tile"),
    [
        ((64, 4096, 32, 16), (8, 48, 256)),  # (8, 24, 256) began late: 1.21 times as long
        ((64, 4096, 32, 8), (8, 24, 256)),  # in four slices it does not
        ((432, 3072, 8, 16), (8, 24, 256)),  # one tile has all columns: 0.88 times (8, 48, 256)
        ((224, 3072, 24, 8), (64, 48, 128)),  # groups of 28 rows: tiles of 8 took 1.11 times
        ((8192, 4096, 32, 16), (64, 96, 128)),  # (128, 192, 64) costs the same, took 1.28 times
    ],
    ids=lambda value: "x".join(map(str, value)),
)
def test_what_was_faster_on_hopper(shape, tile):
    """Of tiles that load about as much, the one whose time on an H200 was shorter."""
    axes = dict(launched(HOPPER, *shape)[0].axes)
    assert tile == tuple(axes[name] for name in ("TILE_TOKENS", "TILE_FLAT", "BLOCK_K"))


@pytest.mark.parametrize("ctas", H200)
def test_an_h200_that_is_pretended(ctas):
    """Where there is no driver, Hopper's clusters are those that an H200 was measured to hold."""
    _, found = launched(HOPPER, 8192, 7168, 64, 8)
    assert H200[ctas] == found.fitting(ctas)


def of_gpcs(multiprocessors, gpc):
    """Whole GPCs, each CTA on a multiprocessor of its own."""
    return lambda cta, ctas: multiprocessors // gpc * (gpc // ctas)


@pytest.mark.parametrize(
    ("adapters", "gpc", "slices", "clusters"),
    [
        (18, 148, 8, 18),  # as if a GPU were one GPC
        (18, 20, 6, 21),  # only 14 clusters of eight run at once
        (18, 18, 6, 24),  # 16 of eight
        (14, 20, 8, 14),
        (6, 20, 8, 12),
        (18, 4, 4, 36),
        (18, 1, 1, 36),
    ],
)
def test_slices_that_run_at_once(adapters, gpc, slices, clusters):
    """Decoding takes the most slices of K with which every tile's cluster runs at once."""
    found = launched(BLACKWELL, 8 * adapters, 7168, 16, adapters, of_gpcs(148, gpc))[1]
    assert (found.cluster.count, found.grid.count // slices) == (slices, clusters)


@pytest.mark.parametrize("adapters", [15, 16, 30, 31, 33, 66])
def test_no_more_clusters_than_run_at_once(adapters):
    """Groups of unequal length make more tiles; they are a cluster's next, not a second wave."""
    found = launched(HOPPER, 8 * adapters, 7168, 16, adapters)[1]
    assert found.grid.count // found.cluster.count <= found.fitting(found.cluster.count)
