"""The decode attention as `run`, `verify` and the tests on a GPU see it."""

from collections.abc import Callable
from functools import partial

from kernelpack.kernels.definition import Arrays, Definition, Expected, beginning
from kernelpack.kernels.mla_decode_attention import reference
from kernelpack.kernels.mla_decode_attention.cases import GROUPS, ROWS, cases, small, telling
from kernelpack.kernels.mla_decode_attention.inputs import Case, inputs, steering
from kernelpack.kernels.mla_decode_attention.problem import ABIS, KERNEL
from kernelpack.kernels.mla_decode_attention.typed import EMULATED, case_of
from kernelpack.kernels.sparse_mla_prefill.rows import Rows


def _of_all_rows(listed: Callable[[Rows], tuple[Case, ...]]) -> tuple[Case, ...]:
    return tuple(case for rows in ROWS for case in listed(rows))


def _expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
    return reference.expected(case.problem, arrays)


MLA_DECODE_ATTENTION = Definition(
    stem=KERNEL,
    abis=ABIS,
    cases=partial(_of_all_rows, cases),
    small=partial(_of_all_rows, small),
    telling=partial(_of_all_rows, telling),
    case=case_of,
    emulated=EMULATED,
    kind=lambda case: case.kind,
    group=beginning(*GROUPS),
    inputs=inputs,
    steering=steering,
    expected=_expected,
)
