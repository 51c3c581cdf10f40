"""Sub-byte elements in bytes."""

import numpy as np
import pytest

from kernelpack.formats.packing import pack, pad, unpack, unpad


def codes(bits, shape):
    return np.random.default_rng(3).integers(0, 1 << bits, shape).astype(np.uint8)


@pytest.mark.parametrize("bits", [4, 6, 8])
@pytest.mark.parametrize("shape", [(16,), (3, 32), (2, 3, 16)])
def test_unpack_undoes_pack(bits, shape):
    """Every code comes back at its place."""
    assert np.array_equal(codes(bits, shape), unpack(pack(codes(bits, shape), bits), bits))


@pytest.mark.parametrize("bits", [4, 6, 8])
def test_packed_size(bits):
    """Sixteen elements take 2 * bits bytes."""
    assert pack(codes(bits, (5, 16)), bits).shape == (5, 2 * bits)


def test_low_nibble_first():
    """Element 0 is the low nibble."""
    assert pack(np.uint8([0x1, 0x2]), 4).tolist() == [0x21]


def test_six_bit_order():
    """Four six-bit elements are a little-endian 24-bit number."""
    assert pack(np.uint8([1, 0, 0, 0x3F]), 6).tolist() == [0x01, 0x00, 0xFC]


@pytest.mark.parametrize("bits", [4, 6])
def test_unpad_undoes_pad(bits):
    """Padding to 16-byte chunks adds nothing that stays."""
    packed = pack(codes(bits, (3, 32)), bits)
    assert np.array_equal(packed, unpad(pad(packed, bits, fill=0xEE), bits))


def test_padding_fills_the_chunk():
    """FP4: 8 bytes of data, 8 of padding."""
    assert pad(np.arange(8, dtype=np.uint8), 4, 0xEE).tolist() == [*range(8), *[0xEE] * 8]
