"""Sides of arrays, read backwards: the size that a side of so many elements says."""

from collections.abc import Iterable

from kernelpack.spec.expr import Expr, Op
from kernelpack.spec.params import Argument
from kernelpack.spec.variant import Variant

_READ = (Op.MUL, Op.ADD)


def named_alone(side: Expr, found: int) -> tuple[str, int]:
    """The size that a side is, and its value; an empty name where it is not a size."""
    match side.code:
        case ((Op.NAME, str(name)),):
            return name, found
    return "", 0


def solved(side: Expr, found: int) -> tuple[str, int]:
    """The size that a side of two terms says, likewise."""
    match side.code:
        case ((Op.CONST, int(by)), (Op.NAME, str(name)), (Op.MUL, _)) | (
            (Op.NAME, str(name)),
            (Op.CONST, int(by)),
            (Op.MUL, _),
        ) if by and found % by == 0:
            return name, found // by
        case ((Op.NAME, str(name)), (Op.CONST, int(more)), (Op.ADD, _)) if found >= more:
            return name, found - more
    return "", 0


def counted(variants: Iterable[Variant]) -> frozenset[str]:
    """The sizes that count elements, being sides of arrays: a truth or a type does not count."""
    return frozenset().union(*(says(argument) for v in variants for argument in v.arguments))


def says(argument: Argument) -> frozenset[str]:
    """The sizes that the sides of an argument say."""
    return frozenset(counted_by(side) for side in argument.shape) - {""}


def counted_by(side: Expr) -> str:
    """The size that a side is, or is a multiple of, or is one more than."""
    names = [name for op, name in side.code if op is Op.NAME]
    is_read = len(side.code) == 1 or (len(side.code) == 3 and side.code[-1][0] in _READ)
    return str(names[0]) if is_read and len(names) == 1 else ""
