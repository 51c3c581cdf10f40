"""What a grid reads and writes of each allocation, by its recorded clusters; what L2 misses."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kernelpack.predict.device import Device
from kernelpack.predict.recording import Recording, Traffic

MEGABYTE = 1_000_000
LINE_BYTES = 128

Weighted = tuple[Traffic, float]
"""Traffic of a recorded cluster, and for how many clusters it stands."""


def allocations(recordings: Sequence[Recording], clusters: int) -> list[list[Weighted]]:
    """By allocation, the traffic of each recording."""
    counts = [stands(one, recordings, clusters) for one in recordings]
    return [
        [(one.traffic[number], weight) for one, weight in zip(recordings, counts, strict=True)]
        for number in range(len(recordings[0].traffic))
    ]


def stands(recording: Recording, recordings: Sequence[Recording], clusters: int) -> float:
    """For how many clusters a recorded one stands: the last two of a grid for themselves."""
    last = [one for one in recordings if one.number >= clusters - 2]
    others = len(recordings) - len(last)
    if not others:
        return clusters / len(recordings)
    return 1.0 if recording in last else (clusters - len(last)) / others


def missing(parts: Sequence[Weighted], device: Device) -> float:
    """Of an allocation, the part of the bytes read that comes from memory, not from L2.

    Each byte that is touched comes once. Rows that a list names come again where the allocation is
    larger than L2, as often as chance has it.
    """
    read = sum(part.read * weight for part, weight in parts)
    if not read:
        return 0.0
    size = parts[0][0].size
    once = min(touched(parts) / read, 1.0)
    again = max(1 - device.l2_mb * MEGABYTE / size, 0.0)
    scattered = sum(part.scattered * weight for part, weight in parts) / read
    return min(once + (1 - once) * again * scattered, 1.0)


def fits(allocations: Sequence[Sequence[Weighted]], device: Device) -> bool:
    """Whether L2 has room for all that a grid reads, beside all that it writes."""
    written = sum(part.written_lines * weight for parts in allocations for part, weight in parts)
    return sum(map(touched, allocations)) + written * LINE_BYTES <= device.l2_mb * MEGABYTE


def cold(parts: Sequence[Weighted]) -> float:
    """Of the bytes that a cluster reads of an allocation, those that it has not read before."""
    read = sum(part.read for part, _ in parts)
    return min(sum(len(part.lines) for part, _ in parts) * LINE_BYTES / read, 1.0) if read else 0.0


def touched(parts: Sequence[Weighted]) -> float:
    """Bytes of an allocation that the grid reads, each counted once.

    Clusters in a row may read the same. A pair of neighbours reads the same as often as rows are
    longer than two; and no more can be read than lies between the first line and the last.
    """
    pairs = [(a.lines, b.lines) for (a, _), (b, _) in zip(parts[::2], parts[1::2], strict=False)]
    both = sum(len(a) + len(b) for a, b in pairs)
    shared = 2 * (both - sum(len(np.union1d(a, b)) for a, b in pairs)) / both if both else 0.0
    read = sum(len(part.lines) * weight for part, weight in parts)
    seen = [part.lines for part, _ in parts if len(part.lines)]
    span = _span(seen) if seen else 0
    return min(parts[0][0].size, min(read * max(1 - shared, 0.5), span) * LINE_BYTES)


def _span(seen: Sequence[NDArray[np.int64]]) -> int:
    """Lines from the first to the last, and as many as lie between clusters that were recorded."""
    firsts = sorted({int(lines[0]) for lines in seen})
    last = max(int(lines[-1]) for lines in seen)
    between = max((b - a for a, b in pairwise(firsts)), default=0)
    return last - firsts[0] + 1 + between


def stored(parts: Sequence[Weighted]) -> float:
    """Of the bytes written to an allocation, the part that goes on to memory: each byte once."""
    written = sum(part.written for part, _ in parts)
    lines = sum(part.written_lines for part, _ in parts) * LINE_BYTES
    return min(lines / written, 1.0) if written else 0.0
