"""One warp of a wgmma."""

import numpy as np
import pytest

from kernelpack.emulator.models import mma, wgmma
from kernelpack.emulator.models.fragments import a_fragment, d_fragment
from kernelpack.emulator.models.operands import from_bytes
from kernelpack.emulator.models.wgmma import TYPES, WgmmaShape
from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import encode


def shape(a=DType.BF16, b=DType.BF16, d=DType.FP32, n=16, **rest):
    return WgmmaShape(n=n, a=a, b=b, d=d, **rest)


def raw(dtype, rows, seed):
    """Rows of 32 bytes of small numbers."""
    rng = np.random.default_rng(seed)
    if dtype.is_integer:
        return rng.integers(0, 256, (rows, 32)).astype(np.uint8)
    values = rng.integers(-4, 5, (rows, 256 // dtype.bits)) / 2
    return encode(dtype, values).astype(f"u{dtype.bits // 8}").view(np.uint8)


def numbers(f, registers):
    codes = d_fragment(16, f.n, f.d.bits).matrix(registers)
    return codes.astype(f"u{f.d.bits // 8}").view(f.d.numpy).astype(np.float64)


@pytest.mark.parametrize(("a", "b", "d"), sorted(TYPES))
@pytest.mark.parametrize("how", [mma.fast, mma.exact])
def test_product(a, b, d, how):
    """D = A x B^T of every type; small numbers have no rounding."""
    f = shape(a, b, d)
    x, y = raw(a, 16, 1), raw(b, 16, 2)
    registers = wgmma.multiply(f, wgmma.a_from_bytes(f, x), y, None, how)
    expected = from_bytes(x, a).astype(np.float64) @ from_bytes(y, b).T.astype(np.float64)
    assert np.array_equal(expected, numbers(f, registers))


def test_a_from_registers():
    """A in registers is the same A."""
    f = shape(DType.E4M3, DType.E4M3)
    codes = raw(DType.E4M3, 16, 1)
    registers = a_fragment(16, 32, 8).registers(codes)
    assert np.array_equal(wgmma.a_from_bytes(f, codes), wgmma.a_from_registers(f, registers))


def test_accumulates():
    """Registers of D are added."""
    f = shape()
    a, b = wgmma.a_from_bytes(f, raw(DType.BF16, 16, 1)), raw(DType.BF16, 16, 2)
    once = wgmma.multiply(f, a, b, None, mma.fast)
    twice = wgmma.multiply(f, a, b, once, mma.fast)
    assert np.array_equal(2 * numbers(f, once), numbers(f, twice))


@pytest.mark.parametrize(
    ("a", "b", "sign"), [(True, False, -1), (False, True, -1), (True, True, 1)]
)
def test_negation(a, b, sign):
    """imm-scale-a and -b of -1."""
    plain, changed = shape(), shape(negate_a=a, negate_b=b)
    x, y = wgmma.a_from_bytes(plain, raw(DType.BF16, 16, 1)), raw(DType.BF16, 16, 2)
    expected = sign * numbers(plain, wgmma.multiply(plain, x, y, None, mma.fast))
    assert np.array_equal(expected, numbers(changed, wgmma.multiply(changed, x, y, None, mma.fast)))


def test_hopper_fp8_keeps_13_bits():
    """wgmma of fp8 is less exact than of 16-bit types."""
    rule = wgmma.summation(shape(DType.E4M3, DType.E5M2))
    assert (rule.fraction_bits, rule.output_bits) == (13, 13)
    assert wgmma.summation(shape()).fraction_bits == 25


def test_mixed_halves_do_not_exist():
    """fp16 times bf16 is refused."""
    f = shape(DType.FP16, DType.BF16)
    with pytest.raises(UnsupportedError, match="fp16 and bf16"):
        wgmma.multiply(f, np.zeros((16, 16)), np.zeros((16, 32), np.uint8), None, mma.fast)
