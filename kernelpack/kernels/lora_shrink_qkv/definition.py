"""LoRA shrink as `run`, `verify` and the tests on a GPU see it."""

from collections.abc import Callable
from functools import partial
from itertools import product

from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Arrays, Definition, Expected
from kernelpack.kernels.lora_shrink_qkv import problem, reference
from kernelpack.kernels.lora_shrink_qkv.cases import cases, small, telling
from kernelpack.kernels.lora_shrink_qkv.problem import ABIS, IN_DTYPES, KERNEL, OUT_DTYPES, Case


def _of_all_types(listed: Callable[[DType, DType], tuple[Case, ...]]) -> tuple[Case, ...]:
    return tuple(case for pair in product(IN_DTYPES, OUT_DTYPES) for case in listed(*pair))


def _expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
    return {"c": reference.expected(arrays, case.problem.m, case.out_dtype)}


LORA_SHRINK_QKV = Definition(
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
