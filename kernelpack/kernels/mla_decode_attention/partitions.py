"""Into how many splits a token's keys go: so many that all multiprocessors have work, and no more.

A model of time, in units of what a CTA needs for UNIT keys (about 6.5 us of 656-byte rows on an
H200): waves of CTAs, each with its share of units and a start, and what goes to memory and back
for splits to be joined.
"""

from kernelpack.kernels.mla_decode_attention.positions import UNIT
from kernelpack.kernels.mla_decode_attention.problem import MOST_PARTITIONS

HEADS_OF_A_TILE = 64
START = 1.3
"""Of a CTA: lengths, entries and the first rows are waited for, one after the other."""

JOIN = 0.2
"""Of a second launch."""

BYTES_OF_A_UNIT = 24_000_000
"""Of partial outputs, written and read, in the time of a unit."""


def partitions(tokens: int, heads: int, keys: int, sm_count: int) -> int:
    """The number of splits that takes least time; of equal ones the smallest.

    Args:
        tokens: query tokens of a call.
        heads: of a token.
        keys: of a token, at most.
        sm_count: multiprocessors of the device.

    """
    units = -(-keys // UNIT)
    known = range(1, max(1, min(units, MOST_PARTITIONS)) + 1)
    return min(known, key=lambda splits: _time(tokens, heads, units, splits, sm_count))


def _time(tokens: int, heads: int, units: int, splits: int, sm_count: int) -> float:
    ctas = tokens * -(-heads // HEADS_OF_A_TILE) * splits
    waves, each = -(-ctas // sm_count), -(-units // splits)
    partial_bytes = 2 * 4 * 512 * tokens * heads * splits
    joined = JOIN + partial_bytes / BYTES_OF_A_UNIT if splits > 1 else 0.0
    return waves * (each + START) + joined
