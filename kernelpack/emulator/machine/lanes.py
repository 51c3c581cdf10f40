"""The lane vectors of a warp: dtypes, masks, constants.

A register is an array of 32 lanes, of the unsigned integer type of its width (predicates: bool;
128 bits: shape (32, 2) of u64). Arrays in registers are never written in place, so that a register
can be copied by reference.

Masks are asked `np.count_nonzero(mask)`, which on 32 lanes is five times faster than `mask.any()`.
"""

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

WIDTH = 32
Lanes: TypeAlias = NDArray[Any]
Mask: TypeAlias = NDArray[np.bool_]

LANE_IDS = np.arange(WIDTH)
EVERY: Mask = np.ones(WIDTH, bool)
EVERY.setflags(write=False)

ALONE: tuple[Mask, ...] = tuple(lane == LANE_IDS for lane in LANE_IDS)
"""By lane: it alone."""

UNSIGNED: dict[int, Any] = {
    1: np.bool_,
    8: np.uint8,
    16: np.uint16,
    32: np.uint32,
    64: np.uint64,
    128: np.uint64,
}
"""Bits → the type in which a register of that width is kept."""


def constant(value: int, bits: int) -> Lanes:
    """The same bits in every lane; read-only."""
    if bits == 128:
        lanes = np.full((WIDTH, 2), value & (2**64 - 1), np.uint64)
        lanes[:, 1] = value >> 64
    else:
        lanes = np.full(WIDTH, value, UNSIGNED[bits])
    lanes.setflags(write=False)
    return lanes


def poison(bits: int) -> Lanes:
    """The value of a register before it is written: all ones, a NaN in every float format."""
    return constant(0 if bits == 1 else (1 << bits) - 1, bits)


def to_bits(mask: Mask) -> int:
    """A mask as the 32-bit integer PTX uses: lane i is bit i."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


@lru_cache(maxsize=1024)
def from_bits(bits: int) -> Mask:
    """The lanes of a 32-bit member mask; read-only."""
    shifts = np.arange(WIDTH, dtype=np.uint64)
    mask = np.asarray((np.uint64(bits) >> shifts) & np.uint64(1) == 1)
    mask.setflags(write=False)
    return mask


def spelled(mask: Mask) -> str:
    """A mask in words: `lane 3`, `lanes 0 to 7 and 9`."""
    lanes = np.flatnonzero(mask)
    runs = np.split(lanes, np.flatnonzero(np.diff(lanes) > 1) + 1)
    words = [f"{run[0]}" if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs if len(run)]
    listed = " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
    return f"lane{'s' if len(lanes) != 1 else ''} {listed or 'none'}"
