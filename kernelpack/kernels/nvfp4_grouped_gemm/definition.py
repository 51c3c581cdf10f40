"""The NVFP4 grouped GEMM as `run`, `verify` and the tests on a GPU see it."""

from collections.abc import Callable
from functools import partial

from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Arrays, Definition, Expected
from kernelpack.kernels.nvfp4.problem import EMULATED, OUT_DTYPES
from kernelpack.kernels.nvfp4_grouped_gemm import problem, reference
from kernelpack.kernels.nvfp4_grouped_gemm.cases import cases, small, telling
from kernelpack.kernels.nvfp4_grouped_gemm.problem import ABIS, KERNEL, Case


def _of_all_types(listed: Callable[[DType], tuple[Case, ...]]) -> tuple[Case, ...]:
    return tuple(case for out_dtype in OUT_DTYPES for case in listed(out_dtype))


def _expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
    return {"c": reference.expected(arrays, case.out_dtype)}


NVFP4_GROUPED_GEMM = Definition(
    stem=KERNEL,
    abis=ABIS,
    cases=partial(_of_all_types, cases),
    small=partial(_of_all_types, small),
    telling=partial(_of_all_types, telling),
    case=problem.case_of,
    emulated=EMULATED,
    inputs=problem.inputs,
    steering=problem.steering,
    expected=_expected,
)
