"""Partial evaluation: what an expression still says once some of its names have values.

A part that depends on no other name becomes its value, and the branch that a constant condition
never takes is gone: a program that launches does less work, and a bundle is smaller. A part that
has no value (a zero divisor) stays as it is, and is an error only if it is reached.
"""

from collections.abc import Mapping
from contextlib import suppress
from itertools import chain

from kernelpack.errors import ExpressionError
from kernelpack.spec.expr import ARITY, ASKING, Expr, Op, applied, constant, evaluate

_Code = tuple[tuple[Op, int | str], ...]


def partial(expr: Expr, values: Mapping[str, int]) -> Expr:
    """The expression with `values` put in and worked out as far as they allow."""
    stack: list[_Code] = []
    for op, value in expr.code:
        if op is Op.NAME and value in values:
            stack.append(((Op.CONST, values[str(value)]),))
        elif not ARITY[op]:
            stack.append(((op, value),))
        else:
            operands = stack[-ARITY[op] :]
            del stack[-ARITY[op] :]
            stack.append(_apply(op, value, operands))
    code = stack.pop()
    return constant(int(code[0][1])) if _is_constant(code) else _settled(expr, code)


def _settled(expr: Expr, code: _Code) -> Expr:
    """An expression that depends on something; evaluated once if it does not, for its error."""
    rest = Expr(expr.text, code)
    return rest if rest.names or rest.asks_device else constant(evaluate(rest, {}))


def _is_constant(code: _Code) -> bool:
    return len(code) == 1 and code[0][0] is Op.CONST


def _apply(op: Op, value: int | str, operands: list[_Code]) -> _Code:
    if op is Op.SELECT and _is_constant(operands[0]):
        return operands[1] if operands[0][0][1] else operands[2]
    if op not in ASKING and all(map(_is_constant, operands)):
        with suppress(ExpressionError):  # a part without a value stays as it is
            return ((Op.CONST, applied(op, [int(part[0][1]) for part in operands], "")),)
    return (*chain.from_iterable(operands), (op, value))
