"""Shapes of grids, and what L2 misses, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.predict import grid
from kernelpack.predict.device import find
from kernelpack.predict.recording import Traffic
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


def traffic(
    lines: range, *, size: int = MEGABYTE, read: int = 0, scattered: int = 0, written: int = 0
) -> Traffic:
    read = read or 128 * len(lines)
    return Traffic(
        name="x", size=size, read=read, written=written, scattered=scattered,
        lines=np.array(lines, np.int64), written_lines=len(lines) if written else 0,
    )  # fmt: skip


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


def test_what_each_cluster_reads_first_is_cold_to_all_that_begin() -> None:
    """Ten clusters read the same 100 lines twice: a twentieth is missing, half of it is cold."""
    pair = [traffic(range(100), size=12_800, read=25_600)] * 2
    found = [(part, 5.0) for part in pair]
    assert grid.missing(found, H200) == pytest.approx(1 / 20)
    assert grid.cold(found) == 0.5


def test_what_is_read_once_misses() -> None:
    assert grid.missing([(traffic(range(100)), 1.0)], H200) == 1


def test_what_a_cluster_reads_again_hits() -> None:
    """The same 100 lines four times: one in four is from memory."""
    assert grid.missing([(traffic(range(100), read=4 * 12_800), 1.0)], H200) == 0.25


def test_what_neighbours_share_is_touched_once() -> None:
    """Each pair reads the same lines, a quarter of the grid further another 100: 500 at most."""
    starts = (0, 0, 200, 200, 400, 400)
    parts = [(traffic(range(n, n + 100), size=1 << 20), 20.0) for n in starts]
    assert grid.touched(parts) == (400 + 100 + 200) * 128


def test_of_clusters_that_share_by_twos_half_is_touched() -> None:
    parts = [(traffic(range(n, n + 100), size=1 << 30), 50.0) for n in (0, 0, 100_000, 100_000)]
    assert grid.touched(parts) == 4 * 50 * 100 * 128 / 2


def test_no_more_is_touched_than_there_is() -> None:
    apart = [(traffic(range(100), size=20_000), 50.0), (traffic(range(100, 200)), 50.0)]
    assert grid.touched(apart) == 20_000


def test_rows_of_a_list_come_again_from_memory_where_l2_is_too_small() -> None:
    """Of 100 MB half fits L2: of the rows that come again, half miss."""
    size = 100 * MEGABYTE
    part = traffic(range(100), size=size, read=4 * 12_800, scattered=4 * 12_800)
    assert grid.missing([(part, 1.0)], H200) == pytest.approx(0.25 + 0.75 * 0.5)


def test_nothing_read_misses_nothing() -> None:
    assert grid.missing([(traffic(range(0)), 1.0)], H200) == 0
