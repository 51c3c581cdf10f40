"""The cases of the NVFP4 grouped GEMM; every other one has scale blocks that no group owns."""

from dataclasses import replace

from kernelpack.formats.dtype import DType
from kernelpack.kernels.nvfp4 import cases as shared
from kernelpack.kernels.nvfp4_grouped_gemm.problem import Case


def cases(out_dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """Every case to verify, for one type of output."""
    listed = shared.cases(Case, out_dtype)
    return tuple(replace(case, spare_blocks=case.seed % 2) for case in listed)


def small(out_dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return shared.small(cases(out_dtype))


def telling(out_dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """The few cases that every variant is verified on, as far as it serves them."""
    return shared.telling(cases(out_dtype))
