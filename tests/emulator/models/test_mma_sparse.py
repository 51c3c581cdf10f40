"""mma.sp: A's elements and their places (PTX ISA 9.7.14.6)."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.emulator.models import mma, mma_sparse
from kernelpack.emulator.models.fragments import a_fragment, b_fragment, d_fragment
from kernelpack.emulator.models.mma_sparse import Metadata, MmaSyncShape
from kernelpack.emulator.models.operands import from_codes
from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType
from tests.emulator.models.test_mma_sync import codes

SHAPES = [
    MmaSyncShape(m=16, k=k, a=a, b=b, c=d, d=d)
    for (a, b), (shapes, outputs) in mma_sparse._FORMS.items()
    for k in sorted(shapes)
    for d in sorted(outputs)
]
PAIRS = np.array([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)])


def sparse(shape, seed):
    """A dense A with half of its elements, its packed form, and four bits for each run."""
    rng = np.random.default_rng(seed)
    packed = codes(shape.a, (16, shape.k // 2), seed)
    dense = np.zeros((16, shape.k), packed.dtype)
    if shape.a is DType.TF32:
        places = rng.integers(0, 2, packed.shape)
        columns = 2 * np.arange(shape.k // 2) + places
        bits = np.where(places, 0b1110, 0b0100)
    else:
        pairs = PAIRS[rng.integers(0, 6, (16, shape.k // 4))]
        columns = (4 * np.arange(shape.k // 4)[None, :, None] + pairs).reshape(16, -1)
        bits = pairs[..., 0] | pairs[..., 1] << 2
    dense[np.arange(16)[:, None], columns] = packed
    return dense, packed, bits


def metadata(shape, bits, selector, noise):
    """What 32 threads hold, as the manual's pictures have it: element by element."""
    words = noise.copy()
    eight = shape.a.bits == 8
    for row in range(16):
        for run in range(bits.shape[1]):
            if eight:  # 8 runs a word; row g in even threads, row g + 8 in odd ones
                member, at = 2 * (run // 8) + row // 8 + 2 * selector, 4 * (run % 8)
            else:  # 4 runs a half word; row g in the low half, row g + 8 in the high one
                count = bits.shape[1] // 4
                member, at = run // 4 + count * selector, 4 * (run % 4) + 16 * (row // 8)
            thread = 4 * (row % 8) + member
            words[thread] &= np.uint32(~(0xF << at) & 0xFFFFFFFF)
            words[thread] |= np.uint32(int(bits[row, run]) << at)
    return words


@pytest.mark.parametrize("how", [mma.fast, mma.exact])
@pytest.mark.parametrize("shape", SHAPES)
def test_product(shape, how):
    """D = A x B + C for every form and selector; what other threads hold makes no difference."""
    dense, packed, bits = sparse(shape, 1)
    y, z = codes(shape.b, (8, shape.k), 2), codes(shape.d, (16, 8), 3)
    wide = [
        from_codes(v, t).astype(np.float64)
        for v, t in ((dense, shape.a), (y, shape.b), (z, shape.d))
    ]
    noise = np.random.default_rng(4).integers(0, 2**32, 32, np.uint32)
    for selector in range(mma_sparse.selectors(shape)):
        registers, is_right = mma_sparse.multiply(
            shape,
            a_fragment(16, shape.k // 2, shape.a.bits).registers(packed),
            b_fragment(shape.k, shape.b.bits).registers(y),
            d_fragment(16, 8, shape.d.bits).registers(z),
            Metadata(metadata(shape, bits, selector, noise), selector, ordered=True),
            how,
        )
        result = from_codes(d_fragment(16, 8, shape.d.bits).matrix(registers), shape.d)
        assert is_right
        assert np.array_equal(wide[0] @ wide[1].T + wide[2], result)


@pytest.mark.parametrize(
    ("bits", "ordered", "right"),
    [
        (0x44444444, True, True),
        (0x11111111, True, False),
        (0x11111111, False, True),
        (0, False, False),
    ],
)
def test_metadata(bits, ordered, right):
    """Two places of each four, and for ordered ones the lower first."""
    shape = MmaSyncShape(m=16, k=16, a=DType.FP16, b=DType.FP16, c=DType.FP32, d=DType.FP32)
    zeros = np.zeros((4, 32), np.uint32)
    told = Metadata(np.full(32, bits, np.uint32), 0, ordered)
    assert mma_sparse.multiply(shape, zeros[:2], zeros[:2], zeros, told, mma.fast)[1] == right


@pytest.mark.parametrize(("k", "selectors"), [(8, 4), (16, 2)])
def test_metadata_of_tf32(k, selectors):
    """Four bits of which two patterns mean something."""
    shape = MmaSyncShape(m=16, k=k, a=DType.TF32, b=DType.TF32, c=DType.FP32, d=DType.FP32)
    assert mma_sparse.selectors(shape) == selectors
    a, zeros = np.zeros((k // 4, 32), np.uint32), np.zeros((4, 32), np.uint32)
    for bits, right in ((0x44444444, True), (0xEEEEEEEE, True), (0x99999999, False)):
        told = Metadata(np.full(32, bits, np.uint32), 0, ordered=True)
        assert mma_sparse.multiply(shape, a, a, zeros, told, mma.fast)[1] == right


def test_unknown_form():
    """A shape or type that is not modelled is named."""
    with pytest.raises(UnsupportedError, match=r"mma\.sp\.sync\.m16n8k64 of"):
        mma_sparse.check(replace(SHAPES[0], k=64))
