"""Limits that can be checked before anything is compiled: budgets, launches, boxes, names.

Only constants of a variant are checked against the limits of its target; a launch that depends
on a problem's sizes is checked when it is resolved (`spec.launch`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from kernelpack.errors import BudgetError, ManifestError, TensorMapError
from kernelpack.spec import tensormap
from kernelpack.spec.expr import Expr
from kernelpack.spec.params import MapParam, ScalarParam, block_bytes
from kernelpack.spec.tensormap import TensorMap, TensorMapSpec
from kernelpack.spec.variant import Variant

PARAMETER_BYTES = 4096
"""The limit of every toolchain and driver; more needs a launch that few of them know."""

_FREE = 1 << 20
"""A size and a stride in bytes that break no rule of a tensor map."""


def check_budgets(variants: Sequence[Variant]) -> None:
    """Check variants against the limits of their targets, and their names against each other.

    Raises:
        BudgetError: a variant asks for more than its target has, or than its own budget.
        TensorMapError: a box breaks a rule of the TMA unit.
        ManifestError: two variants have one id, or one target gets the same entry twice.

    """
    _check_names(variants)
    for variant in variants:
        for bound in _bounds(variant):
            bound.check(variant.id)
        _check_boxes(variant)


def _check_names(variants: Sequence[Variant]) -> None:
    ids = Counter(variant.id for variant in variants)
    entries = Counter(f"{variant.entry} for {variant.arch}" for variant in variants)
    for kind, counts in (("id", ids), ("entry", entries)):
        for name, count in counts.items():
            if count > 1:
                hint = "give every manifest its own `kernel`, and axes values that differ"
                raise ManifestError(f"{count} variants have the {kind} {name}", hint=hint)


@dataclass(frozen=True, slots=True)
class _Bound:
    """A quantity of a variant, and its least and greatest allowed value."""

    what: str
    value: int
    most: int
    least: int = 0

    def check(self, where: str) -> None:
        if self.value < self.least:
            rule = f"{self.what} must be at least {self.least}, not {self.value}"
            raise BudgetError(rule, where=where)
        if self.value > self.most:
            rule = f"{self.what} must be at most {self.most}, not {self.value}"
            raise BudgetError(rule, where=where)


def _bounds(variant: Variant) -> Iterator[_Bound]:
    limits, budget = variant.arch.limits, variant.budget
    yield _Bound("budget: registers", budget.registers, limits.registers_per_thread)
    yield _Bound("budget: shared_bytes", budget.shared_bytes, limits.shared_bytes)
    columns = budget.tensor_memory_columns
    yield _Bound("budget: tensor_memory_columns", columns, limits.tensor_memory_columns)
    yield _Bound("bytes of parameters", block_bytes(variant.slots), PARAMETER_BYTES)
    shared = variant.launch.shared_bytes.constant
    if shared is not None:
        yield _Bound("launch: shared_bytes", shared, budget.shared_bytes)
    yield from _launch_bounds(variant)
    yield from _scalar_bounds(variant)


def _launch_bounds(variant: Variant) -> Iterator[_Bound]:
    limits, launch = variant.arch.limits, variant.launch
    yield from _sides("grid", launch.grid, limits.grid)
    yield from _sides("block", launch.block, limits.block)
    yield from _sides("cluster", launch.cluster, (limits.cluster,) * 3)
    threads = _product(launch.block)
    if threads is not None:
        yield _Bound("launch: threads of a block", threads, limits.threads)
        come_by = variant.arch.target.multiprocessor.registers_come_by
        registers = -(-variant.budget.registers // come_by) * come_by
        yield _Bound("registers of a block", registers * threads, limits.registers)
    blocks = _product(launch.cluster)
    if blocks is not None:
        yield _Bound("launch: blocks of a cluster", blocks, limits.cluster)


def _sides(what: str, sides: Sequence[Expr], most: Sequence[int]) -> Iterator[_Bound]:
    for axis, side, bound in zip("xyz", sides, most, strict=True):
        if side.constant is not None:
            yield _Bound(f"launch: {what}.{axis}", side.constant, bound, least=1)


def _scalar_bounds(variant: Variant) -> Iterator[_Bound]:
    """A parameter that is the same in every launch must fit its type."""
    for param in variant.params:
        if isinstance(param, ScalarParam) and param.value.constant is not None:
            values = param.dtype.integers
            what = f"`{param.name}`, a {param.dtype.label},"
            yield _Bound(what, param.value.constant, values.stop - 1, values.start)


def _product(exprs: Sequence[Expr]) -> int | None:
    values = [expr.constant for expr in exprs]
    return None if None in values else prod(value for value in values if value is not None)


def _check_boxes(variant: Variant) -> None:
    for param in variant.params:
        if isinstance(param, MapParam):
            try:
                _check_box(param.map)
            except TensorMapError as error:
                where = f"{variant.id}: {error.where}"
                raise TensorMapError(error.what, where=where, hint=error.hint) from error


def _check_box(spec: TensorMapSpec) -> None:
    """Check a box against the rules, where it is constant, over a tensor that breaks none."""
    box = [size.constant for size in spec.box]
    if None in box:
        return
    rank = len(spec.dims)
    tensormap.check(
        TensorMap(
            name=spec.name,
            element=spec.element,
            address=0,
            dims=(_FREE,) * rank,
            strides_bytes=(_FREE,) * (rank - 1),
            box=tuple(size for size in box if size is not None),
            element_strides=(1,) * rank,
            swizzle=spec.swizzle,
            interleave=spec.interleave,
            fill=spec.fill,
            promotion=spec.promotion,
            gather4=spec.gather4,
        )
    )
