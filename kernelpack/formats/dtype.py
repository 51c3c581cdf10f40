"""The element types kernelpack knows, and the integer that stands for each in a bundle.

The codes are written to files: never renumber, only append. `name` is the word a manifest uses.
Sub-byte types (e2m1, e2m3, e3m2) are counted in bits; numpy holds one element a byte.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np

from kernelpack.errors import KernelpackError


@dataclass(frozen=True, slots=True)
class _Facts:
    """The facts of one type: see the properties of DType."""

    bits: int
    numpy: np.dtype[Any]
    c_name: str
    kind: str


class DType(IntEnum):
    """One element type. The value is the stable code of bundle files."""

    U8 = 0
    I8 = 1
    U16 = 2
    I16 = 3
    U32 = 4
    I32 = 5
    U64 = 6
    I64 = 7
    FP16 = 8
    BF16 = 9
    FP32 = 10
    FP64 = 11
    TF32 = 12
    E4M3 = 13
    E5M2 = 14
    E2M3 = 15
    E3M2 = 16
    E2M1 = 17
    UE8M0 = 18
    UE4M3 = 19

    @classmethod
    def parse(cls, name: str, *, where: str = "") -> "DType":
        """Find the type a manifest calls `name`; KernelpackError names the nearest otherwise."""
        for dtype in cls:
            if dtype.label == name:
                return dtype
        names = [dtype.label for dtype in cls]
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"types: {', '.join(names)}"
        raise KernelpackError(f"unknown type `{name}`", where=where, hint=hint)

    @property
    def label(self) -> str:
        """The name in manifests and messages: `bf16`, `fp32`, `e4m3`, `u32`, ..."""
        return self.name.lower()

    @property
    def bits(self) -> int:
        """Bits of one element as packed in memory; 4 and 6 for the sub-byte types."""
        return _FACTS[self].bits

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy or ml_dtypes type; its item is one byte for sub-byte types, 4 for tf32."""
        return _FACTS[self].numpy

    @property
    def c_name(self) -> str:
        """The CUDA C++ type of one element (of the container, where C++ has no such type)."""
        return _FACTS[self].c_name

    @property
    def is_float(self) -> bool:
        """Whether values have an exponent; scale types (ue8m0, ue4m3) included."""
        return _FACTS[self].kind in ("float", "scale")

    @property
    def is_signed(self) -> bool:
        """Whether values below zero exist."""
        return _FACTS[self].kind in ("signed", "float")

    @property
    def is_integer(self) -> bool:
        """Whether values are integers."""
        return _FACTS[self].kind in ("signed", "unsigned")

    @property
    def integers(self) -> range:
        """The integers that its bits can hold."""
        least = -(1 << (self.bits - 1)) if self.is_signed else 0
        return range(least, least + (1 << self.bits))

    def bytes_of(self, elements: int) -> int:
        """Bytes of `elements` packed densely; an assert where they do not fill whole bytes."""
        bits = self.bits * elements
        assert bits % 8 == 0, f"{elements} x {self.label} is not a whole number of bytes"
        return bits // 8


def _facts(bits: int, numpy: object, c_name: str, kind: str) -> _Facts:
    return _Facts(bits, np.dtype(numpy), c_name, kind)  # type: ignore[call-overload]


_FACTS = {
    DType.U8: _facts(8, np.uint8, "unsigned char", "unsigned"),
    DType.I8: _facts(8, np.int8, "signed char", "signed"),
    DType.U16: _facts(16, np.uint16, "unsigned short", "unsigned"),
    DType.I16: _facts(16, np.int16, "short", "signed"),
    DType.U32: _facts(32, np.uint32, "unsigned int", "unsigned"),
    DType.I32: _facts(32, np.int32, "int", "signed"),
    DType.U64: _facts(64, np.uint64, "unsigned long long", "unsigned"),
    DType.I64: _facts(64, np.int64, "long long", "signed"),
    DType.FP16: _facts(16, np.float16, "__half", "float"),
    DType.BF16: _facts(16, ml_dtypes.bfloat16, "__nv_bfloat16", "float"),
    DType.FP32: _facts(32, np.float32, "float", "float"),
    DType.FP64: _facts(64, np.float64, "double", "float"),
    DType.TF32: _facts(32, np.float32, "float", "float"),
    DType.E4M3: _facts(8, ml_dtypes.float8_e4m3fn, "__nv_fp8_e4m3", "float"),
    DType.E5M2: _facts(8, ml_dtypes.float8_e5m2, "__nv_fp8_e5m2", "float"),
    DType.E2M3: _facts(6, ml_dtypes.float6_e2m3fn, "__nv_fp6_e2m3", "float"),
    DType.E3M2: _facts(6, ml_dtypes.float6_e3m2fn, "__nv_fp6_e3m2", "float"),
    DType.E2M1: _facts(4, ml_dtypes.float4_e2m1fn, "__nv_fp4_e2m1", "float"),
    DType.UE8M0: _facts(8, ml_dtypes.float8_e8m0fnu, "__nv_fp8_e8m0", "scale"),
    DType.UE4M3: _facts(8, ml_dtypes.float8_e4m3fn, "__nv_fp8_e4m3", "scale"),
}
