"""tcgen05.mma on one CTA's operands, against plain numpy products."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.emulator.models import mma
from kernelpack.emulator.models.instruction_descriptor import INPUTS, Kind, MmaShape
from kernelpack.emulator.models.operands import from_bytes
from kernelpack.emulator.models.tcgen05_mma import Inputs, multiply, multiply_groups, summation
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode, encode

KINDS = [(kind, dtype) for kind in Kind for dtype in INPUTS[kind].values()]


def build(kind, dtype, **rest):
    d = DType.I32 if kind is Kind.I8 else DType.FP32
    scale = DType.UE8M0 if kind.is_block_scaled else None
    fields = {"kind": kind, "m": 128, "n": 16, "a": dtype, "b": dtype, "d": d, "scale": scale}
    return MmaShape(**(fields | rest))


def raw(dtype, rows, k, seed):
    """Bytes of small numbers, exact in every type."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, (rows, k)) / 2
    if dtype.is_integer:
        return rng.integers(0, 100, (rows, k)).astype(np.uint8)
    codes = encode(dtype, values)
    if dtype.bits < 8:
        groups = codes.reshape(rows, -1, 8)
        shifts = np.arange(8, dtype=np.uint64) * np.uint64(dtype.bits)
        words = (groups.astype(np.uint64) << shifts).sum(-1, dtype=np.uint64)
        return words[..., None].view(np.uint8)[..., : dtype.bits].reshape(rows, -1)
    return codes.astype(f"u{dtype.bits // 8}").view(np.uint8)


def inputs(shape, **rest):
    k = shape.k
    fields = {"a": raw(shape.a, 8, k, 1), "b": raw(shape.b, 16, k, 2), "d": None}
    if shape.scale:
        fields |= {
            "a_scales": np.full((8, 1), 127, np.uint8),
            "b_scales": np.full((16, 1), 127, np.uint8),
        }
    return Inputs(**(fields | rest))


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
@pytest.mark.parametrize("how", [mma.fast, mma.exact])
def test_product(kind, dtype, how):
    """D = A x B^T, for every kind and type; small numbers have no rounding."""
    shape = build(kind, dtype)
    x = inputs(shape)
    expected = from_bytes(x.a, dtype).astype(np.float64) @ from_bytes(x.b, dtype).T.astype(float)
    assert np.array_equal(expected, multiply(shape, x, how).view(shape.d.numpy))


def test_accumulates():
    """D's old words are added."""
    shape = build(Kind.F16, DType.BF16)
    x = inputs(shape)
    first = multiply(shape, x, mma.fast)
    twice = multiply(shape, inputs(shape, d=first), mma.fast)
    assert np.array_equal(2 * first.view(np.float32), twice.view(np.float32))


def test_scaled_accumulator():
    """scale-input-d divides D by a power of two first."""
    shape = build(Kind.F16, DType.BF16)
    d = np.full((8, 16), 8, np.float32).view(np.uint32)
    whole = multiply(shape, inputs(shape), mma.fast).view(np.float32)
    halved = multiply(shape, inputs(shape, d=d, scale_d=3), mma.fast)
    assert np.array_equal(whole + 1, halved.view(np.float32))


@pytest.mark.parametrize(
    ("a", "b", "sign"), [(True, False, -1), (False, True, -1), (True, True, 1)]
)
def test_negation(a, b, sign):
    """The negate bits change the sign of an operand."""
    plain = build(Kind.F16, DType.FP16)
    changed = build(Kind.F16, DType.FP16, negate_a=a, negate_b=b)
    expected = sign * multiply(plain, inputs(plain), mma.fast).view(np.float32)
    assert np.array_equal(expected, multiply(changed, inputs(changed), mma.fast).view(np.float32))


def test_half_result_is_in_the_low_half():
    """A 16-bit D leaves the upper half of its cell zero."""
    shape = build(Kind.F16, DType.FP16, d=DType.FP16)
    words = multiply(shape, inputs(shape), mma.fast)
    assert (words >> 16 == 0).all()
    assert np.array_equal(
        multiply(build(Kind.F16, DType.FP16), inputs(shape), mma.fast).view(np.float32),
        decode(DType.FP16, words),
    )


@pytest.mark.parametrize("how", [mma.fast, mma.exact])
@pytest.mark.parametrize(
    ("kind", "scale", "codes"),
    [(Kind.MXF4, DType.UE8M0, [128, 129]), (Kind.MXF4NVF4, DType.UE4M3, [0x38, 0x40, 0x44, 0x30])],
)
def test_block_scales(kind, scale, codes, how):
    """Each run of K has its own scale, for A and for B."""
    shape = build(kind, DType.E2M1, scale=scale)
    a_scales, b_scales = np.uint8([codes] * 8), np.uint8([codes] * 16)
    x = inputs(shape, a_scales=a_scales, b_scales=b_scales)
    spread = np.repeat(decode(scale, a_scales), 64 // len(codes), 1)[0]
    a, b = from_bytes(x.a, DType.E2M1) * spread, from_bytes(x.b, DType.E2M1) * spread
    assert np.array_equal(a @ b.T, multiply(shape, x, how).view(np.float32))


@pytest.mark.parametrize(
    ("kind", "dtype", "bits", "group"),
    [
        (Kind.F16, DType.BF16, 25, 1),
        (Kind.MXF8F6F4, DType.E4M3, 25, 1),
        (Kind.MXF4, DType.E2M1, 35, 16),
    ],
)
def test_summation(kind, dtype, bits, group):
    """The measured grids: 25 bits, and 35 for exact groups of 16 in FP4 kinds."""
    rule = summation(build(kind, dtype))
    assert (rule.fraction_bits, rule.group) == (bits, group)


def test_zero_columns():
    """A masked column of B is zero, even where it holds NaN."""
    shape = build(Kind.F16, DType.BF16)
    x = inputs(shape)
    b = x.b.copy()
    b[3] = 0xFF
    masked = inputs(shape, b=b, zeros=np.arange(16) == 3)
    expected = multiply(shape, x, mma.fast).view(np.float32) * (np.arange(16) != 3)
    assert np.array_equal(expected, multiply(shape, masked, mma.fast).view(np.float32))


@pytest.mark.parametrize(("kind", "dtype"), KINDS)
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_groups_of_lanes(kind, dtype, groups):
    """Each group's A makes its own part of D's columns, with all else that belongs to it."""
    shape = build(kind, dtype)
    d = np.arange(8 * 16, dtype=np.uint32).reshape(8, 16) % 7
    x = inputs(shape, d=d if kind is Kind.I8 else d.astype(np.float32).view(np.uint32))
    zeros = np.arange(16) % 5 == 0
    x = replace(x, zeros=zeros)
    if x.b_scales is not None:
        x = replace(x, b_scales=(125 + np.arange(16) % 4).astype(np.uint8)[:, None])
    matrices = [raw(dtype, 8, shape.k, 10 + g) for g in range(groups)]
    whole = [multiply(shape, replace(x, a=a), mma.fast) for a in matrices]
    owner = np.arange(16) * groups // 16
    expected = np.stack([whole[g][:, n] for n, g in enumerate(owner)], axis=1)
    assert np.array_equal(expected, multiply_groups(shape, matrices, x, mma.fast))
