"""PTX cvt on registers."""

import numpy as np
import pytest

from kernelpack.errors import UnsupportedError
from kernelpack.formats.convert import FORMS, NARROW, TYPES, cvt, elements, pack, unpack
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode


def f32(*values):
    return [np.float32([value]).view(np.uint32) for value in values]


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("e4m3x2", 0x38_B8),
        ("e5m2x2", 0x3C_BC),
        ("e2m3x2", 0x08_28),
        ("e3m2x2", 0x0C_2C),
        ("e2m1x2", 0x2A),
        ("f16x2", 0x3C00_BC00),
        ("bf16x2", 0x3F80_BF80),
    ],
)
def test_first_operand_lands_high(to, expected):
    """cvt d, a, b packs a above b; here a = 1 and b = -1."""
    assert expected == cvt(to, "f32", f32(1.0, -1.0), satfinite=to in NARROW)


@pytest.mark.parametrize("narrow", NARROW)
@pytest.mark.parametrize("half", ["f16x2", "bf16x2"])
def test_packed_sources_keep_their_places(narrow, half):
    """From a packed half pair, the high half gives the high element."""
    pair = cvt(half, "f32", f32(2.0, -0.5))
    assert cvt(narrow, "f32", f32(2.0, -0.5)) == cvt(narrow, half, [pair], satfinite=True)


@pytest.mark.parametrize("narrow", NARROW)
def test_every_pair_of_codes_widens_exactly(narrow):
    """A narrow pair becomes the same two numbers in f16x2 (NaN aside)."""
    bits = 2 * TYPES[narrow].field
    codes = np.arange(1 << bits, dtype=np.uint32)
    halves = elements("f16x2", [cvt("f16x2", narrow, [codes])])
    expected = elements(narrow, [codes])
    assert all(np.array_equal(e, h, equal_nan=True) for e, h in zip(expected, halves, strict=True))


def test_nan_widens_to_canonical():
    """An e4m3 NaN of either sign is 0x7fff in f16."""
    assert cvt("f16x2", "e4m3x2", [np.uint32([0xFF7F])]) == 0x7FFF_7FFF


def test_relu_on_both_halves():
    """relu clamps each element."""
    assert cvt("e4m3x2", "f32", f32(-1.0, 1.0), satfinite=True, relu=True) == 0x0038


@pytest.mark.parametrize(("rounding", "expected"), [("rz", 0x7F80), ("rp", 0x8081)])
def test_scales_from_floats(rounding, expected):
    """1.5 and 2.5 as powers of two: 1 and 2 down, 2 and 4 up."""
    assert expected == cvt("ue8m0x2", "f32", f32(1.5, 2.5), rounding=rounding)


def test_scales_to_bf16():
    """ue8m0 2 and 1 as a bf16 pair."""
    assert cvt("bf16x2", "ue8m0x2", [np.uint32([0x807F])]) == 0x4000_3F80


def test_tf32_clears_low_bits():
    """tf32 has its low 13 bits zero."""
    assert cvt("tf32", "f32", f32(np.pi), rounding="rna") == 0x4049_0000


@pytest.mark.parametrize(("rbits", "expected"), [(0x0000_1FFF, 0x3C00_3C01), (0, 0x3C00_3C00)])
def test_stochastic_rounding_of_a_pair(rbits, expected):
    """The low half of rbits rounds the last operand; 1 + 2^-23 goes up only if all 13 bits are."""
    just_above = f32(1.0, 1 + 2.0**-23)
    assert expected == cvt("f16x2", "f32", just_above, rounding="rs", random=np.uint32([rbits]))


def test_stochastic_rounding_to_bf16_uses_16_bits():
    """The high half of rbits belongs to the first operand."""
    inputs = f32(1 + 2.0**-23, 1.0)
    assert (
        cvt("bf16x2", "f32", inputs, rounding="rs", random=np.uint32([0xFFFF_0000])) == 0x3F81_3F80
    )


@pytest.mark.parametrize(
    ("a", "b", "expected"), [(1.0, -2.0, 0x4080), (9.0, -9.0, 0x7F80), (np.nan, 0.0, 0x7F00)]
)
def test_fixed_point(a, b, expected):
    """s2f6 counts 64ths, clamped to -2 .. 127/64, NaN to the largest."""
    assert expected == cvt("s2f6x2", "f32", f32(a, b), satfinite=True)


def test_fixed_point_scale_divides():
    """The scale factor divides on the way down: 4 / 4 and 1 / 1."""
    scale = np.uint32([0x817F])
    assert cvt("s2f6x2", "f32", f32(4.0, 1.0), scale=scale) == 0x4040


def test_fixed_point_back():
    """On the way up the scale factor multiplies: 1 * 4 and -2 * 1."""
    scale = np.uint32([0x817F])
    assert cvt("bf16x2", "s2f6x2", [np.uint32([0x4080])], scale=scale) == 0x4080_C000


def test_scalar_widening():
    """bf16 to f32 is a shift."""
    assert cvt("f32", "bf16", [np.uint32([0x3F80])]) == 0x3F80_0000


def test_double_to_float_rounds_up():
    """cvt.rp.f32.f64 gives the next float above."""
    third = np.float64([1 / 3]).view(np.uint64)
    up = decode(DType.FP32, cvt("f32", "f64", [third], rounding="rp"))
    assert np.nextafter(up, np.float32(0)).astype(np.float64) < 1 / 3 <= up.astype(np.float64)


@pytest.mark.parametrize(
    ("to", "source", "rounding"), [("e4m3x4", "f32", "rs"), ("e4m3x2", "f32", "rz")]
)
def test_unknown_form_is_refused(to, source, rounding):
    """A form PTX or this module does not know is named."""
    with pytest.raises(UnsupportedError, match=f"cvt.{rounding}.{to}.{source}"):
        cvt(to, source, f32(1.0, 1.0), rounding=rounding)


def test_forms_name_known_types():
    """Every form is between types of the table (s2f6 is handled apart)."""
    assert {name for form in FORMS for name in form} - {"s2f6x2"} == set(TYPES)


def test_pack_undoes_unpack():
    """Fields put back in order are the register."""
    register = np.uint32([0xDEAD_BEEF])
    assert pack(unpack(register, 4, 8), 8) == register


@pytest.mark.parametrize(
    ("to", "double", "expected"),
    [
        ("f32", 0x7FF0_0627_9192_4B40, 0x7FC0_313C),
        ("f32", 0xFFF7_B99D_124C_1701, 0xFFFD_CCE8),
        ("f16", 0x7FF0_0627_9192_4B40, 0x7E01),
        ("bf16", 0x7FFE_74B0_E872_CBC4, 0x7FF3),
    ],
)
def test_nan_of_fp64_keeps_its_payload(to, double, expected):
    """Narrowing fp64 quiets a NaN and keeps its sign and upper bits, as an H200 does."""
    assert expected == cvt(to, "f64", [np.uint64([double])])


@pytest.mark.parametrize(
    ("value", "satfinite", "expected"),
    [
        (0x7FC0_0000, False, 0x7FC0_0000),
        (0xFFFF_FFFF, False, 0xFFFF_E000),
        (0x7F80_0001, False, 0x7F80_0000),
        (0x7FC0_0000, True, 0x7FBF_E000),
        (0xFFFF_FFFF, True, 0xFFFF_C000),
    ],
)
def test_nan_of_tf32_ties_away(value, satfinite, expected):
    """cvt.rna.tf32 cuts the bits of a NaN; what an H200 gives."""
    result = cvt("tf32", "f32", [np.uint32([value])], rounding="rna", satfinite=satfinite)
    assert expected == result


def test_nan_of_bf16_widens_as_it_is():
    """cvt.f32.bf16 is a shift, also of a NaN."""
    assert cvt("f32", "bf16", [np.uint32([0x7F81])]) == 0x7F81_0000


@pytest.mark.parametrize(("rounding", "expected"), [("rn", 0x3C00), ("rp", 0x3C01)])
def test_scalar_half(rounding, expected):
    """cvt.f16.f32 of one number."""
    assert expected == cvt("f16", "f32", f32(1 + 2.0**-20), rounding=rounding)
