"""What tcgen05.mma allows, PTX ISA 9.1, table 39 and 9.7.16.10."""

import pytest

from kernelpack.emulator.models.instruction_descriptor import Kind, MmaShape
from kernelpack.emulator.models.instruction_rules import Use, lint, lint_operand
from kernelpack.emulator.models.mma_descriptor import SharedDescriptor
from kernelpack.formats.dtype import DType
from kernelpack.spec.tensormap import Swizzle

BF16 = {"kind": Kind.F16, "m": 128, "n": 128, "a": DType.BF16, "b": DType.BF16}
FP8 = {"kind": Kind.F8F6F4, "m": 128, "n": 128, "a": DType.E4M3, "b": DType.E4M3}
I8 = {"kind": Kind.I8, "m": 128, "n": 128, "a": DType.I8, "b": DType.I8, "d": DType.I32}
MX8 = FP8 | {"kind": Kind.MXF8F6F4, "scale": DType.UE8M0}
NV4 = {
    "kind": Kind.MXF4NVF4,
    "m": 128,
    "n": 128,
    "a": DType.E2M1,
    "b": DType.E2M1,
    "scale": DType.UE4M3,
}


@pytest.mark.parametrize(
    ("fields", "use"),
    [
        (BF16, {}),
        (BF16 | {"m": 64, "n": 8}, {}),
        (BF16 | {"m": 256, "n": 16}, {"cta_group": 2}),
        (BF16 | {"m": 32, "n": 64}, {"ws": True}),
        (BF16 | {"b_mn_major": True, "n": 8}, {}),
        (FP8 | {"b_mn_major": True, "n": 16}, {}),
        (I8 | {"n": 24}, {}),
        (I8 | {"n": 48}, {}),
        (MX8 | {"sfa_id": 3}, {"blocks": 1}),
        (NV4, {"blocks": 4}),
        (NV4 | {"scale": DType.UE8M0, "sfb_id": 2}, {"blocks": 2}),
        (BF16 | {"n": 16}, {"a_in_tensor_memory": True}),
    ],
)
def test_allowed(fields, use):
    """Forms of the manual's tables are reported by nothing."""
    assert not lint(MmaShape(**fields), Use(**use))


@pytest.mark.parametrize(
    ("fields", "use", "rule"),
    [
        (BF16 | {"m": 256}, {}, "instruction-m"),
        (BF16 | {"m": 64}, {"cta_group": 2}, "instruction-m"),
        (MX8 | {"m": 64}, {"blocks": 1}, "instruction-m"),
        (BF16 | {"n": 0}, {}, "instruction-n"),
        (BF16 | {"n": 8}, {"cta_group": 2}, "instruction-n"),
        (BF16 | {"n": 32}, {"ws": True}, "instruction-n"),
        (I8 | {"n": 40}, {}, "instruction-n"),
        (BF16 | {"n": 64}, {"ws": True, "cta_group": 2}, "instruction-ws"),
        (BF16 | {"n": 8}, {"a_in_tensor_memory": True}, "instruction-narrow-n"),
        (BF16 | {"reserved": 1 << 6}, {}, "instruction-reserved"),
        (BF16 | {"max_shift": 1}, {}, "instruction-reserved"),
        (BF16 | {"d": DType.FP16}, {}, "instruction-type"),
        (BF16 | {"b": DType.FP16}, {}, "instruction-type"),
        (I8 | {"negate_a": True}, {}, "instruction-negate"),
        (BF16 | {"saturate": True}, {}, "instruction-saturate"),
        (FP8 | {"a": DType.E2M1, "a_mn_major": True}, {}, "instruction-transpose"),
        (FP8 | {"b_mn_major": True, "n": 8}, {}, "instruction-transpose"),
        (MX8, {"blocks": 2}, "instruction-scale"),
        (MX8 | {"scale": DType.UE4M3}, {"blocks": 1}, "instruction-scale"),
        (NV4 | {"sfa_id": 2}, {"blocks": 4}, "instruction-scale-id"),
    ],
)
def test_refused(fields, use, rule):
    """Each rule is reported by its name, once."""
    assert [found.rule.name for found in lint(MmaShape(**fields), Use(**use))] == [rule]


TF32 = {"kind": Kind.TF32, "m": 128, "n": 128, "a": DType.TF32, "b": DType.TF32}


@pytest.mark.parametrize(
    ("fields", "swizzle", "mn_major", "wrong"),
    [
        (BF16, Swizzle.B128, True, False),
        (BF16, Swizzle.B128_ATOM32, True, True),
        (TF32, Swizzle.B128_ATOM32, True, False),
        (TF32, Swizzle.B128, True, True),
        (TF32, Swizzle.B128, False, False),
    ],
)
def test_transposed_swizzle(fields, swizzle, mn_major, wrong):
    """tf32 is transposed with 32-byte atoms only, everything else never with them."""
    descriptor = SharedDescriptor(
        unit="tcgen05", start=0, leading_bytes=0, stride_bytes=1024, swizzle=swizzle
    )
    found = lint_operand(MmaShape(**fields), descriptor, mn_major=mn_major)
    assert bool(found) == wrong
