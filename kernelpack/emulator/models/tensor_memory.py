"""Tensor memory: its cells, its allocation, and where tcgen05.mma keeps its matrices in it.

128 lanes x 512 columns of 32-bit cells a CTA; an address is `lane << 16 | column`. A layout maps
rows and columns of a matrix to cells; layouts are named A to G as in the manual. Layout C (sparse)
is not modelled.
Sources: PTX ISA 9.1, 9.7.16.1 (addresses), 9.7.16.7 (allocation), 9.7.16.8.1 (warps),
9.7.16.10.5 (layouts), 9.7.16.10.7 (scale factors); the layouts' pictures as CuTe states them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpack.emulator import rules
from kernelpack.emulator.models.fault import require

LANES = 128
COLUMNS = 512

Words = npt.NDArray[np.uint32]
Index = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells in the order of a matrix: `lanes` and `columns` broadcast to its shape."""

    lanes: Index
    columns: Index

    def of(self, memory: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The cells' values in a (128, 512) array, in the shape of the matrix."""
        values: npt.NDArray[Any] = memory[self.lanes, self.columns]
        return values

    def flat(self) -> Index:
        """Cell numbers, `lane * 512 + column`, one a matrix element."""
        numbers: Index = (self.lanes * COLUMNS + self.columns).ravel()
        return numbers


def split(address: int) -> tuple[int, int]:
    """Lane and column of an address."""
    return address >> 16 & 0xFFFF, address & 0xFFFF


def join(lane: int, column: int) -> int:
    """Address of a cell."""
    return lane << 16 | column


def check_columns(count: int) -> None:
    """Fault unless `tcgen05.alloc` accepts this many columns: a power of two, 32 to 512."""
    require(
        32 <= count <= COLUMNS and count & (count - 1) == 0,
        rules.TENSOR_MEMORY_SIZE,
        f"allocation of {count} columns of tensor memory; a power of two from 32 to 512 is needed",
    )


def first_fit(busy: npt.NDArray[np.bool_], count: int) -> int | None:
    """The lowest column that `count` free ones begin at, or None; `busy` has a flag a column."""
    return next(_fits(busy, count), None)


def last_fit(busy: npt.NDArray[np.bool_], count: int) -> int | None:
    """The highest such column, or None."""
    *_, last = (None, *_fits(busy, count))
    return last


def _fits(busy: npt.NDArray[np.bool_], count: int) -> Iterator[int]:
    columns = range(0, COLUMNS - count + 1, 32)
    return (column for column in columns if not busy[column : column + count].any())


def quadrant(lane: int, warp: int) -> int:
    """The lane that a warp's access starts at.

    A warp reaches the 32 lanes of its number modulo 4. Production kernels give lane 0 in every
    warp and the hardware supplies the quadrant; any other lane outside it is a fault. Others number
    the lanes of a pair from 0 to 255: the second CTA's are its own 128.
    """
    own = 32 * (warp % 4)
    if LANES <= lane < 2 * LANES:
        lane -= LANES
    if lane < 32:
        return own + lane
    require(
        own <= lane < own + 32,
        rules.TENSOR_MEMORY_QUADRANT,
        f"warp {warp} accesses tensor memory lane {lane}; it reaches lanes {own} to {own + 31}",
    )
    return lane


def accumulator(*, m: int, n: int, cta_group: int, ws: bool, address: int) -> Cells:
    """Cells of D: (rows of this CTA, n), one element a cell, 16-bit ones in its low half.

    Args:
        m: rows of the whole MMA.
        n: columns of the whole MMA.
        cta_group: 1 or 2; in a pair each CTA holds its half of the rows.
        ws: weight-stationary form.
        address: D operand.
    """
    lane, column = split(address)
    rows = m // cta_group
    fold = _fold(m, cta_group, ws=ws)
    _check_lane(lane, 16 if _is_half(rows, fold) else 0)
    _check_columns_in_range(column, n // fold)
    return _shifted(_accumulator(rows, n, fold), lane, column)


@lru_cache(maxsize=256)
def _accumulator(rows: int, n: int, fold: int) -> Cells:
    row, group = _rows(rows, fold)[:, None], np.arange(n) // (n // fold)
    lanes = row + rows * group if fold > 1 else row
    return Cells(lanes, np.arange(n)[None] % (n // fold))


def a_operand(*, m: int, cta_group: int, ws: bool, words: int, address: int) -> Cells:
    """Cells of A: (groups, rows of this CTA, words).

    In the folded layouts (B, E, G) each group of lanes multiplies the A it holds itself with its
    own part of N. A plain product needs the same A in all of them; different ones are several
    products at once, over one B each (FlashMLA's sparse prefill of 64 heads lives on this).
    """
    lane, column = split(address)
    rows = m // cta_group
    fold = _fold(m, cta_group, ws=ws)
    _check_lane(lane, 16 if _is_half(rows, fold) else 0)
    _check_columns_in_range(column, words)
    groups = np.arange(fold)[:, None, None] * rows
    lanes = lane + groups + _rows(rows, fold)[None, :, None]
    return Cells(lanes, column + np.arange(words)[None, None])


def scales(*, rows: int, address: int, halves: bool = False) -> Cells:
    """Cells of the scale factors: (copies, rows); row r in lane r % 32, column r / 32.

    Every quadrant of lanes needs a copy. With `halves` (B of a pair with M = 128) quadrants 0-1
    hold the first half of the rows and 2-3 the second.
    """
    _, column = split(address)
    per_half = rows // 2 if halves else rows
    row = np.arange(rows)
    first = row // per_half * 2 if halves else np.zeros(rows, np.intp)
    copies = np.arange(2 if halves else 4)[:, None]
    row = row % per_half
    _check_columns_in_range(column, -(-per_half // 32))
    return Cells(32 * (first + copies) + row % 32, column + row // 32)


def scale_codes(words: Words, byte: int, blocks: int) -> npt.NDArray[np.uint8]:
    """Scale factors in their cells' words: (rows,) -> (rows, blocks); `byte` is the id."""
    shifts = np.uint32(8) * np.arange(byte, byte + blocks, dtype=np.uint32)
    return (words[:, None] >> shifts).astype(np.uint8)


def _fold(m: int, cta_group: int, *, ws: bool) -> int:
    """How many groups of columns are on top of each other: 4 in layout G, 2 in E and B."""
    allowed = (32, 64, 128) if ws else (64 * cta_group, 128 * cta_group)
    form = f"cta_group::{cta_group}{'.ws' if ws else ''}"
    require(m in allowed, rules.INSTRUCTION_M_LAYOUT, f"M = {m} of {form} has no layout")
    if ws:
        return 128 // m
    return 2 if cta_group == 2 and m == 128 else 1


def _is_half(rows: int, fold: int) -> bool:
    """Layout F: 64 rows use 16 lanes of each quadrant."""
    return rows == 64 and fold == 1


def _rows(rows: int, fold: int) -> Index:
    row = np.arange(rows)
    return row // 16 * 32 + row % 16 if _is_half(rows, fold) else row


def _shifted(cells: Cells, lane: int, column: int) -> Cells:
    return Cells(cells.lanes + lane, cells.columns + column)


def _check_lane(lane: int, other: int) -> None:
    require(
        lane in (0, other),
        rules.TENSOR_MEMORY_LANE,
        f"a matrix at lane {lane} of tensor memory; its layout starts at lane 0"
        + (f" or {other}" if other else ""),
    )


def _check_columns_in_range(column: int, count: int) -> None:
    require(
        column + count <= COLUMNS,
        rules.TENSOR_MEMORY_BOUNDS,
        f"columns {column} to {column + count - 1} of tensor memory; the last one is 511",
    )
