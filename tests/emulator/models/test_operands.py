"""Operand bytes as numbers."""

import numpy as np
import pytest

from kernelpack.emulator.models.operands import check_pair, from_bytes, from_codes, to_codes
from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType


@pytest.mark.parametrize(
    ("dtype", "raw", "expected"),
    [
        (DType.FP16, [0x00, 0x3C, 0x00, 0xC0], [1, -2]),
        (DType.BF16, [0x80, 0x3F, 0x00, 0xC0], [1, -2]),
        (DType.E4M3, [0x38, 0xB8], [1, -1]),
        (DType.E5M2, [0x3C, 0xBC], [1, -1]),
        (DType.E2M1, [0x72], [1, 6]),
        (DType.E2M3, [0x08, 0xF2, 0x7F], [1, 1, -7.5, 7.5]),
        (DType.I8, [0xFF, 0x01], [-1, 1]),
        (DType.U8, [0xFF, 0x01], [255, 1]),
        (DType.TF32, [0xFF, 0x1F, 0x80, 0x3F], [1]),
    ],
)
def test_bytes(dtype, raw, expected):
    """Little-endian elements, the first in the lowest bits; tf32 loses its low 13 bits."""
    assert from_bytes(np.uint8([raw]), dtype).tolist() == [expected]


@pytest.mark.parametrize("dtype", [DType.FP32, DType.FP16, DType.I32])
def test_codes_survive(dtype):
    """Numbers of D and their codes."""
    values = np.array([[1, -2]], dtype.numpy)
    assert np.array_equal(values, from_codes(to_codes(values, dtype), dtype))


def test_pair_is_refused():
    """Types that an instruction does not multiply are named."""
    with pytest.raises(UnsupportedError, match="bf16 and fp16 into fp32"):
        check_pair(DType.BF16, DType.FP16, DType.FP32, set())
