"""What L2 misses of small grids, worked out by hand."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.predict import traffic
from kernelpack.predict.device import find
from kernelpack.predict.recording import Traffic

H200 = replace(find("h200"), l2_mb=50)
MEGABYTE = 1_000_000


def part(
    lines: range, *, size: int = MEGABYTE, read: int = 0, scattered: int = 0, written: int = 0
) -> Traffic:
    read = read or 128 * len(lines)
    return Traffic(
        name="x", size=size, read=read, written=written, scattered=scattered,
        lines=np.array(lines, np.int64), written_lines=len(lines) if written else 0,
    )  # fmt: skip


def test_what_each_cluster_reads_first_is_cold_to_all_that_begin() -> None:
    """Ten clusters read the same 100 lines twice: a twentieth is missing, half of it is cold."""
    pair = [part(range(100), size=12_800, read=25_600)] * 2
    found = [(part, 5.0) for part in pair]
    assert traffic.missing(found, H200) == pytest.approx(1 / 20)
    assert traffic.cold(found) == 0.5


@pytest.mark.parametrize(("clusters", "fits"), [(24.0, True), (26.0, False)])
def test_what_l2_has_room_for(clusters: float, fits: bool) -> None:
    """A cluster reads a megabyte of its own and writes another; L2 keeps 50."""
    read = [(part(range(at, at + 7813), size=1 << 30), clusters / 2) for at in (0, 1 << 22)]
    written = [(part(range(0), read=1, written=1_000_064), clusters)]
    stored = [(replace(one, written_lines=7813), weight) for one, weight in written]
    assert traffic.fits([read, stored], H200) is fits


def test_what_is_read_once_misses() -> None:
    assert traffic.missing([(part(range(100)), 1.0)], H200) == 1


def test_what_a_cluster_reads_again_hits() -> None:
    """The same 100 lines four times: one in four is from memory."""
    assert traffic.missing([(part(range(100), read=4 * 12_800), 1.0)], H200) == 0.25


def test_what_neighbours_share_is_touched_once() -> None:
    """Each pair reads the same lines, a quarter of the grid further another 100: 500 at most."""
    starts = (0, 0, 200, 200, 400, 400)
    parts = [(part(range(n, n + 100), size=1 << 20), 20.0) for n in starts]
    assert traffic.touched(parts) == (400 + 100 + 200) * 128


def test_of_clusters_that_share_by_twos_half_is_touched() -> None:
    parts = [(part(range(n, n + 100), size=1 << 30), 50.0) for n in (0, 0, 100_000, 100_000)]
    assert traffic.touched(parts) == 4 * 50 * 100 * 128 / 2


def test_no_more_is_touched_than_there_is() -> None:
    apart = [(part(range(100), size=20_000), 50.0), (part(range(100, 200)), 50.0)]
    assert traffic.touched(apart) == 20_000


def test_rows_of_a_list_come_again_from_memory_where_l2_is_too_small() -> None:
    """Of 100 MB half fits L2: of the rows that come again, half miss."""
    size = 100 * MEGABYTE
    one = part(range(100), size=size, read=4 * 12_800, scattered=4 * 12_800)
    assert traffic.missing([(one, 1.0)], H200) == pytest.approx(0.25 + 0.75 * 0.5)


def test_nothing_read_misses_nothing() -> None:
    assert traffic.missing([(part(range(0)), 1.0)], H200) == 0
