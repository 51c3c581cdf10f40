"""The cache append as `run`, `verify` and the tests on a GPU see it."""

from kernelpack.kernels.definition import Arrays, Definition, Expected
from kernelpack.kernels.kv_cache_append import reference
from kernelpack.kernels.kv_cache_append.cases import (
    EMULATED,
    Case,
    case_of,
    cases,
    inputs,
    small,
    telling,
)
from kernelpack.kernels.kv_cache_append.problem import ABIS, KERNEL


def _expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
    return reference.expected(case.problem, arrays)


KV_CACHE_APPEND = Definition(
    stem=KERNEL,
    abis=ABIS,
    cases=cases,
    small=small,
    telling=telling,
    case=case_of,
    emulated=EMULATED,
    kind=lambda case: case.kind,
    inputs=inputs,
    expected=_expected,
)
