"""LoRA shrink as `run`, `verify` and the tests on a GPU see it."""

from itertools import product

from kernelpack.kernels.definition import Arrays, Definition, Expected
from kernelpack.kernels.lora_shrink_qkv import problem, reference
from kernelpack.kernels.lora_shrink_qkv.cases import cases, small
from kernelpack.kernels.lora_shrink_qkv.problem import ABIS, IN_DTYPES, KERNEL, OUT_DTYPES, Case


def _cases() -> tuple[Case, ...]:
    pairs = product(IN_DTYPES, OUT_DTYPES)
    return tuple(case for pair in pairs for case in cases(*pair))


def _small() -> tuple[Case, ...]:
    pairs = product(IN_DTYPES, OUT_DTYPES)
    return tuple(case for pair in pairs for case in small(*pair))


def _expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
    return {"c": reference.expected(arrays, case.problem.m, case.out_dtype)}


LORA_SHRINK_QKV = Definition(
    stem=KERNEL,
    abis=ABIS,
    cases=_cases,
    small=_small,
    case=problem.case_of,
    inputs=problem.inputs,
    expected=_expected,
)
