"""Decode and round: the bits of every float format to numbers and back, with PTX's roundings.

Values are float32 (float64 for fp64); codes are unsigned integers in the low bits of their array
item, tf32 codes instead of a float32. Both directions are exact, one rounding at most: the
arithmetic is done on float64, which holds every product of a power of two and a narrow value.
Sources: PTX ISA 9.1, 5.2.3 (formats) and 9.7.9.21 (cvt); OCP Microscaling Formats 1.0.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np
import numpy.typing as npt

from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType

Codes = npt.NDArray[np.unsignedinteger]
Values = npt.NDArray[np.floating]
Reals = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


class Rounding(StrEnum):
    """PTX's rounding modifiers. RS rounds by a random number, given by the caller."""

    RN = "rn"
    RZ = "rz"
    RM = "rm"
    RP = "rp"
    RNA = "rna"
    RS = "rs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The bit fields of one float format, low to high: mantissa, exponent, sign.

    `shift` zero bits are below the mantissa (tf32 in its 32-bit container). `nan` is PTX's
    canonical NaN; a format without NaN converts it to its largest value, one without infinity
    overflows to NaN.
    """

    exponent: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None = None
    nan: int | None = None
    shift: int = 0

    @property
    def smallest_exponent(self) -> int:
        """Exponent of the smallest normal number, and of every subnormal one."""
        return 1 - self.bias

    @property
    def sign(self) -> int:
        """The sign bit of a code."""
        return 1 << (self.exponent + self.mantissa)


LAYOUTS = {
    DType.FP32: Layout(
        exponent=8,
        mantissa=23,
        bias=127,
        largest=0x7F7F_FFFF,
        infinity=0x7F80_0000,
        nan=0x7FFF_FFFF,
    ),
    DType.TF32: Layout(
        exponent=8,
        mantissa=10,
        bias=127,
        largest=0x3FBFF,
        infinity=0x3FC00,
        nan=0x3FFFF,
        shift=13,
    ),
    DType.FP16: Layout(
        exponent=5, mantissa=10, bias=15, largest=0x7BFF, infinity=0x7C00, nan=0x7FFF
    ),
    DType.BF16: Layout(
        exponent=8, mantissa=7, bias=127, largest=0x7F7F, infinity=0x7F80, nan=0x7FFF
    ),
    DType.E4M3: Layout(exponent=4, mantissa=3, bias=7, largest=0x7E, nan=0x7F),
    DType.E5M2: Layout(exponent=5, mantissa=2, bias=15, largest=0x7B, infinity=0x7C, nan=0x7F),
    DType.E2M3: Layout(exponent=2, mantissa=3, bias=1, largest=0x1F),
    DType.E3M2: Layout(exponent=3, mantissa=2, bias=3, largest=0x1F),
    DType.E2M1: Layout(exponent=2, mantissa=1, bias=1, largest=0x7),
}


def decode(dtype: DType, codes: npt.ArrayLike) -> Values:
    """Read codes as numbers: float32, or float64 for fp64. Bits above the format are ignored."""
    bits = np.asarray(codes)
    match dtype:
        case DType.FP64:
            return bits.astype(np.uint64).view(np.float64)
        case DType.FP32 | DType.TF32:
            return bits.astype(np.uint32).view(np.float32)
        case DType.BF16:
            return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
        case DType.FP16:
            return bits.astype(np.uint16).view(np.float16).astype(np.float32)
        case _:
            table = _table(dtype)
            values: Values = table[bits.astype(np.intp) & (len(table) - 1)]
            return values


@cache
def _table(dtype: DType) -> npt.NDArray[np.float32]:
    """Every value of a format of at most 8 bits, by code."""
    if dtype.is_integer or dtype.bits > 8:
        raise UnsupportedError(f"{dtype.label} is not a narrow float format")
    codes = np.arange(1 << dtype.bits, dtype=np.uint8)
    if dtype is DType.UE4M3:
        codes &= 0x7F  # 7 bits; the top bit is padding (PTX ISA 5.2.3)
    values: npt.NDArray[np.float32] = codes.view(dtype.numpy).astype(np.float32)
    values.setflags(write=False)
    return values


def encode(
    dtype: DType,
    values: npt.ArrayLike,
    rounding: Rounding = Rounding.RN,
    *,
    satfinite: bool = False,
    relu: bool = False,
    random: npt.ArrayLike | None = None,
) -> Codes:
    """Round numbers to a format: the codes, uint32 (uint64 for fp64).

    Args:
        dtype: the format to round to.
        values: float32 or float64 (converted exactly), any shape.
        rounding: RS needs `random`.
        satfinite: too large becomes the largest finite number instead of infinity or NaN.
        relu: negative becomes +0.
        random: RS only: a number in [0, 1) for each value; the magnitude is rounded away from
            zero where the discarded fraction plus this reaches 1.
    """
    if rounding is Rounding.RN and satfinite and not relu and dtype in _BY_CAST:
        single = np.asarray(values)
        if single.dtype == np.float32:
            return _cast(dtype, single)
    return _encode(dtype, values, rounding, satfinite=satfinite, relu=relu, random=random)


_BY_CAST = frozenset((DType.FP16, DType.BF16, DType.E4M3, DType.E5M2))


@cache
def _ends(dtype: DType) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """The least and the largest finite number."""
    largest = np.asarray(decode(dtype, LAYOUTS[dtype].largest), np.float32)
    return -largest, largest


def _cast(dtype: DType, values: Values) -> Codes:
    """What `_encode` does to the nearest finite number, by numpy's casts: many times as fast."""
    least, largest = _ends(dtype)
    with np.errstate(invalid="ignore"):
        finite = np.minimum(np.maximum(values, least), largest)
        codes = finite.astype(dtype.numpy).view(np.uint8 if dtype.bits == 8 else np.uint16)
        is_nan = np.isnan(values)
    wide: Codes = codes.astype(np.uint32)
    return np.where(is_nan, np.uint32(LAYOUTS[dtype].nan or 0), wide) if is_nan.any() else wide


def _encode(
    dtype: DType,
    values: npt.ArrayLike,
    rounding: Rounding,
    *,
    satfinite: bool,
    relu: bool,
    random: npt.ArrayLike | None,
) -> Codes:
    with np.errstate(invalid="ignore"):  # a signalling NaN is a NaN like any other
        exact = np.asarray(values, np.float64)
    match dtype:
        case DType.FP64:
            return exact.view(np.uint64)
        case DType.UE8M0:
            return _encode_exponent(exact, rounding, satfinite=satfinite)
        case DType.UE4M3:
            return encode(DType.E4M3, exact, rounding, satfinite=satfinite, relu=True)
    layout = _layout(dtype)
    if relu:
        exact = np.where(exact <= 0, 0.0, exact)
    code = _round_magnitude(layout, exact, rounding, random)
    code = _limit(layout, code, exact, rounding, satfinite=satfinite)
    signed = np.where(np.signbit(exact) & ~np.isnan(exact), code | layout.sign, code)
    return (signed << layout.shift).astype(np.uint32)


def _layout(dtype: DType) -> Layout:
    if dtype not in LAYOUTS:
        raise UnsupportedError(f"{dtype.label} is not a float format that values are rounded to")
    return LAYOUTS[dtype]


def _round_magnitude(
    layout: Layout, exact: Reals, rounding: Rounding, random: npt.ArrayLike | None
) -> Whole:
    """Code of |exact| as if the exponent field had no end; 0 for infinity and NaN.

    A code is a count of steps: rounding up past a power of two carries into the exponent field.
    """
    magnitude = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    exponent = np.where(magnitude > 0, np.frexp(magnitude)[1] - 1, layout.smallest_exponent)
    exponent = np.maximum(exponent, layout.smallest_exponent)
    scaled = np.ldexp(magnitude, layout.mantissa - exponent)
    whole = np.floor(scaled).astype(np.int64)
    up = _rounds_up(rounding, whole, scaled - whole, np.signbit(exact), random)
    binades = (exponent - layout.smallest_exponent).astype(np.int64)
    steps: Whole = (binades << layout.mantissa) + whole + up
    return steps


def _rounds_up(
    rounding: Rounding,
    whole: Whole,
    rest: Reals,
    negative: npt.NDArray[np.bool_],
    random: npt.ArrayLike | None,
) -> npt.NDArray[np.bool_]:
    """Whether the magnitude is rounded away from zero; `rest` is what is cut off, in [0, 1)."""
    match rounding:
        case Rounding.RN:
            return np.asarray((rest > 0.5) | ((rest == 0.5) & (whole % 2 == 1)))
        case Rounding.RNA:
            return np.asarray(rest >= 0.5)
        case Rounding.RZ:
            return np.zeros(rest.shape, np.bool_)
        case Rounding.RM:
            return (rest > 0) & negative
        case Rounding.RP:
            return (rest > 0) & ~negative
        case Rounding.RS:
            assert random is not None, "stochastic rounding needs its random numbers"
            carries: npt.NDArray[np.bool_] = rest + np.asarray(random, np.float64) >= 1.0
            return carries


def _limit(
    layout: Layout, code: Whole, exact: Reals, rounding: Rounding, *, satfinite: bool
) -> Whole:
    """Replace what the format cannot hold: too large, infinite, NaN."""
    nan = layout.largest if layout.nan is None else layout.nan
    beyond = nan if layout.infinity is None else layout.infinity
    towards_zero = {
        Rounding.RZ: np.isfinite(exact),
        Rounding.RM: np.isfinite(exact) & ~np.signbit(exact),
        Rounding.RP: np.isfinite(exact) & np.signbit(exact),
    }.get(rounding, np.False_)
    overflow = np.where(towards_zero, layout.largest, beyond)
    if satfinite:
        overflow = np.full(exact.shape, layout.largest)
    limited = np.where((code > layout.largest) | np.isinf(exact), overflow, code)
    return np.where(np.isnan(exact), nan, limited).astype(np.int64)


def _encode_exponent(exact: Reals, rounding: Rounding, *, satfinite: bool) -> Codes:
    """Round |value| to a power of two, 2^-127 .. 2^127; zero becomes 2^-127 (ue8m0 has no 0)."""
    if rounding not in (Rounding.RZ, Rounding.RP):
        raise UnsupportedError(f"ue8m0 is rounded by .rz or .rp, not .{rounding}")
    magnitude = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    fraction, exponent = np.frexp(magnitude)
    up = (fraction > 0.5) & (rounding is Rounding.RP)
    code = np.where(magnitude > 0, exponent - 1 + up + 127, 0)
    code = np.where(np.isinf(exact), 255, np.clip(code, 0, 255))
    if satfinite:
        code = np.minimum(code, 254)
    return np.where(np.isnan(exact), 255, code).astype(np.uint32)
