"""Fragments of matrices that a warp loads, multiplies and stores: wmma (PTX ISA 9.7.14.4).

Which lane holds what of a fragment is not said by the manual, so a kernel cannot depend on it. Here
element e lies in slot e, lane after lane; where a fragment has more slots it is held several times.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.machine.lanes import LANE_IDS, WIDTH, Lanes, Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.models import double, mma
from kernelpack.emulator.models.operands import from_codes, to_codes
from kernelpack.emulator.semantics import access
from kernelpack.emulator.semantics.matrix import DTYPES
from kernelpack.emulator.semantics.table import Form, Handler, control, wrong
from kernelpack.formats.dtype import DType

_SHAPES = ("m16n16k16", "m32n8k16", "m8n32k16", "m16n16k8", "m8n8k4")
_TYPES = ("f16", "bf16", "tf32", "f32", "f64", "s8", "u8", "s32")
_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s32": 32}
_INPUTS = {
    "m16n16k8": ("tf32",),
    "m8n8k4": ("f64",),
    **dict.fromkeys(_SHAPES[:3], ("f16", "bf16", "s8", "u8")),
}
_LAYOUTS = ("row", "col")
_FLAGS = ("sync", "aligned", *_LAYOUTS, *_SHAPES, "global", "shared", "shared::cta")
Codes = NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class Part:
    """A matrix of an instruction: `rows` of `columns` elements as they are held, one type.

    A is held by rows (m, k), B by columns (n, k), C and D by rows (m, n).
    """

    name: str
    rows: int
    columns: int
    type: str

    @property
    def count(self) -> int:
        """Its elements."""
        return self.rows * self.columns

    def offsets(self, elements: NDArray[np.intp], layout: str, stride: int) -> NDArray[np.intp]:
        """Where elements lie in memory, in elements from the first."""
        row, column = elements // self.columns, elements % self.columns
        is_straight = (layout == "row") != (self.name == "b")
        return row * stride + column if is_straight else column * stride + row

    def dense(self, layout: str) -> int:
        """The stride of a matrix with nothing between its rows, or columns."""
        is_straight = (layout == "row") != (self.name == "b")
        return self.columns if is_straight else self.rows

    def codes(self, registers: list[Lanes]) -> Codes:
        """The elements' bits, out of the registers that hold them."""
        kind = np.dtype(f"u{_BITS[self.type] // 8}")
        slots = np.ascontiguousarray(np.stack(registers, 1)).view(kind).reshape(-1)
        found: Codes = slots[: self.count]
        return found.reshape(self.rows, self.columns)

    def registers(self, codes: Codes, count: int) -> list[Lanes]:
        """So many registers that hold these elements."""
        bits = max(_BITS[self.type], 32)
        narrow = codes.astype(f"u{_BITS[self.type] // 8}").reshape(-1)
        slots = np.resize(narrow, WIDTH * count * bits // _BITS[self.type])
        words = slots.reshape(WIDTH, -1).view(np.dtype(f"u{bits // 8}"))
        return [np.ascontiguousarray(column) for column in words.T]

    def slots(self, form: Form, position: int) -> int:
        """Elements of each lane, by the number of registers that an operand has.

        Raises:
            PtxError: they do not hold the matrix.
        """
        slots = form.length(position) * max(_BITS[self.type], 32) // _BITS[self.type]
        if WIDTH * slots % self.count:
            raise wrong(form.instruction, f"{form.length(position)} registers for a fragment")
        return slots


def _part(form: Form, name: str, kind: str) -> Part:
    shape = form.one_of(_SHAPES)
    if not shape:
        raise form.unsupported("this shape of wmma")
    sides = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", shape)
    assert sides is not None
    m, n, k = (int(side) for side in sides.groups())
    if name in "ab" and kind not in _INPUTS[shape]:
        raise form.unsupported(f"wmma.{shape} of {kind}")
    rows, columns = {"a": (m, k), "b": (n, k)}.get(name, (m, n))
    return Part(name, rows, columns, kind)


def _word(form: Form) -> str:
    return "b64" if form.type == "f64" else "b32"


def _whole(form: Form, mask: Mask) -> None:
    """All 32 lanes must run it.

    Raises:
        UnsupportedError: the warp has fewer.
    """
    if not mask.all():
        raise form.unsupported("a wmma of a warp that is not whole")


def _load_operands(form: Form) -> tuple[str, ...]:
    return ("={" + _word(form) + "}", "@", "u32?")


def _store_operands(form: Form) -> tuple[str, ...]:
    return ("@", "{" + _word(form) + "}", "u32?")


@control("wmma.load.a wmma.load.b wmma.load.c", "9.7.14.4.3", operands=_load_operands,
         types=_TYPES, flags=_FLAGS, converged=True)  # fmt: skip
def load(form: Form) -> Handler:
    """D = a fragment, out of a matrix in memory."""
    part = _part(form, form.instruction.modifiers[1], form.type)
    layout, size, slots = form.one_of(_LAYOUTS), _BITS[form.type] // 8, part.slots(form, 0)

    def call(
        warp: Warp, _split: Split, mask: Mask, at: Lanes, stride: Lanes | None = None
    ) -> object:
        _whole(form, mask)
        step = part.dense(layout) if stride is None else access.uniform(stride, mask)
        found = []
        for slot in range(slots):
            where = part.offsets((LANE_IDS * slots + slot) % part.count, layout, step)
            address = at + (where * size).astype(np.uint64)
            found += access.load(warp, None, address, form.space, size=size)
        values = np.stack(found, 1).reshape(-1)[: part.count]
        registers = part.registers(values, form.length(0))
        return registers if len(registers) > 1 else registers[0]

    return call


@control("wmma.store.d", "9.7.14.4.4", operands=_store_operands, types=_TYPES, flags=_FLAGS,
         converged=True)  # fmt: skip
def store(form: Form) -> Handler:
    """A matrix in memory = a fragment."""
    part = _part(form, "d", form.type)
    layout, size, slots = form.one_of(_LAYOUTS), _BITS[form.type] // 8, part.slots(form, 1)

    def call(
        warp: Warp, _split: Split, mask: Mask, at: Lanes, values: list[Lanes],
        stride: Lanes | None = None,
    ) -> None:  # fmt: skip
        _whole(form, mask)
        step = part.dense(layout) if stride is None else access.uniform(stride, mask)
        elements = part.codes(values).reshape(WIDTH, slots)
        for slot in range(slots):
            where = part.offsets(LANE_IDS * slots + slot, layout, step)
            address = at + (where * size).astype(np.uint64)
            access.store(warp, None, address, form.space, [elements[:, slot].copy()])

    return call


def _mma_operands(form: Form) -> tuple[str, ...]:
    word = "{" + _word(form) + "}"
    return (f"={word}", word, word, word)


@control("wmma.mma.sync", "9.7.14.4.5", operands=_mma_operands, types=_TYPES,
         flags=("aligned", *_LAYOUTS, *_SHAPES, "satfinite", "rn"), converged=True)  # fmt: skip
def multiply(form: Form) -> Handler:
    """D = A B + C of fragments; how A and B lay in memory no longer matters."""
    kinds = form.types if len(form.types) == 4 else (form.types[0], "f16", "f16", form.type)
    parts = [_part(form, name, kind) for name, kind in zip("dabc", kinds, strict=True)]
    for position, part in enumerate(parts):
        part.slots(form, position)
    to, first, second, third = parts

    def call(
        warp: Warp, _split: Split, mask: Mask, a: list[Lanes], b: list[Lanes], c: list[Lanes]
    ) -> object:
        _whole(form, mask)
        left, right, start = first.codes(a), second.codes(b), third.codes(c)
        if to.type == "f64":
            doubles = (np.ascontiguousarray(x).view(np.float64) for x in (left, right, start))
            is_exact = warp.cta.machine.multiply is mma.exact
            result: Codes = double.product(*doubles, exact=is_exact).view(np.uint64)
        else:
            result = _product(form, kinds, (left, right, start), warp.cta.machine.multiply)
        registers = to.registers(result, form.length(0))
        return registers if len(registers) > 1 else registers[0]

    return call


def _product(
    form: Form, kinds: tuple[str, ...], codes: tuple[Codes, Codes, Codes], how: mma.Multiply
) -> Codes:
    """The bits of D."""
    d, *types = (DTYPES[kind] for kind in kinds)
    a, b, c = (from_codes(part, kind) for part, kind in zip(codes, types, strict=True))
    if d is DType.I32:
        total = mma.integer(a, b, c, saturate=form.has("satfinite"))
    else:
        operands = mma.Operands(a=a, b=b, c=c, a_type=types[0], b_type=types[1])
        total = how(operands, mma.Summation(fraction_bits=25, output=d))
    found: Codes = to_codes(total, d)
    return found
