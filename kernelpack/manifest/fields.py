"""The types of a manifest's fields: YAML → a value of `spec`, or what is wrong with it."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema

from kernelpack.errors import ExpressionError, ProblemError
from kernelpack.manifest import words
from kernelpack.spec import expr as expressions
from kernelpack.spec.arch import REFUSED, Arch, architecture, unknown
from kernelpack.spec.expr import INT64, Expr
from kernelpack.spec.nearest import nearest
from kernelpack.spec.number import written
from kernelpack.spec.params import Access
from kernelpack.spec.tensormap import Fill, Interleave, Promotion, Swizzle

T = TypeVar("T")


class FieldError(ValueError):
    """The error of a field, its hint, and its key."""

    def __init__(self, what: str, hint: str = "", key: str | None = None) -> None:
        self.what, self.hint, self.key = what, hint, key
        super().__init__(what)


def _one_of(table: Mapping[str, T]) -> Callable[[object], T]:
    def choose(word: object) -> T:
        if isinstance(word, str) and word in table:
            return table[word]
        hint = nearest(str(word), table)
        raise FieldError(f"`{word}` is not one of {', '.join(table)}", hint)

    return choose


def _schema_of(table: Mapping[str, object]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(table)})


def _expression(text: object) -> Expr:
    """Parse an expression; a boolean is refused, though Python counts it as an integer."""
    if isinstance(text, bool) or not isinstance(text, int | str):
        raise FieldError("must be an integer or an expression", "comparisons give 1 or 0")
    if isinstance(text, int) and text not in INT64:
        raise FieldError(f"`{text}` does not fit in 64 bits")
    try:
        return expressions.parse(text)
    except ExpressionError as error:
        cut = str(text).count("(") != str(text).count(")")
        hint = "quote it: within […] or {…} a comma ends an entry" if cut else error.hint
        raise FieldError(error.what, hint) from error


def _matching(pattern: str, meaning: str) -> Callable[[str], str]:
    def check(name: str) -> str:
        if re.fullmatch(pattern, name):
            return name
        raise FieldError(f"`{name}` is not {meaning}", f"names here match {pattern}")

    return check


def _axis_value(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and value in INT64:
        return value
    if isinstance(value, str) and re.fullmatch(WORD, value):
        return value
    raise FieldError(f"`{value}` is neither an integer nor a word", f"words here match {WORD}")


def _real(value: object) -> float:
    """A number as it is written: `1e-6`, `0.5`, `-inf`, `2`."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise FieldError(f"`{value}` is not a number", "write it as `1e-6` or `0.5`")
    try:
        return written(value)
    except ProblemError as error:
        raise FieldError(error.what, error.hint) from None


def _target(name: object) -> Arch:
    if isinstance(name, str) and architecture(name) in REFUSED:
        raise FieldError(*unknown(name))
    return _one_of(words.TARGETS)(name)


def _alignment(value: int) -> int:
    if value & (value - 1):
        raise FieldError(f"`{value}` is not an alignment", "give a power of two")
    return value


CONSTANT, NAME, WORD = "[A-Z][A-Z0-9_]{0,63}", "[a-z][a-z0-9_]{0,63}", "[A-Za-z][A-Za-z0-9_]{0,63}"
"""Names are of 64 characters at most: ids and symbols are made of several."""

Text = Annotated[str, Field(min_length=1)]
Real = Annotated[float, PlainValidator(_real), WithJsonSchema({"type": ["number", "string"]})]
Constant = Annotated[
    str,
    AfterValidator(_matching(CONSTANT, "an UPPER_CASE name of a constant")),
    WithJsonSchema({"type": "string", "pattern": f"^{CONSTANT}$"}),
]
Name = Annotated[
    str,
    AfterValidator(_matching(NAME, "a lower_case name")),
    WithJsonSchema({"type": "string", "pattern": f"^{NAME}$"}),
]
Word = Annotated[
    str,
    AfterValidator(_matching(WORD, "a word")),
    WithJsonSchema({"type": "string", "pattern": f"^{WORD}$"}),
]
AxisValue = Annotated[
    int | str,
    PlainValidator(_axis_value),
    WithJsonSchema({"type": ["integer", "string"], "pattern": f"^{WORD}$"}),
]
Alignment = Annotated[int, Field(ge=1, le=4096), AfterValidator(_alignment)]
Expression = Annotated[
    Expr, PlainValidator(_expression), WithJsonSchema({"type": ["integer", "string"]})
]
Vector = tuple[Expression, Expression, Expression]
Target = Annotated[Arch, PlainValidator(_target), _schema_of(words.TARGETS)]
FamilyWord = Annotated[str, PlainValidator(_one_of(words.FAMILIES)), _schema_of(words.FAMILIES)]
AccessWord = Annotated[Access, PlainValidator(_one_of(words.ACCESSES)), _schema_of(words.ACCESSES)]
SwizzleWord = Annotated[
    Swizzle, PlainValidator(_one_of(words.SWIZZLES)), _schema_of(words.SWIZZLES)
]
InterleaveWord = Annotated[
    Interleave, PlainValidator(_one_of(words.INTERLEAVES)), _schema_of(words.INTERLEAVES)
]
FillWord = Annotated[Fill, PlainValidator(_one_of(words.FILLS)), _schema_of(words.FILLS)]
PromotionWord = Annotated[
    Promotion, PlainValidator(_one_of(words.PROMOTIONS)), _schema_of(words.PROMOTIONS)
]
