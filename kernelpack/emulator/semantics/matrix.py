"""Matrices in registers: mma.sync, ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5)."""

import re
from collections.abc import Iterator

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import fragments, mma_sparse, mma_sync
from kernelpack.emulator.models.mma_sync import MmaSyncShape
from kernelpack.emulator.semantics import access
from kernelpack.emulator.semantics.table import Form, Handler, control, wrong
from kernelpack.formats.dtype import DType

DTYPES = {
    "f16": DType.FP16,
    "bf16": DType.BF16,
    "tf32": DType.TF32,
    "f32": DType.FP32,
    "e4m3": DType.E4M3,
    "e5m2": DType.E5M2,
    "s8": DType.I8,
    "u8": DType.U8,
    "s32": DType.I32,
    "f64": DType.FP64,
}
_LANES = 32
_SHAPES = tuple(
    f"m{m}n8k{k}" for m, k in ((16, 4), (16, 8), (16, 16), (16, 32), (16, 64), (8, 4), (8, 16))
)
_FLAGS = ("aligned", "row", "col", "satfinite", *_SHAPES)


def _shape(form: Form) -> MmaSyncShape:
    """The shape and the types of a product."""
    layouts = [modifier for modifier in form.instruction.modifiers if modifier in ("row", "col")]
    if layouts != ["row", "col"]:
        raise form.unsupported("layouts other than row.col")
    sides = re.fullmatch(r"m(\d+)n8k(\d+)", form.one_of(_SHAPES))
    if sides is None or len(form.types) != 4:
        raise form.unsupported("this mma")
    d, a, b, c = (DTYPES[kind] for kind in form.types)
    return MmaSyncShape(
        m=int(sides[1]), k=int(sides[2]), a=a, b=b, c=c, d=d, saturate=form.has("satfinite")
    )


def _expect(form: Form, shape: MmaSyncShape, k_of_a: int) -> None:
    """Refuse vectors that do not hold the matrices."""
    sides = (
        (shape.m, 8, shape.d),
        (shape.m, k_of_a, shape.a),
        (shape.k, 8, shape.b),
        (shape.m, 8, shape.c),
    )
    for position, (rows, columns, dtype) in enumerate(sides):
        form.expect(position, rows * columns * dtype.bits // (_LANES * max(dtype.bits, 32)))


def _stacked(*parts: list[Lanes]) -> Iterator[Lanes]:
    """Registers of matrices as (registers, 32) unsigned."""
    for part in parts:
        held = np.array(part)
        yield held.view(f"u{held.itemsize}")


def _vectors(form: Form) -> tuple[str, ...]:
    word = "{b64}" if "f64" in form.types else "{b32}"
    return (f"={word}", word, word, word)


@control("mma.sync", "9.7.14.5.14", operands=_vectors, types=tuple(DTYPES), flags=(*_FLAGS, "rn"))
def multiply(form: Form) -> Handler:
    """D = A B + C."""
    shape = _shape(form)
    mma_sync.check(shape)
    _expect(form, shape, shape.k)

    def call(
        warp: Warp, _split: Split, _mask: Mask, a: list[Lanes], b: list[Lanes], c: list[Lanes]
    ) -> object:
        left, right, start = _stacked(a, b, c)
        result = mma_sync.multiply(shape, left, right, start, warp.cta.machine.multiply)
        return list(result) if len(result) > 1 else result[0]

    return call


@control("mma.sp.sync mma.sp::ordered_metadata.sync", "9.7.14.6.3",
         operands=(*("={b32}", "{b32}", "{b32}", "{b32}"), "b32", "#"),
         types=tuple(DTYPES), flags=_FLAGS)  # fmt: skip
def multiply_sparse(form: Form) -> Handler:
    """D = A B + C, of A every other element and where it is."""
    shape, ordered = _shape(form), form.instruction.modifiers[0] == "sp::ordered_metadata"
    mma_sparse.check(shape)
    _expect(form, shape, shape.k // 2)
    selector, count = form.constant(5), mma_sparse.selectors(shape)
    if not 0 <= selector < count:
        raise wrong(form.instruction, f"a selector of {selector}; it may be 0 to {count - 1}")

    def call(
        warp: Warp, _split: Split, _mask: Mask,
        a: list[Lanes], b: list[Lanes], c: list[Lanes], words: Lanes,
    ) -> object:  # fmt: skip
        left, right, start = _stacked(a, b, c)
        told = mma_sparse.Metadata(words.view(np.uint32), selector, ordered)
        multiply = warp.cta.machine.multiply
        result, is_right = mma_sparse.multiply(shape, left, right, start, told, multiply)
        if not is_right:
            text = "metadata of mma.sp name one place twice, or are out of order"
            warp.cta.machine.misuse(rules.SPARSE_METADATA, text)
        return list(result) if len(result) > 1 else result[0]

    return call


_COUNTS = ("x1", "x2", "x4")
_MATRIX_FLAGS = ("sync", "aligned", "m8n8", *_COUNTS, "trans", "shared", "shared::cta")


@control("ldmatrix", "9.7.14.5.15", operands=("={b32}", "@shared"), types=("b16",),
         flags=_MATRIX_FLAGS, converged=True)  # fmt: skip
def load_matrix(form: Form) -> Handler:
    """D = 8x8 matrices of 16-bit elements whose rows the lanes name."""
    count, transpose = int(form.one_of(_COUNTS, "x1")[1]), form.has("trans")
    form.expect(0, count)

    def call(warp: Warp, _split: Split, mask: Mask, at: Lanes) -> object:
        rows = np.arange(32) < 8 * count
        words = access.load(warp, None if rows.all() else rows, at, "shared", size=8, count=2)
        raw = np.stack(words, 1).view(np.uint8)[: 8 * count]
        result = fragments.load_matrices(raw, transpose=transpose).astype(np.uint32)
        assert mask.any()
        return list(result) if count > 1 else result[0]

    return call


@control("stmatrix", "9.7.14.5.16", operands=("@shared", "{b32}"), types=("b16",),
         flags=_MATRIX_FLAGS, converged=True)  # fmt: skip
def store_matrix(form: Form) -> Handler:
    """The rows the lanes name = 8x8 matrices of 16-bit elements."""
    count, transpose = int(form.one_of(_COUNTS, "x1")[1]), form.has("trans")
    form.expect(1, count)

    def call(warp: Warp, _split: Split, _mask: Mask, at: Lanes, values: list[Lanes]) -> None:
        raw = fragments.store_matrices(np.array(values), transpose=transpose)
        words = np.zeros((32, 2), np.uint64)
        words[: 8 * count] = np.ascontiguousarray(raw).view(np.uint64)
        rows = np.arange(32) < 8 * count
        parts = [np.ascontiguousarray(words[:, 0]), np.ascontiguousarray(words[:, 1])]
        access.store(warp, None if rows.all() else rows, at, "shared", parts)

    return call


@control("movmatrix.sync", "9.7.14.5.17", operands=("=b32", "b32"), types=("b16",),
         flags=("aligned", "m8n8", "trans"), converged=True)  # fmt: skip
def transpose_matrix(form: Form) -> Handler:
    """D = the transpose of an 8x8 matrix of 16-bit elements."""
    if not form.has("trans"):
        raise form.unsupported("movmatrix without .trans")
    return lambda _warp, _split, _mask, a: fragments.transpose_matrix(a).astype(np.uint32)
