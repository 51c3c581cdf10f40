"""PTX `cvt` between float formats, on vectors of registers: bits in, bits out.

Types are named as PTX writes them (`e4m3x2`, `bf16x2`, `f32`). Elements of a packed register are
counted from the low end; operands of an unpacked source come in PTX's order, so the last one
lands lowest. Integers and `.ftz` are not handled here.
Source: PTX ISA 9.1, 9.7.9.21 (cvt).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import LAYOUTS, Rounding, Values, decode, encode

Lanes = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Packed:
    """`count` elements of `dtype` in one register, each in a field of `field` bits."""

    dtype: DType
    count: int
    field: int


_SCALARS = {
    "f64": (DType.FP64, 64),
    "f32": (DType.FP32, 32),
    "tf32": (DType.TF32, 32),
    "f16": (DType.FP16, 16),
    "bf16": (DType.BF16, 16),
}
_PAIRS = {
    "f16": (DType.FP16, 16),
    "bf16": (DType.BF16, 16),
    "e4m3": (DType.E4M3, 8),
    "e5m2": (DType.E5M2, 8),
    "e2m3": (DType.E2M3, 8),
    "e3m2": (DType.E3M2, 8),
    "e2m1": (DType.E2M1, 4),
    "ue8m0": (DType.UE8M0, 8),
}
TYPES = {name: Packed(dtype, 1, field) for name, (dtype, field) in _SCALARS.items()} | {
    f"{name}x2": Packed(dtype, 2, field) for name, (dtype, field) in _PAIRS.items()
}
NARROW = ("e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2")

_ANY = frozenset(("rn", "rz", "rm", "rp"))
_NEAREST = frozenset(("rn",))
# (to, source) -> the roundings PTX allows.
FORMS: dict[tuple[str, str], frozenset[str]] = (
    {(to, source): _ANY for to in ("f64", "f32", "f16", "bf16") for source in _SCALARS}
    | {(to, "f32"): frozenset(("rn", "rz", "rs")) for to in ("f16x2", "bf16x2")}
    | {("tf32", "f32"): frozenset(("rna", "rn", "rz"))}
    | {(to, source): _NEAREST for to in NARROW for source in ("f32", "f16x2", "bf16x2")}
    | {("f16x2", source): _NEAREST for source in NARROW}
    | {("ue8m0x2", source): frozenset(("rz", "rp")) for source in ("f32", "bf16x2")}
    | {("bf16x2", "ue8m0x2"): _NEAREST}
    | {("s2f6x2", source): _NEAREST for source in ("f32", "bf16x2")}
    | {("bf16x2", "s2f6x2"): _NEAREST}
)


def cvt(
    to: str,
    source: str,
    inputs: Sequence[Lanes],
    *,
    rounding: str = "rn",
    satfinite: bool = False,
    relu: bool = False,
    random: Lanes | None = None,
    scale: Lanes | None = None,
) -> Lanes:
    """Convert registers; `inputs` are PTX's operands a, b in order, unsigned integers.

    Args:
        to: destination type, as PTX writes it.
        source: source type, as PTX writes it.
        inputs: one register vector, or two for a packed destination of unpacked sources.
        rounding: one of `FORMS[to, source]`; UnsupportedError otherwise.
        satfinite: clamp to the largest finite number.
        relu: clamp negative results to +0.
        random: the `rbits` operand of `.rs`.
        scale: the `scale-factor` operand of s2f6 forms, two packed ue8m0.
    """
    if rounding not in FORMS.get((to, source), ()):
        raise UnsupportedError(f"cvt.{rounding}.{to}.{source} is not modelled", hint=_hint(to))
    if "s2f6x2" in (to, source):
        return _fixed_point(source, inputs, relu=relu, scale=scale)
    target = TYPES[to]
    values = elements(source, inputs)
    draws = _draws(target, random) if rounding == "rs" else [None] * len(values)
    codes = [
        encode(target.dtype, value, Rounding(rounding), satfinite=satfinite, relu=relu, random=draw)
        for value, draw in zip(values, draws, strict=True)
    ]
    if target.count == 1:
        codes = [_keep_nan(to, source, codes[0], inputs[0], rounding, satfinite=satfinite)]
    return pack(codes, target.field)


def _keep_nan(
    to: str, source: str, code: Lanes, register: Lanes, rounding: str, *, satfinite: bool
) -> Lanes:
    """Put back the NaNs that hardware does not make canonical (measured on an H200)."""
    is_nan = np.isnan(decode(TYPES[source].dtype, register))
    if source == "f64" and to != "f64":
        kept = _quiet(TYPES[to].dtype, register)
    elif (source, to) == ("bf16", "f32"):
        kept = register << np.uint32(16)
    elif (to, rounding) == ("tf32", "rna"):
        kept = (register & np.uint32(0xFFFF_E000)) - np.uint32(0x2000 if satfinite else 0)
    else:
        return code
    return np.where(is_nan, kept.astype(code.dtype), code)


def _quiet(dtype: DType, double: Lanes) -> Lanes:
    """Narrow the NaNs of fp64: sign and upper mantissa bits stay, the quiet bit is set."""
    layout = LAYOUTS[dtype]
    mantissa = double >> np.uint64(52 - layout.mantissa) & np.uint64((1 << layout.mantissa) - 1)
    quiet = np.uint64((layout.nan or 0) >> layout.mantissa << layout.mantissa)
    quiet |= np.uint64(1 << (layout.mantissa - 1))
    sign = double >> np.uint64(63) << np.uint64(layout.exponent + layout.mantissa)
    return mantissa | quiet | sign


def _hint(to: str) -> str:
    forms = sorted(source for target, source in FORMS if target == to)
    return f"modelled sources of {to}: {', '.join(forms)}" if forms else f"types: {sorted(TYPES)}"


def elements(source: str, inputs: Sequence[Lanes]) -> list[Values]:
    """Take the numbers out of the operands, lowest element first."""
    kind = TYPES[source]
    if kind.count == 1:
        return [decode(kind.dtype, register) for register in reversed(inputs)]
    (register,) = inputs
    return [decode(kind.dtype, code) for code in unpack(register, kind.count, kind.field)]


def unpack(register: Lanes, count: int, field: int) -> list[Lanes]:
    """Split registers into `count` fields of `field` bits, lowest first."""
    mask = register.dtype.type((1 << field) - 1)
    return [(register >> register.dtype.type(field * i)) & mask for i in range(count)]


def pack(codes: Sequence[Lanes], field: int) -> Lanes:
    """Join codes into registers, the first one lowest."""
    register = codes[0]
    for i, code in enumerate(codes[1:], start=1):
        register = register | (code << code.dtype.type(field * i))
    return register


def _draws(target: Packed, random: Lanes | None) -> list[Values | None]:
    """Random numbers of `.rs`: 13 low bits of each half for f16, all 16 for bf16."""
    assert random is not None, "cvt.rs has an rbits operand"
    bits = 13 if target.dtype is DType.FP16 else 16
    return [half % (1 << bits) / np.float64(1 << bits) for half in unpack(random, 2, 16)]


def _fixed_point(source: str, inputs: Sequence[Lanes], *, relu: bool, scale: Lanes | None) -> Lanes:
    """Convert to or from s2f6: signed 8-bit integers in units of 2^-6 (PTX ISA 9.1, 5.2.4)."""
    scales: list[Lanes] = [np.ones(1), np.ones(1)]
    if scale is not None:
        scales = [decode(DType.UE8M0, code).astype(np.float64) for code in unpack(scale, 2, 8)]
    if source == "s2f6x2":
        integers = [code.astype(np.uint8).view(np.int8) for code in unpack(inputs[0], 2, 8)]
        numbers = [i / 64 * s for i, s in zip(integers, scales, strict=True)]
        return pack([encode(DType.BF16, number, relu=relu) for number in numbers], 16)
    values = elements(source, inputs)
    return pack([_to_s2f6(v / s, relu=relu) for v, s in zip(values, scales, strict=True)], 8)


def _to_s2f6(value: Lanes, *, relu: bool) -> Lanes:
    """Nearest even multiple of 2^-6 in -2 .. 127/64; NaN becomes the largest."""
    steps = np.where(np.isnan(value), 127, np.rint(value * 64))
    return np.clip(steps, 0 if relu else -128, 127).astype(np.int8).view(np.uint8).astype(np.uint32)
