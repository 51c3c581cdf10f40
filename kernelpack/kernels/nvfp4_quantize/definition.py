"""The NVFP4 quantiser as `run`, `verify` and the tests on a GPU see it."""

from collections.abc import Callable
from functools import partial

from kernelpack.kernels.definition import Arrays, Definition, Expected
from kernelpack.kernels.nvfp4_quantize import problem, reference
from kernelpack.kernels.nvfp4_quantize.cases import cases, small, telling
from kernelpack.kernels.nvfp4_quantize.problem import ABIS, IN_DTYPES, KERNEL, Case


def _of_all_types(listed: Callable[..., tuple[Case, ...]]) -> tuple[Case, ...]:
    return tuple(case for dtype in IN_DTYPES for case in listed(dtype))


def _expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
    return reference.expected(arrays, case.problem.scale_blocks)


NVFP4_QUANTIZE = Definition(
    stem=KERNEL,
    abis=ABIS,
    cases=partial(_of_all_types, cases),
    small=partial(_of_all_types, small),
    telling=partial(_of_all_types, telling),
    case=problem.case_of,
    emulated=problem.EMULATED,
    inputs=problem.inputs,
    steering=problem.steering,
    expected=_expected,
)
