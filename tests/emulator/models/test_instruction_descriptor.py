"""The instruction descriptor's bits, PTX ISA 9.1, 9.7.16.4.2."""

import pytest

from kernelpack.emulator.models.fault import UnitFault
from kernelpack.emulator.models.instruction_descriptor import (
    INPUTS,
    OUTPUTS,
    Kind,
    MmaShape,
    decode,
    encode,
)
from kernelpack.errors import UnsupportedError
from kernelpack.formats.dtype import DType

PLAIN = [
    (kind, a, b, d)
    for kind in OUTPUTS
    for a in INPUTS[kind].values()
    for b in INPUTS[kind].values()
    for d in OUTPUTS[kind].values()
]


@pytest.mark.parametrize(("kind", "a", "b", "d"), PLAIN)
def test_types_survive(kind, a, b, d):
    """decode(encode(x)) is x for every combination of types."""
    shape = MmaShape(kind=kind, m=128, n=256, a=a, b=b, d=d)
    assert decode(kind, encode(shape)) == shape


@pytest.mark.parametrize(
    "change",
    [
        {"negate_a": True},
        {"negate_b": True},
        {"a_mn_major": True},
        {"b_mn_major": True},
        {"max_shift": 3},
        {"m": 64, "n": 8},
        {"m": 256, "n": 16},
    ],
)
def test_fields_survive(change):
    """Every modifier has bits of its own."""
    fields = {"kind": Kind.F16, "m": 128, "n": 64, "a": DType.BF16, "b": DType.BF16} | change
    shape = MmaShape(**fields)
    assert decode(Kind.F16, encode(shape)) == shape


@pytest.mark.parametrize("kind", [Kind.MXF8F6F4, Kind.MXF4, Kind.MXF4NVF4])
@pytest.mark.parametrize("scale", [DType.UE8M0, DType.UE4M3])
@pytest.mark.parametrize(("m", "sfa", "sfb"), [(128, 0, 2), (256, 2, 0), (128, 3, 1)])
def test_scaled_fields_survive(kind, scale, m, sfa, sfb):
    """Scale type and ids, and M in units of 128."""
    shape = MmaShape(
        kind=kind, m=m, n=128, a=DType.E2M1, b=DType.E2M1, scale=scale, sfa_id=sfa, sfb_id=sfb
    )
    assert decode(kind, encode(shape)) == shape


def test_bits_of_a_known_descriptor():
    """bf16 x bf16 -> fp32, 128 x 256: the constant that kernels write."""
    raw = 1 << 4 | 1 << 7 | 1 << 10 | 256 // 8 << 17 | 128 // 16 << 24
    assert encode(MmaShape(kind=Kind.F16, m=128, n=256, a=DType.BF16, b=DType.BF16)) == raw


@pytest.mark.parametrize(
    ("kind", "k"), [(Kind.TF32, 8), (Kind.F16, 16), (Kind.F8F6F4, 32), (Kind.MXF4, 64)]
)
def test_k_is_256_bits(kind, k):
    """K of an instruction is 32 bytes of its widest element."""
    a = next(iter(INPUTS[kind].values()))
    assert MmaShape(kind=kind, m=128, n=64, a=a, b=a).k == k


@pytest.mark.parametrize(
    ("kind", "raw", "matrix"),
    [(Kind.F16, 1 << 4 | 3 << 7, "A"), (Kind.TF32, 2 << 4, "A"), (Kind.F16, 3 << 4, "D")],
)
def test_unknown_type_code(kind, raw, matrix):
    """A code that no type has is a fault that names the matrix."""
    with pytest.raises(UnitFault, match=f"matrix {matrix}"):
        decode(kind, raw)


def test_reserved_bits_are_kept():
    """Bits that must be zero are reported, not dropped."""
    plain = encode(MmaShape(kind=Kind.F16, m=128, n=64, a=DType.FP16, b=DType.FP16))
    assert decode(Kind.F16, plain | 1 << 23).reserved == 1 << 23


def test_sparse_is_not_modelled():
    """A sparse MMA is refused."""
    with pytest.raises(UnsupportedError, match="sparse"):
        decode(Kind.F16, 1 << 2)


def test_k_96_is_not_modelled():
    """K = 96 exists on sm_103a only."""
    with pytest.raises(UnsupportedError, match="K = 96"):
        decode(Kind.MXF4, 1 << 31)


@pytest.mark.parametrize(("kind", "padded"), [(Kind.F8F6F4, True), (Kind.MXF4, False)])
def test_padding(kind, padded):
    """4- and 6-bit elements are padded in the kinds that mix them with 8-bit ones."""
    assert kind.is_padded == padded
