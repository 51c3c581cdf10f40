"""Sparse MLA prefill as `run`, `verify` and the tests on a GPU see it."""

from collections.abc import Callable
from functools import partial

from kernelpack.kernels.definition import Arrays, Definition, Expected, beginning
from kernelpack.kernels.sparse_mla_prefill import reference
from kernelpack.kernels.sparse_mla_prefill.cases import cases, small, telling
from kernelpack.kernels.sparse_mla_prefill.inputs import Case, inputs, steering
from kernelpack.kernels.sparse_mla_prefill.problem import ABIS, KERNEL
from kernelpack.kernels.sparse_mla_prefill.rows import ROWS, Rows
from kernelpack.kernels.sparse_mla_prefill.typed import EMULATED, case_of


def _of_all_rows(listed: Callable[[Rows], tuple[Case, ...]]) -> tuple[Case, ...]:
    return tuple(case for rows in ROWS for case in listed(rows))


def _expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
    return reference.expected(case.problem, arrays)


SPARSE_MLA_PREFILL = Definition(
    stem=KERNEL,
    abis=ABIS,
    cases=partial(_of_all_rows, cases),
    small=partial(_of_all_rows, small),
    telling=partial(_of_all_rows, telling),
    case=case_of,
    emulated=EMULATED,
    kind=lambda case: case.kind,
    group=beginning("heads", "topk", "page", "indices", "length", "values", "layers"),
    inputs=inputs,
    steering=steering,
    expected=_expected,
)
