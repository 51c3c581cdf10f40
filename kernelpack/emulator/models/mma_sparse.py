"""mma.sp: A has two elements of every four, and metadata say which (PTX ISA 9.7.14.6).

Which thread holds whose metadata the manual shows in pictures alone; here it is as CUTLASS orders
them (`reorder_meta`, `host_reorder.h`). A is made dense, and multiplied as mma.sync does; fp8 in
one go, unlike there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.models import mma, mma_sync
from kernelpack.emulator.models.fragments import Codes, a_fragment, b_fragment, d_fragment
from kernelpack.emulator.models.mma_sync import MmaSyncShape, Registers
from kernelpack.emulator.models.operands import from_codes, to_codes
from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType

_FP8 = (DType.E4M3, DType.E5M2)
_BYTES = (DType.I8, DType.U8)
# (type of A, type of B) -> the k of its shapes, which are m16n8; and the types of C and D.
_FORMS: dict[tuple[DType, DType], tuple[set[int], set[DType]]] = (
    {(DType.FP16, DType.FP16): ({16, 32}, {DType.FP16, DType.FP32})}
    | {(DType.BF16, DType.BF16): ({16, 32}, {DType.FP32})}
    | {(DType.TF32, DType.TF32): ({8, 16}, {DType.FP32})}
    | {(a, b): ({64}, {DType.FP32}) for a in _FP8 for b in _FP8}
    | {(a, b): ({32, 64}, {DType.I32}) for a in _BYTES for b in _BYTES}
)
_MEMBERS = 4
"""Threads that hold the metadata of two rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Metadata:
    """Registers of 32 threads, and the selector that says whose counts; `ordered` if it must be."""

    words: NDArray[np.uint32]
    selector: int
    ordered: bool


def check(shape: MmaSyncShape) -> None:
    """Refuse a form that is not modelled, by name."""
    shapes, outputs = _FORMS.get((shape.a, shape.b), (set(), set()))
    if shape.m != 16 or shape.k not in shapes or shape.d not in outputs or shape.c is not shape.d:
        types = ".".join(t.label for t in (shape.d, shape.a, shape.b, shape.c))
        raise UnsupportedError(f"mma.sp.sync.m{shape.m}n8k{shape.k} of {types} is not modelled")


def selectors(shape: MmaSyncShape) -> int:
    """How many selectors there are: from 0 up."""
    bits = 2 * 4 * _fours(shape)  # of the two rows that four threads share
    return _MEMBERS * 32 // bits


def _fours(shape: MmaSyncShape) -> int:
    """Metadata of a row, four bits each: for four elements, or two of tf32."""
    return shape.k // (2 if shape.a is DType.TF32 else 4)


def multiply(
    shape: MmaSyncShape, a: Registers, b: Registers, c: Registers, told: Metadata, how: mma.Multiply
) -> tuple[Registers, bool]:
    """Registers of D, and whether the metadata are right."""
    packed = a_fragment(16, shape.k // 2, shape.a.bits).matrix(a)
    dense, is_right = _dense(shape, packed, told)
    a_matrix = from_codes(dense, shape.a)
    b_matrix = from_codes(b_fragment(shape.k, shape.b.bits).matrix(b), shape.b)
    c_matrix = from_codes(d_fragment(16, 8, shape.c.bits).matrix(c), shape.c)
    total = mma_sync.product(shape, a_matrix, b_matrix, c_matrix, how)
    return d_fragment(16, 8, shape.d.bits).registers(to_codes(total, shape.d)), is_right


def _dense(shape: MmaSyncShape, packed: Codes, told: Metadata) -> tuple[Codes, bool]:
    """The (16, k) elements of A, and whether the metadata are right."""
    fours = _by_row(shape, told)
    low, high = fours & 3, fours >> 2
    dense = np.zeros((16, shape.k), packed.dtype)
    rows = np.arange(16)[:, None]
    if shape.a is DType.TF32:
        dense[rows, 2 * np.arange(fours.shape[1]) + high // 3] = packed
        return dense, bool(np.isin(fours, (0b0100, 0b1110)).all())
    first = 4 * np.arange(fours.shape[1])
    dense[rows, first + low] = packed[:, 0::2]
    dense[rows, first + high] = packed[:, 1::2]
    return dense, bool((low < high if told.ordered else low != high).all())


def _by_row(shape: MmaSyncShape, told: Metadata) -> NDArray[np.intp]:
    """Four bits for each run of elements of each row: (16, runs)."""
    words = told.words.reshape(8, _MEMBERS)
    if shape.a.bits == 8:
        # threads of even number hold row g, of odd number row g + 8; two of them 32 elements
        first = 2 * told.selector
        chosen = words[:, first : first + shape.k // 16].reshape(8, -1, 2)
        held = np.concatenate([chosen[..., 0], chosen[..., 1]])
    else:
        # a thread holds 16 bits of row g, and of row g + 8 above them
        count = _fours(shape) // 4
        chosen = words[:, count * told.selector : count * (told.selector + 1)]
        held = np.concatenate([chosen & np.uint32(0xFFFF), chosen >> np.uint32(16)])
    runs = 8 if shape.a.bits == 8 else 4
    shifts = np.arange(0, 4 * runs, 4, dtype=np.uint32)
    found = held[..., None] >> shifts & np.uint32(15)
    return found.reshape(16, -1).astype(np.intp)
