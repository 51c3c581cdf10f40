"""mma.sync on registers."""

import numpy as np
import pytest

from kernelpack.emulator.models import mma, mma_sync
from kernelpack.emulator.models.fragments import a_fragment, b_fragment, d_fragment
from kernelpack.emulator.models.mma_sync import MmaSyncShape
from kernelpack.emulator.models.operands import from_codes, to_codes
from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import encode

SHAPES = [
    MmaSyncShape(m=m, k=k, a=a, b=b, c=d, d=d)
    for (a, b), (shapes, outputs) in mma_sync._FORMS.items()
    for m, k in sorted(shapes)
    for d in sorted(outputs)
]


def codes(dtype, shape, seed):
    """Codes of small numbers."""
    rng = np.random.default_rng(seed)
    if dtype in (DType.I8, DType.U8):
        return rng.integers(0, 256, shape)
    values = rng.integers(-4, 5, shape)
    return (
        to_codes(values.astype(dtype.numpy), dtype)
        if dtype in (DType.I32, DType.FP64)
        else encode(dtype, values / 2)
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("how", [mma.fast, mma.exact])
def test_product(shape, how):
    """D = A x B + C for every form; small numbers have no rounding."""
    m, k, a, b, d = shape.m, shape.k, shape.a, shape.b, shape.d
    x, y, z = codes(a, (m, k), 1), codes(b, (8, k), 2), codes(d, (m, 8), 3)
    registers = mma_sync.multiply(
        shape,
        a_fragment(m, k, a.bits).registers(x),
        b_fragment(k, b.bits).registers(y),
        d_fragment(m, 8, d.bits).registers(z),
        how,
    )
    wide = [from_codes(v, t).astype(np.float64) for v, t in ((x, a), (y, b), (z, d))]
    result = from_codes(d_fragment(m, 8, d.bits).matrix(registers), d)
    assert np.array_equal(wide[0] @ wide[1].T + wide[2], result)


def test_saturation():
    """.satfinite keeps an integer sum at its largest."""
    shape = MmaSyncShape(m=8, k=16, a=DType.U8, b=DType.U8, c=DType.I32, d=DType.I32, saturate=True)
    ones = np.full((1, 32), 0x0101_0101, np.uint32)
    full = np.full((2, 32), 0x7FFF_FFFF, np.uint32)
    assert (mma_sync.multiply(shape, ones, ones, full, mma.fast) == 0x7FFF_FFFF).all()


@pytest.mark.parametrize(
    ("m", "k", "a", "d"),
    [
        (8, 4, DType.FP16, DType.FP32),
        (16, 16, DType.BF16, DType.FP16),
        (16, 32, DType.FP64, DType.FP64),
    ],
)
def test_unknown_form(m, k, a, d):
    """A shape or type that is not modelled is named."""
    with pytest.raises(UnsupportedError, match=f"m{m}n8k{k}"):
        mma_sync.check(MmaSyncShape(m=m, k=k, a=a, b=a, c=d, d=d))


def test_fp8_is_two_products_and_an_addition():
    """C is added last and rounded to nearest: both tiny products count, one alone is a tie."""
    shape = MmaSyncShape(m=16, k=32, a=DType.E5M2, b=DType.E5M2, c=DType.FP32, d=DType.FP32)
    tiny = encode(DType.E5M2, 2.0**-12)
    a, b = np.zeros((16, 32), np.uint32), np.zeros((8, 32), np.uint32)
    a[:, [0, 2]], b[:, [0, 2]] = tiny, tiny
    c = np.full((4, 32), 0x3F80_0000, np.uint32)
    registers = [a_fragment(16, 32, 8).registers(a), b_fragment(32, 8).registers(b), c]
    one_step = mma_sync.multiply(shape, *registers, mma.exact)
    a[:, 2] = 0
    tie = mma_sync.multiply(shape, a_fragment(16, 32, 8).registers(a), *registers[1:], mma.exact)
    assert (one_step == 0x3F80_0001).all()
    assert (tie == 0x3F80_0000).all()
