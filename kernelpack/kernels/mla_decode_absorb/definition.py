"""The step before decode attention, as `run`, `verify` and the tests on a GPU see it."""

from kernelpack.kernels.definition import Arrays, Definition, Expected, beginning
from kernelpack.kernels.mla_decode_absorb import reference
from kernelpack.kernels.mla_decode_absorb.cases import (
    EMULATED,
    Case,
    case_of,
    cases,
    inputs,
    small,
    telling,
)
from kernelpack.kernels.mla_decode_absorb.problem import ABIS, KERNEL


def _expected(case: Case, arrays: Arrays) -> dict[str, Expected]:
    return reference.expected(case.problem, arrays)


MLA_DECODE_ABSORB = Definition(
    stem=KERNEL,
    abis=ABIS,
    cases=cases,
    small=small,
    telling=telling,
    case=case_of,
    emulated=EMULATED,
    group=beginning("telling_at", "telling_row", "at", "heads", "tokens"),
    inputs=inputs,
    expected=_expected,
)
