"""Arithmetic in parts: sums and products that hand a carry on (PTX ISA 9.7.2).

The carry is the thread's own, one bit; nothing else reads or writes it.
"""

from dataclasses import dataclass, field

import numpy as np

from kernelpack.emulator.machine.lanes import EVERY, WIDTH, Lanes, Mask
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.semantics.integer import high_product
from kernelpack.emulator.semantics.table import Form, Handler, machine

_TYPES = ("u32", "s32", "u64", "s64")
_NONE = np.zeros(WIDTH, bool)


@dataclass(slots=True)
class _Carry:
    """State of a warp: the carry of each lane."""

    bits: Lanes = field(default_factory=lambda: _NONE)


def _carry(warp: Warp) -> Lanes:
    """The carry of each lane."""
    return warp.units.of(_Carry).bits


def _keep(warp: Warp, mask: Mask | None, carry: Lanes) -> None:
    own = warp.units.of(_Carry)
    own.bits = np.where(EVERY if mask is None else mask, carry, own.bits)


def _sum(a: Lanes, b: Lanes, carry: Lanes) -> tuple[Lanes, Lanes]:
    """A + b + carry of unsigned values, and the carry out of it."""
    partial = a + b
    total = partial + carry.astype(a.dtype)
    return total, (partial < a) | (total < partial)


def _difference(a: Lanes, b: Lanes, borrow: Lanes) -> tuple[Lanes, Lanes]:
    """A - b - borrow of unsigned values, and the borrow out of it."""
    total = a - b - borrow.astype(a.dtype)
    return total, (a < b) | ((a == b) & borrow)


@machine(
    "add.cc addc sub.cc subc", "9.7.2.1", operands=("=B", "B", "B"), types=_TYPES, flags=("cc",)
)
def chained_sum(form: Form) -> Handler:
    """D = a ± b, with the carry of the part before where the name ends in c."""
    opcode = form.instruction.opcode
    step = _sum if opcode.startswith("add") else _difference
    takes, gives = opcode.endswith("c"), "cc" in form.instruction.modifiers

    def call(warp: Warp, mask: Mask | None, a: Lanes, b: Lanes) -> Lanes:
        total, carry = step(a, b, _carry(warp) if takes else _NONE)
        if gives:
            _keep(warp, mask, carry)
        return total

    return call


@machine("mad.lo.cc mad.hi.cc madc.lo madc.hi", "9.7.2.5", operands=("=B", "T", "T", "B"),
         types=_TYPES, flags=("cc",))  # fmt: skip
def chained_product(form: Form) -> Handler:
    """D = a half of a * b, + c, with the carry of the part before for `madc`."""
    modifiers = form.instruction.modifiers
    takes, gives = form.instruction.opcode == "madc", "cc" in modifiers
    product = high_product if "hi" in modifiers else np.multiply

    def call(warp: Warp, mask: Mask | None, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        part = product(a, b).view(c.dtype)
        total, carry = _sum(part, c, _carry(warp) if takes else _NONE)
        if gives:
            _keep(warp, mask, carry)
        return total

    return call
