"""tcgen05.ld and tcgen05.st: which cell of tensor memory each register of each thread is.

Sources: PTX ISA 9.1, 9.7.16.2.3.1 (fragments), 9.7.16.8; the fragments' pictures as CuTe's copy
traits state them.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from kernelpack.emulator import rules
from kernelpack.emulator.models.fault import require
from kernelpack.emulator.models.tensor_memory import COLUMNS, Cells, split

Words = npt.NDArray[np.uint32]
Index = npt.NDArray[np.intp]

_REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""Registers of one repetition."""


def registers(
    shape: str, repeats: int, address: int, *, pack: bool = False, half_split: int = 0
) -> Cells:
    """Cells of a warp's registers: (registers, cells a register, 32 threads).

    Args:
        shape: `32x32b`, `16x64b`, `16x128b`, `16x256b` or `16x32bx2`.
        repeats: the N of `.xN`.
        address: taddr, its lane already the warp's own (see `tensor_memory.quadrant`).
        pack: `.pack::16b` or `.unpack::16b`: two cells a register, 16 bits of each.
        half_split: columns between the halves of `16x32bx2`.
    """
    lane, column = split(address)
    lanes, columns = _map(shape, repeats, half_split)
    words = 2 if pack else 1
    cells = Cells(
        np.broadcast_to(lane + lanes[:, None], (len(lanes), words, 32)),
        column + words * columns[:, None] + np.arange(words)[:, None],
    )
    require(
        lane % 32 + int(lanes.max()) < 32 and lane % 16 == 0,
        rules.TENSOR_MEMORY_LANE_OF_REGISTERS,
        f"tcgen05.ld/st.{shape} at lane {lane}: its lanes must lie in one quadrant",
    )
    last = int(cells.columns.max())
    require(
        last < COLUMNS,
        rules.TENSOR_MEMORY_BOUNDS_OF_REGISTERS,
        f"tcgen05.ld/st.{shape}.x{repeats} reaches column {last} of tensor memory, beyond 511",
    )
    return cells


def to_registers(words: Words) -> Words:
    """Registers of a load from its cells' values: (n, cells, 32) -> (n, 32)."""
    if words.shape[1] == 1:
        return words[:, 0]
    return (words[:, 0] & np.uint32(0xFFFF)) | (words[:, 1] << np.uint32(16))


def from_registers(values: Words, *, pack: bool = False) -> Words:
    """Cells' values of a store from its registers: (n, 32) -> (n, cells, 32)."""
    if not pack:
        return values[:, None]
    return np.stack([values & np.uint32(0xFFFF), values >> np.uint32(16)], axis=1)


@lru_cache(maxsize=256)
def _map(shape: str, repeats: int, half_split: int) -> tuple[Index, Index]:
    """Lanes and columns from the address: (registers, 32) each."""
    count = _REGISTERS[shape]
    require(
        repeats & (repeats - 1) == 0 and count * repeats <= 128,
        rules.TENSOR_MEMORY_REPEATS,
        f"tcgen05.ld/st.{shape}.x{repeats} does not exist",
    )
    thread = np.arange(32)[None]
    repetition, part = np.divmod(np.arange(count * repeats)[:, None], count)
    high, low = part // (count // 2 or 1), part % (count // 2 or 1)
    none = np.zeros_like(part)
    lanes, columns = {
        "32x32b": (thread + none, repetition),
        "16x64b": (thread // 4 + 8 * (thread % 2) + none, thread // 2 % 2 + 2 * repetition),
        "16x128b": (thread // 4 + 8 * high, thread % 4 + 4 * repetition),
        "16x256b": (thread // 4 + 8 * high, 2 * (thread % 4) + low + 8 * repetition),
        "16x32bx2": (thread % 16 + none, repetition + thread // 16 * half_split),
    }[shape]
    return lanes, columns + np.zeros_like(thread)
