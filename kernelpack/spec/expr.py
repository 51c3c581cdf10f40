"""Integer expressions of a manifest: parse, fold, evaluate. Never `eval`.

The language is a small part of Python's expressions over 64-bit signed integers:
`+ - * // %`, comparisons (chains too), `and or not`, `a if c else b`, parentheses, and the
functions `min max cdiv align_up align_down pow2_floor most_parts fitting_clusters fitting_ctas`. A
quoted word is a symbol: a data type's code, or a word to compare with an axis. Every other word is
a name, looked up when the expression is evaluated. The last two functions ask the device, which
only a launch can: how many clusters of so many CTAs run at once, and the most CTAs of a cluster so
that so many do. `most_parts(vectors, splits)` is for kernels that split K (`kp/split_sum.cuh`): of
a tile's vectors, the most that one CTA takes from the others of 1 to `splits`.

An expression is held as postfix code, which is what a bundle stores and every language runs:

- `//` and `%` round toward minus infinity; a zero divisor is an error;
- a result outside -2^63 … 2^63-1 is an error;
- comparisons and `and or not` give 0 or 1; every operand is evaluated, also of `if` and `or`.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import sha256
from operator import index as integer
from typing import Self

from kernelpack.errors import ExpressionError
from kernelpack.formats.dtype import DType
from kernelpack.spec.arch import MOST_CTAS
from kernelpack.spec.fitting import Fitting, fitting_ctas


class Op(IntEnum):
    """Postfix operations; the numbers are part of the bundle format."""

    CONST = 0
    NAME = 1
    ADD = 2
    SUB = 3
    MUL = 4
    DIV = 5
    MOD = 6
    NEG = 7
    LT = 8
    LE = 9
    EQ = 10
    NE = 11
    GT = 12
    GE = 13
    AND = 14
    OR = 15
    NOT = 16
    SELECT = 17  # condition, then, else
    MIN = 18
    MAX = 19
    CDIV = 20  # rounds up
    ALIGN_UP = 21  # the next multiple
    POW2_FLOOR = 22  # the largest power of two that is not larger; of a positive number
    FITTING_CLUSTERS = 23  # clusters of so many CTAs that run at once; of a positive number
    FITTING_CTAS = 24  # the most CTAs of a cluster so that so many run at once, or 1
    MOST_PARTS = 25  # vectors and CTAs: the most vectors that one CTA takes of the others'
    ALIGN_DOWN = 26  # the next lower multiple


@dataclass(frozen=True, slots=True)
class Expr:
    """An integer expression: its text (for people) and its postfix code (what runs)."""

    text: str
    code: tuple[tuple[Op, int | str], ...]

    def __str__(self) -> str:
        return self.text

    @property
    def names(self) -> frozenset[str]:
        """The names that must be given a value."""
        return frozenset(str(value) for op, value in self.code if op is Op.NAME)

    @property
    def asks_device(self) -> bool:
        """Whether the value depends on how many clusters fit."""
        return any(op in ASKING for op, _ in self.code)

    @property
    def constant(self) -> int | None:
        """The value, where it depends on no name and no device."""
        return None if self.names or self.asks_device else evaluate(self, {})


ASKING = frozenset({Op.FITTING_CLUSTERS, Op.FITTING_CTAS})
"""The functions that ask the device."""


INT64 = range(-(2**63), 2**63)
_LEAST, _MOST = INT64[0], INT64[-1]
ARITY = dict.fromkeys(Op, 2) | {
    Op.CONST: 0,
    Op.NAME: 0,
    Op.NEG: 1,
    Op.NOT: 1,
    Op.POW2_FLOOR: 1,
    Op.FITTING_CLUSTERS: 1,
    Op.FITTING_CTAS: 1,
    Op.SELECT: 3,
}
FUNCTIONS = {
    "min": Op.MIN,
    "max": Op.MAX,
    "cdiv": Op.CDIV,
    "align_up": Op.ALIGN_UP,
    "align_down": Op.ALIGN_DOWN,
    "pow2_floor": Op.POW2_FLOOR,
    "most_parts": Op.MOST_PARTS,
    "fitting_clusters": Op.FITTING_CLUSTERS,
    "fitting_ctas": Op.FITTING_CTAS,
}
_BINARY = {
    ast.Add: Op.ADD,
    ast.Sub: Op.SUB,
    ast.Mult: Op.MUL,
    ast.FloorDiv: Op.DIV,
    ast.Mod: Op.MOD,
}
_COMPARE = {
    ast.Lt: Op.LT,
    ast.LtE: Op.LE,
    ast.Eq: Op.EQ,
    ast.NotEq: Op.NE,
    ast.Gt: Op.GT,
    ast.GtE: Op.GE,
}
_UNARY = {ast.USub: Op.NEG, ast.Not: Op.NOT}
_DTYPE_CODES = {dtype.label: int(dtype) for dtype in DType}
_Code = list[tuple[Op, int | str]]


def symbol(word: str) -> int:
    """The integer that stands for a quoted word: a data type's code, else a digest of the word."""
    if word in _DTYPE_CODES:
        return _DTYPE_CODES[word]
    return int.from_bytes(sha256(word.encode()).digest()[:7], "little") | 1 << 56


class Word(int):
    """The integer that stands for a word that a caller gave, which shows as the word."""

    word: str

    def __new__(cls, word: str) -> Self:
        """Of a data type, or of any other word."""
        made = super().__new__(cls, symbol(word))
        made.word = word
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        """The parts of a copy."""
        return type(self), (self.word,)

    def __str__(self) -> str:
        """As it was given."""
        return self.word


def constant(value: int) -> Expr:
    """An expression that is always `value`."""
    return Expr(str(value), ((Op.CONST, value),))


ZERO, ONE = constant(0), constant(1)


def parse(text: str | int) -> Expr:
    """Parse an expression.

    Raises:
        ExpressionError: the text is not in the language; says which part.

    """
    if isinstance(text, int):
        return constant(text)
    if not text.isascii():  # Python would read other scripts' letters and digits as ours
        raise ExpressionError(f"`{text}` is not an integer expression: it is not ASCII")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return Expr(text.strip(), tuple(_compile(tree)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"`{text}` is not an integer expression: {error}") from error


def _compile(node: ast.expr) -> _Code:
    """Postfix code of one node of Python's syntax tree; only these nodes are in the language."""
    match node:
        case ast.Constant(value=int() as value):
            return [(Op.CONST, _in_range(int(value), str(value)))]
        case ast.Constant(value=str() as word):
            return [(Op.CONST, symbol(word))]
        case ast.Name(id=name):
            return [(Op.NAME, name)]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return [*_compile(left), *_compile(right), (_BINARY[type(op)], 0)]
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return [*_compile(operand), (_UNARY[type(op)], 0)]
        case ast.BoolOp(op=op, values=values):
            return _reduce(Op.AND if isinstance(op, ast.And) else Op.OR, values)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return [*_compile(test), *_compile(body), *_compile(orelse), (Op.SELECT, 0)]
        case ast.Compare(left=left, ops=ops, comparators=rest):
            return _compare([left, *rest], ops)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return _call(name, args)
    raise ExpressionError(
        f"`{ast.unparse(node)}` is not allowed in an integer expression",
        hint=f"use + - * // % comparisons, and/or/not, if/else, {', '.join(FUNCTIONS)}",
    )


def _reduce(op: Op, values: list[ast.expr]) -> _Code:
    code = _compile(values[0])
    for value in values[1:]:
        code += [*_compile(value), (op, 0)]
    return code


def _compare(operands: list[ast.expr], ops: list[ast.cmpop]) -> _Code:
    """`a <= b < c` means `a <= b and b < c`."""
    code: _Code = []
    for index, op in enumerate(ops):
        if type(op) not in _COMPARE:
            raise ExpressionError("`in` and `is` are not allowed in an integer expression")
        code += [*_compile(operands[index]), *_compile(operands[index + 1])]
        code.append((_COMPARE[type(op)], 0))
        code += [(Op.AND, 0)] if index else []
    return code


def _call(name: str, args: list[ast.expr]) -> _Code:
    op = FUNCTIONS[name]
    wanted = ARITY[op]
    if len(args) != wanted and not (op in (Op.MIN, Op.MAX) and len(args) > wanted):
        raise ExpressionError(f"`{name}` takes {wanted} arguments, not {len(args)}")
    return [*_compile(args[0]), (op, 0)] if wanted == 1 else _reduce(op, args)


def fold(expr: Expr, values: Mapping[str, int]) -> Expr:
    """Replace names by their values; the other names stay."""
    code = tuple(
        (Op.CONST, values[str(value)]) if op is Op.NAME and value in values else (op, value)
        for op, value in expr.code
    )
    folded = Expr(expr.text, code)
    is_known = not (folded.names or folded.asks_device or len(code) == 1)
    return constant(evaluate(folded, {})) if is_known else folded


def inline(expr: Expr, named: Mapping[str, Expr]) -> Expr:
    """Replace names by their expressions; the other names stay."""
    code: _Code = []
    for op, value in expr.code:
        inlined = named.get(str(value)) if op is Op.NAME else None
        code += inlined.code if inlined else ((op, value),)
    return Expr(expr.text, tuple(code))


def evaluate(expr: Expr, values: Mapping[str, float], fitting: Fitting | None = None) -> int:
    """The value of an expression.

    Args:
        expr: what to evaluate.
        values: what each name stands for.
        fitting: how many clusters of so many CTAs run at once, where that is known.

    Raises:
        ExpressionError: a name without a value, a zero divisor, a result outside 64 bits; or the
            device is asked where no kernel is at hand to ask about.

    """
    stack: list[int] = []
    try:
        for op, value in expr.code:
            if op is _NAME:
                given = values.get(value)  # type: ignore[arg-type]
                stack.append(given if type(given) is int else _lookup(expr, value, values))  # type: ignore[arg-type]
            elif op is _CONST:
                stack.append(value)  # type: ignore[arg-type]
            elif op in _OF_TWO:
                right = stack.pop()
                found = _OF_TWO[op](stack[-1], right)
                stack[-1] = found if _LEAST <= found <= _MOST else _in_range(found, expr.text)
            elif op in ASKING:
                stack.append(_asked(expr, op, stack.pop(), fitting))
            else:
                first = len(stack) - ARITY[op]
                stack[first:] = (applied(op, stack[first:], expr.text),)
    except ZeroDivisionError:
        raise _by_zero(expr.text) from None
    return stack.pop()


def _lookup(expr: Expr, name: str, values: Mapping[str, float]) -> int:
    if name not in values:
        says = f"`{name}` is not given" if expr.text == name else f"`{expr.text}` needs `{name}`"
        raise ExpressionError(says, hint=f"known: {', '.join(values)}")
    try:
        return integer(values[name])  # type: ignore[arg-type]
    except TypeError:
        what = f"`{name}` must be an integer, not {values[name]!r:.60}"
        raise ExpressionError(what, hint=f"`{expr.text}` needs it") from None


def _asked(expr: Expr, op: Op, operand: int, fitting: Fitting | None) -> int:
    """The device's answer about clusters of `operand` CTAs, or `operand` clusters."""
    if fitting is None:
        raise ExpressionError(
            f"`{expr.text}` asks how many clusters fit, which only a launch knows",
            hint="a grid, a cluster and a scalar parameter may ask",
        )
    if operand < 1:
        raise ExpressionError(f"`{expr.text}` asks of {operand}: needs a positive number")
    return fitting(operand) if op is Op.FITTING_CLUSTERS else fitting_ctas(fitting, operand)


def applied(op: Op, operands: Sequence[int], text: str) -> int:
    """The result of an operation; `text` is the expression, for its error.

    Raises:
        ExpressionError: a zero divisor, or a result outside 64 bits.

    """
    try:
        value = _RULES[op](*operands)
    except ZeroDivisionError:
        raise _by_zero(text) from None
    return value if _LEAST <= value <= _MOST else _in_range(value, text)


def _by_zero(text: str) -> ExpressionError:
    return ExpressionError(f"`{text}` divides by zero")


def _in_range(value: int, text: str) -> int:
    if not _LEAST <= value <= _MOST:
        raise ExpressionError(f"`{text}` does not fit in 64 bits")
    return value


def _pow2_floor(value: int) -> int:
    if value <= 0:
        raise ExpressionError(f"pow2_floor of {value}: needs a positive number")
    return 1 << (value.bit_length() - 1)


def _most_parts(vectors: int, splits: int) -> int:
    """An owner of `cdiv(vectors, s)` vectors takes them from each of the other s - 1 CTAs."""
    if vectors < 0 or not 1 <= splits <= MOST_CTAS:
        of = f"most_parts of {vectors} vectors and {splits} CTAs"
        raise ExpressionError(f"{of}: needs 0 or more, and 1 to {MOST_CTAS}")
    return max((s - 1) * -(-vectors // s) for s in range(1, splits + 1))


_RULES: dict[Op, Callable[..., int]] = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.DIV: operator.floordiv,
    Op.MOD: operator.mod,
    Op.NEG: operator.neg,
    Op.LT: lambda a, b: 1 if a < b else 0,
    Op.LE: lambda a, b: 1 if a <= b else 0,
    Op.EQ: lambda a, b: 1 if a == b else 0,
    Op.NE: lambda a, b: 1 if a != b else 0,
    Op.GT: lambda a, b: 1 if a > b else 0,
    Op.GE: lambda a, b: 1 if a >= b else 0,
    Op.AND: lambda a, b: 1 if a and b else 0,
    Op.OR: lambda a, b: 1 if a or b else 0,
    Op.NOT: lambda a: 0 if a else 1,
    Op.SELECT: lambda c, a, b: a if c else b,
    Op.MIN: min,
    Op.MAX: max,
    Op.CDIV: lambda a, b: -(-a // b),
    Op.ALIGN_UP: lambda a, b: -(-a // b) * b,
    Op.ALIGN_DOWN: lambda a, b: a // b * b,
    Op.POW2_FLOOR: _pow2_floor,
    Op.MOST_PARTS: _most_parts,
}
"""What is true is 1, not True: an error names operands, in C++ with the same letters."""

_NAME, _CONST = Op.NAME, Op.CONST
"""Bound once: a choice among thousands of variants evaluates each one's guards."""
_OF_TWO = {op: rule for op, rule in _RULES.items() if ARITY[op] == 2}
