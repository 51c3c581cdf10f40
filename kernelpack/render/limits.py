"""A template's limits: rounds, calls, and the size of a text or list that it makes.

A template is a program, and a build runs programs of others. One that would run for hours, or fill
the memory, is refused at its line. Loops, macros and includes count their rounds; what makes a text
or list of a size that a template names is looked at before it is made.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from functools import wraps
from typing import Any, cast

from jinja2 import nodes, pass_context
from jinja2.runtime import Context
from jinja2.visitor import NodeTransformer

MOST_ROUNDS = 1 << 18
"""Rounds of loops, and calls of macros and blocks, while one template is filled."""
OF_A_TEMPLATE = 64
"""Rounds that an include counts for: a file is looked at."""
MOST_ELEMENTS, MOST_BITS = 1 << 20, 1 << 16
"""Of a text or list, and of a power, that an expression makes."""

_ROUND, _ROUNDS, _TEXT = "kernelpack: round", "kernelpack: rounds", "kernelpack: text"
"""Filters that no template can name."""
_WIDTHS = ("center", "ljust", "rjust", "zfill", "expandtabs", "indent", "batch", "slice")

left: ContextVar[list[int]] = ContextVar("left")
"""Rounds that the template being filled has left."""


class Bounded(NodeTransformer):
    """A parsed template whose rounds count, and whose joined texts are looked at."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 - as jinja2 has it
        """Each element is a round; one that calls itself gives elements past its own."""
        self.generic_visit(node)
        node.iter = _filtered(cast("nodes.Expr", node.iter), _ROUNDS)
        return _counting(node, 1) if node.recursive else node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802
        """A text made of others by `~`."""
        self.generic_visit(node)
        return _filtered(node, _TEXT)

    def visit_Macro(self, node: Any) -> Any:  # noqa: N802, ANN401 - of a block too
        """Each call is a round."""
        return _counting(self.generic_visit(node), 1)

    visit_CallBlock = visit_Block = visit_Macro  # noqa: N815

    def visit_Template(self, node: nodes.Template) -> Any:  # noqa: N802, ANN401
        """An include, an import, a parent; or the whole."""
        return _counting(self.generic_visit(node), OF_A_TEMPLATE)


def _counting(node: Any, rounds: int) -> Any:  # noqa: ANN401 - any node with a body
    made = nodes.ExprStmt(_filtered(nodes.Const(rounds, lineno=node.lineno), _ROUND))
    node.body.insert(0, made.set_lineno(node.lineno))
    return node


def _filtered(node: nodes.Expr, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


@pass_context
def _round(_context: Context, rounds: int) -> None:
    """So many more.

    Raises:
        ValueError: there were too many.

    """
    count = left.get()
    count[0] -= rounds
    if count[0] < 0:
        raise ValueError(f"more than {MOST_ROUNDS} rounds of loops and calls of macros")


@pass_context
def _rounds(context: Context, many: Iterable[object]) -> Iterator[object]:
    for element in many:
        _round(context, 1)
        yield element


@pass_context
def _text(_context: Context, text: str) -> str:
    _check(len(text), "`~`")
    return text


GROW = ("center", "indent", "batch", "slice", "format", "replace", "join")
"""jinja2's filters that make a text or list of a size that they are given."""


def bounded(made: Callable[..., Any]) -> Callable[..., Any]:
    """A filter whose arguments are looked at first."""
    skipped = int(hasattr(made, "jinja_pass_arg"))
    name = made.__name__.removeprefix("sync_").removeprefix("do_")

    @wraps(made)
    def looked_at(*args: object, **given: object) -> object:
        check_call(name, *args[skipped:], **given)
        return made(*args, **given)

    return looked_at


FILTERS: dict[str, Callable[..., Any]] = {_ROUND: _round, _ROUNDS: _rounds, _TEXT: _text}


def check_binop(operator: str, a: object, b: object) -> None:
    """Refuse what no machine has room for, before it is made.

    Raises:
        ValueError: says what would be made, and the limit.

    """
    match operator, a, b:
        case "*", int(count), str() | list() | tuple() as many:
            _check(len(many) * count, "`*`")
        case "*", str() | list() | tuple() as many, int(count):
            _check(len(many) * count, "`*`")
        case "+", str() | list() | tuple() as first, str() | list() | tuple() as second:
            _check(len(first) + len(second), "`+`")
        case "%", str(text), given:
            _check(_widest(text, given), "`%`")
        case "**", int(base), int(power) if abs(base) > 1 and power * base.bit_length() > MOST_BITS:
            raise ValueError(f"`**` makes a number of more than {MOST_BITS} bits")


def check_call(name: str, subject: object, *args: object, **given: object) -> None:
    """Refuse a filter, or a method of a text, that makes too much; likewise."""
    values = (*args, *given.values())
    if name in _WIDTHS:
        _check(max([value for value in values if isinstance(value, int)], default=0), f"`{name}`")
    elif name in ("format", "format_map") and isinstance(subject, str):
        _check(_widest(subject, values), f"`{name}`")
    elif name == "replace" and isinstance(subject, str) and len(values) > 1:
        longer = len(str(values[1])) if str(values[0]) in subject else 0
        _check(len(subject) + subject.count(str(values[0])) * longer, "`replace`")
    elif name == "join" and args:
        between, many = (subject, args[0]) if isinstance(subject, str) else (args[0], subject)
        _check(_joined(str(between), many), "`join`")


def _joined(between: str, many: object) -> int:
    """Characters that a list makes; of what has no length nothing is known before."""
    if not isinstance(many, list | tuple):
        return 0
    parts = sum(len(each) if isinstance(each, str) else 1 for each in many)
    return parts + len(between) * len(many)


_PERCENT = re.compile(r"%(?:\([^)]*\))?[-+ #0]*(\d*)\.?(\d*)")
_BRACES = re.compile(r"\{[^{}]*:([^{}]*)")
_GIVEN = re.compile(r"%[-+ #0]*\d*\.?\*|\{[^{}]*:[^{}]*\{")


def _widest(text: str, given: object) -> int:
    """The largest width in a format, or what it is given where it asks for a width."""
    found = [*sum(_PERCENT.findall(text), ()), *_BRACES.findall(text)]
    numbers = [int(digits[:20]) for spec in found for digits in re.findall(r"\d+", spec)]
    if _GIVEN.search(text):
        listed = given if isinstance(given, tuple) else (given,)
        numbers += [value for value in listed if isinstance(value, int)]
    return max(numbers, default=0)


def _check(made: int, what: str) -> None:
    if made > MOST_ELEMENTS:
        raise ValueError(f"{what} makes {made} elements, more than {MOST_ELEMENTS}")
