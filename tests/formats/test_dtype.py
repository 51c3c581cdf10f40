"""The table of element types."""

import pytest

from kernelpack.errors import KernelpackError
from kernelpack.formats.dtype import DType

CODES = (
    *("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "fp16", "bf16", "fp32", "fp64"),
    *("tf32", "e4m3", "e5m2", "e2m3", "e3m2", "e2m1", "ue8m0", "ue4m3"),
)


@pytest.mark.parametrize(("code", "name"), list(enumerate(CODES)))
def test_code_is_stable(code, name):
    """A code written to a bundle means the same type for ever."""
    assert DType.parse(name) == code


@pytest.mark.parametrize("dtype", list(DType))
def test_numpy_item_holds_the_bits(dtype):
    """A numpy item is the packed width rounded up to bytes."""
    assert -(-dtype.bits // 8) == dtype.numpy.itemsize


@pytest.mark.parametrize(
    ("name", "bits"), [("e2m1", 4), ("e2m3", 6), ("e3m2", 6), ("e4m3", 8), ("tf32", 32)]
)
def test_bits(name, bits):
    """Sub-byte types are counted in bits."""
    assert bits == DType.parse(name).bits


def test_bytes_of_sub_byte():
    """Sixteen FP4 elements take eight bytes."""
    assert DType.E2M1.bytes_of(16) == 8


def test_scale_types_are_floats_without_sign():
    """ue8m0 has an exponent and no sign."""
    assert (DType.UE8M0.is_float, DType.UE8M0.is_signed) == (True, False)


def test_integers():
    """Signedness of an integer type is in its name."""
    unsigned = [d.label for d in DType if d.is_integer and not d.is_signed]
    assert unsigned == ["u8", "u16", "u32", "u64"]


def test_c_name():
    """The C name is what nvrtc knows with cuda_bf16.h included."""
    assert DType.BF16.c_name == "__nv_bfloat16"


def test_unknown_name_is_refused_with_the_nearest():
    """A misspelt type names the one that was probably meant."""
    with pytest.raises(KernelpackError, match="did you mean `bf16`"):
        DType.parse("bf61", where="m.yaml:3")


def test_far_name_lists_the_types():
    """A name like no other lists what there is."""
    with pytest.raises(KernelpackError, match="types: u8, i8"):
        DType.parse("quaternion")


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [(DType.U8, 0, 255), (DType.I8, -128, 127), (DType.I64, -(2**63), 2**63 - 1)],
)
def test_values(dtype, least, most):
    """An integer type's values, from the least to the most."""
    assert (least, most) == (dtype.integers[0], dtype.integers[-1])
