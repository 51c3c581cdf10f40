"""Check an oracle's cases against a kernel: names, sizes and numbers must be the manifest's.

So a slip in them is reported before anything runs, never as a fault of the kernel.
"""

from collections.abc import Mapping

from kernelpack.errors import OracleError, ProblemError
from kernelpack.kernels import oracle
from kernelpack.kernels.definition import Case, Definition
from kernelpack.spec.launch import numbers_of
from kernelpack.spec.nearest import nearest
from kernelpack.spec.number import rounded
from kernelpack.spec.params import NumberParam
from kernelpack.spec.select import sizes_of
from kernelpack.spec.variant import DEVICE_SIZES, Variant


def check(definition: Definition, variant: Variant) -> None:
    """Refuse cases that are not problems of the manifest.

    Raises:
        OracleError: a size is missing, or a number without a default; one is not of the kernel,
            or has a value that it cannot have.

    """
    if not definition.origin:
        return
    cases = definition.cases()
    _check_names(definition, variant, cases[0].sizes)
    for case in cases:
        try:
            _check_values(variant, case)
        except ProblemError as error:
            what = f"the case `{case.name}`: {error.where} {error.what}"
            raise OracleError(what, where=definition.origin, hint=error.hint) from error


def _check_names(definition: Definition, variant: Variant, given: Mapping[str, float]) -> None:
    wanted = {size.name: size.doc for size in variant.sizes if size.name not in DEVICE_SIZES}
    wanted |= {number.name: number.doc for number in variant.numbers}
    defaults = {number.name for number in variant.numbers if number.default is not None}
    for name in given:
        if name not in wanted:
            hint = nearest(name, wanted) or f"its sizes: {', '.join(wanted)}"
            what = f"cases give `{name}`, which is not a size of the manifest"
            raise OracleError(what, where=definition.origin, hint=hint)
    for name, doc in wanted.items():
        if name not in given and name not in defaults:
            what, hint = f"cases give no `{name}`: {doc}", "give each case a value"
            raise OracleError(what, where=definition.origin, hint=hint)


def _check_values(variant: Variant, case: Case) -> None:
    """Refuse a size that is not an integer from 0, and a number beyond its parameter's type.

    Raises:
        ProblemError: names the size or the number.

    """
    sizes_of(case.sizes, variant)
    given = dict(case.given) if isinstance(case, oracle.Case) else {}
    for number in variant.numbers:
        if isinstance(word := given.get(number.name), str):
            what = f"must be a number, not the word `{word}`"
            raise ProblemError(what, where=f"`{number.name}`")
    numbers = numbers_of(variant, case.sizes)
    for param in variant.params:
        if isinstance(param, NumberParam):
            rounded(numbers[param.number], param.dtype, param.name)
