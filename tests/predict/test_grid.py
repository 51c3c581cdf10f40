"""Shapes of grids, and what L2 misses, worked out by hand."""

from dataclasses import replace

import pytest

from kernelpack.predict import grid
from kernelpack.predict.device import find
from kernelpack.spec.launch import Dim3, Plan
from kernelpack.toolchain.issued import MachineCode

H200 = replace(find("h200"), l2_mb=50)
MEGABYTE = 1_000_000


def shape(
    ctas: int, *, cluster: int = 1, shared_bytes: int = 0, registers: int = 32, columns: int = 0
) -> grid.Shape:
    plan = Plan(
        entry="k", grid=Dim3(ctas, 1, 1), block=Dim3(128, 1, 1), cluster=Dim3(cluster, 1, 1),
        shared_bytes=shared_bytes, arguments=(),
    )  # fmt: skip
    code = MachineCode(counts={}, registers=registers, shared_bytes=0)
    return grid.shape(plan, code, H200, columns)


def test_large_ctas_have_a_multiprocessor_each() -> None:
    """132 places; 200 CTAs are 1.52 waves, and the busiest multiprocessor runs two."""
    found = shape(200, shared_bytes=200_000)
    assert (found.resident, found.places, found.each, found.busy) == (1, 132, 2, 132)
    assert found.waves == pytest.approx(200 / 132)


def test_small_ctas_share_a_multiprocessor() -> None:
    """Two of 100 KB."""
    found = shape(264, shared_bytes=100_000)
    assert (found.resident, found.places, found.waves) == (2, 264, 1)


@pytest.mark.parametrize(("columns", "resident"), [(0, 2), (256, 2), (512, 1)])
def test_tensor_memory_is_shared_by_neighbours(columns: int, resident: int) -> None:
    """Two CTAs that need all 512 columns do not run beside each other, whatever else fits."""
    found = shape(264, shared_bytes=100_000, columns=columns)
    assert (found.resident, found.places) == (resident, 132 * resident)


def test_few_ctas_keep_few_multiprocessors_busy() -> None:
    assert shape(10, shared_bytes=200_000).busy == 10


def test_a_cluster_takes_several_multiprocessors() -> None:
    """Ten pairs keep twenty of them busy."""
    found = shape(20, cluster=2, shared_bytes=200_000)
    assert (found.clusters, found.busy) == (10, 20)


def test_clusters_that_are_alike_count_by_the_busiest_place() -> None:
    """200 of 132 places are two in turn; 13,200 are a hundred and a half."""
    few, many = shape(200, shared_bytes=200_000), shape(13_200, shared_bytes=200_000)
    assert grid.turns({0: 100, 199: 100}, few, 2, 100) == 1
    assert grid.turns({0: 100, 13_199: 100}, many, 6, 100) == pytest.approx(100.5 / 6)


def test_clusters_that_differ_begin_where_one_ended() -> None:
    """From 3 to 1 over 264 of 132 places: each place has a long one and a short one, of 4."""
    found = grid.turns({0: 300, 263: 100}, shape(264, shared_bytes=200_000), 1, 200)
    assert found == pytest.approx(2, rel=0.01)


def test_the_longest_at_the_end_makes_it_late() -> None:
    """133 of 132 places, and the last is four times as long as the first."""
    found = grid.turns({0: 100, 131: 100, 132: 400}, shape(133, shared_bytes=200_000), 1, 100)
    assert found == pytest.approx(5)
