"""The cases of the grouped GEMM of bf16 tokens and NVFP4 weights."""

from kernelpack.formats.dtype import DType
from kernelpack.kernels.nvfp4 import cases as shared
from kernelpack.kernels.nvfp4.problem import Case


def cases(out_dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """Every case to verify, for one type of output."""
    return shared.cases(Case, out_dtype)


def small(out_dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return shared.small(cases(out_dtype))


def telling(out_dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """The few cases that every variant is verified on, as far as it serves them."""
    return shared.telling(cases(out_dtype))
