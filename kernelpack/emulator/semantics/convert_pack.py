"""Integers cut to narrow ones that lie side by side (PTX ISA 9.7.9.23)."""

import numpy as np

from kernelpack.emulator.machine.lanes import Lanes
from kernelpack.emulator.semantics.table import Form, Handler, lanes

_BITS = {f"{sign}{bits}": bits for sign in "us" for bits in (2, 4, 8, 16)}


def _to(form: Form) -> str:
    """The type of the narrow integers, of `cvt.pack.sat.TO.s32{.b32}`."""
    _, *modifiers = form.instruction.modifiers
    to = modifiers[1] if len(modifiers) > 1 else ""
    rest = ["s32"] if _BITS.get(to) == 16 else ["s32", "b32"]
    if to not in _BITS or modifiers != ["sat", to, *rest]:
        raise form.unsupported("a conversion of two integers is `.sat`, to one of 2 to 16 bits,")
    return to


def _operands(form: Form) -> tuple[str, ...]:
    both = ("=b32", "s32", "s32")
    return both if _BITS[_to(form)] == 16 else (*both, "b32")


@lanes(
    "cvt.pack", "9.7.9.23", operands=_operands, types=("s32", "b32"), flags=("sat", *_BITS),
)  # fmt: skip
def convert_and_pack(form: Form) -> Handler:
    """D = b below a, each at the nearest value of the narrow type, below what there is of c."""
    to = _to(form)
    bits, is_signed = _BITS[to], to[0] == "s"
    least = -(1 << bits - 1) if is_signed else 0
    most = least + (1 << bits) - 1

    def narrow(a: Lanes) -> Lanes:
        return np.clip(a.astype(np.int64), least, most) & (1 << bits) - 1

    def pack(a: Lanes, b: Lanes, c: Lanes | None = None) -> Lanes:
        both = narrow(b) | narrow(a) << bits
        rest = 0 if c is None else c.astype(np.int64) << 2 * bits
        whole: Lanes = ((both | rest) & 0xFFFFFFFF).astype(np.uint32)
        return whole

    return pack
