"""What a manifest may say: its keys and their types, as pydantic models. The door of pydantic.

A mistake is a ManifestError at the line and column where it stands. Rules that need the whole
manifest (names, ranks, unused axes) are in `names`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    PrivateAttr,
    Tag,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from kernelpack.errors import ExpressionError, ManifestError
from kernelpack.manifest import words
from kernelpack.manifest.reader import Document, Location
from kernelpack.spec import expr as expressions
from kernelpack.spec.arch import Arch
from kernelpack.spec.expr import INT64, ONE, ZERO, Expr
from kernelpack.spec.nearest import nearest
from kernelpack.spec.params import Access
from kernelpack.spec.tensormap import Fill, Interleave, Promotion, Swizzle

T = TypeVar("T")

# --- fields: a value of YAML → a value of `spec` ---


class _FieldError(ValueError):
    """What is wrong with the field being read, what would be right, and the key it is about."""

    def __init__(self, what: str, hint: str = "", key: str | None = None) -> None:
        self.what, self.hint, self.key = what, hint, key
        super().__init__(what)


def _one_of(table: Mapping[str, T]) -> Callable[[object], T]:
    def choose(word: object) -> T:
        if isinstance(word, str) and word in table:
            return table[word]
        hint = nearest(str(word), table)
        raise _FieldError(f"`{word}` is none of {', '.join(table)}", hint)

    return choose


def _schema_of(table: Mapping[str, object]) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "enum": list(table)})


def _expression(text: object) -> Expr:
    """Parse an expression; a boolean is none, though Python counts it as an integer."""
    if isinstance(text, bool) or not isinstance(text, int | str):
        raise _FieldError("must be an integer or an expression", "comparisons give 1 or 0")
    if isinstance(text, int) and text not in INT64:
        raise _FieldError(f"`{text}` does not fit in 64 bits")
    try:
        return expressions.parse(text)
    except ExpressionError as error:
        cut = str(text).count("(") != str(text).count(")")
        hint = "quote it: within […] or {…} a comma ends an entry" if cut else error.hint
        raise _FieldError(error.what, hint) from error


def _matching(pattern: str, meaning: str) -> Callable[[str], str]:
    def check(name: str) -> str:
        if re.fullmatch(pattern, name):
            return name
        raise _FieldError(f"`{name}` is not {meaning}", f"names here match {pattern}")

    return check


def _axis_value(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and value in INT64:
        return value
    if isinstance(value, str) and re.fullmatch(WORD, value):
        return value
    raise _FieldError(f"`{value}` is neither an integer nor a word", f"words here match {WORD}")


CONSTANT, NAME, WORD = "[A-Z][A-Z0-9_]*", "[a-z][a-z0-9_]*", "[A-Za-z][A-Za-z0-9_]*"

Text = Annotated[str, Field(min_length=1)]
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
Expression = Annotated[
    Expr, PlainValidator(_expression), WithJsonSchema({"type": ["integer", "string"]})
]
Vector = tuple[Expression, Expression, Expression]
Target = Annotated[Arch, PlainValidator(_one_of(words.TARGETS)), _schema_of(words.TARGETS)]
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

# --- models: the mappings of a manifest ---


class _Part(BaseModel):
    """A mapping of a manifest: no unknown key, no silent conversion, never changed."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known(cls, data: object) -> object:
        known = cls.model_fields
        for key in data if isinstance(data, dict) else ():
            if key not in known:
                hint = nearest(key, known) or f"keys: {', '.join(known)}"
                raise _FieldError(f"unknown key `{key}`", hint, key=key)
        return data


class Claim(_Part):
    """A condition, and the reason that is given where it does not hold."""

    when: Expression
    reason: Text


class ArgumentPart(_Part):
    """An array of the caller; `dtype` is a type, or an axis of types; `align` in bytes."""

    dtype: Word
    shape: Annotated[tuple[Expression, ...], Field(min_length=1)]
    access: AccessWord = Access.READ
    align: Annotated[int, Field(ge=1, le=4096)] = 16


class MapPart(_Part):
    """A tensor map over an argument: dimension 0 is innermost, strides are those of 1 and up."""

    over: Name
    element: Word
    dims: Annotated[tuple[Expression, ...], Field(min_length=1, max_length=5)]
    strides_bytes: tuple[Expression, ...] = ()
    box: tuple[Expression, ...]
    element_strides: tuple[Expression, ...] = ()
    offset_bytes: Expression = ZERO
    swizzle: SwizzleWord = Swizzle.NONE
    interleave: InterleaveWord = Interleave.NONE
    fill: FillWord = Fill.ZERO
    promotion: PromotionWord = Promotion.NONE


class MapParamPart(_Part):
    """A parameter that is a tensor map."""

    name: Name
    map: MapPart


class PointerParamPart(_Part):
    """A parameter that is the address of an argument."""

    name: Name
    pointer: Name


class ScalarParamPart(_Part):
    """A parameter that is an integer; `scalar` is its type."""

    name: Name
    scalar: Word
    value: Expression


def _kind(data: object) -> str | None:
    kinds = ("map", "pointer", "scalar")
    return next((kind for kind in kinds if isinstance(data, dict) and kind in data), None)


ParamPart = Annotated[
    Annotated[MapParamPart, Tag("as a map")]
    | Annotated[PointerParamPart, Tag("as a pointer")]
    | Annotated[ScalarParamPart, Tag("as a scalar")],
    Discriminator(
        lambda data: f"as a {_kind(data)}" if _kind(data) else None,
        custom_error_type="kind",
        custom_error_message="a parameter must have one of `map`, `pointer`, `scalar`",
    ),
]


class LaunchPart(_Part):
    """Grid, block and cluster along x, y, z; dynamic shared memory; programmatic launch."""

    grid: Vector
    block: Vector
    cluster: Vector = (ONE, ONE, ONE)
    shared_bytes: Expression = ZERO
    programmatic: bool = False


class BudgetPart(_Part):
    """The most that a compiled variant may use, from constants alone."""

    registers: Expression
    shared_bytes: Expression
    tensor_memory_columns: Expression = ZERO


class Manifest(_Part):
    """What one kernel can be built as, how it is launched, and which problems it serves."""

    kernel: Name
    abi: Annotated[int, Field(ge=1, lt=2**31)]
    doc: Text
    targets: Annotated[tuple[Target, ...], Field(min_length=1)]
    sizes: dict[Name, Text]
    axes: dict[Constant, Annotated[tuple[AxisValue, ...], Field(min_length=1)]]
    where: tuple[Claim, ...] = ()
    let: dict[Constant, Expression] = Field(default_factory=dict)
    derive: dict[Name, Expression] = Field(default_factory=dict)
    templates: dict[Target, Text]
    arguments: dict[Name, ArgumentPart]
    params: tuple[ParamPart, ...]
    launch: LaunchPart
    serves: tuple[Claim, ...] = ()
    cost: Expression = ZERO
    workspace_bytes: Expression = ZERO
    budget: BudgetPart
    _document: Document = PrivateAttr()

    def at(self, *location: str | int, key: bool = False) -> str:
        """`path:line:column` of a value, or of its key."""
        return self._document.at(*location, key=key)


def validate(document: Document) -> Manifest:
    """Hold a document against the models.

    Raises:
        ManifestError: the first mistake by line, and how many more there are.

    """
    try:
        manifest = Manifest.model_validate(document.value)
    except ValidationError as error:
        raise _first(document, error.errors(include_url=False)) from error
    manifest._document = document  # noqa: SLF001 - made here
    return manifest


# --- mistakes, in our words ---

_WORDS = {
    "missing": "must have three entries: x, y, z",  # of a vector; a missing key is named
    "too_long": "has too many entries; quote an entry that holds a comma",
    "too_short": "has too few entries",
    "tuple_type": "must be a list: `[…]`",
    "dict_type": "must be a mapping: `{name: value}`",
    "model_type": "must be a mapping: `{key: value}`",
    "model_attributes_type": "must be a mapping: `{key: value}`",
    "bool_type": "must be true or false",
    "int_type": "must be an integer",
    "string_type": "must be a word; quote it if it looks like something else",
    "string_too_short": "must not be empty",
}
"""pydantic's kinds of errors; others keep its sentence."""


def _first(document: Document, mistakes: Sequence[Mapping[str, Any]]) -> ManifestError:
    inner = [details for details in mistakes if not _is_echo(details, mistakes)]
    first = min((_explain(document, details) for details in inner), key=_line_and_column)
    more = f" (the first of {len(inner)} mistakes)" if len(inner) > 1 else ""
    return ManifestError(first.what + more, where=first.where, hint=first.hint)


def _is_echo(details: Mapping[str, Any], mistakes: Sequence[Mapping[str, Any]]) -> bool:
    """A list is also called too short where an entry of it is wrong; the entry says it better."""
    at = details["loc"]
    inside = (other["loc"] for other in mistakes if other is not details)
    return details["type"] == "too_short" and any(loc[: len(at)] == at for loc in inside)


def _line_and_column(error: ManifestError) -> tuple[int, int]:
    _, line, column = error.where.rsplit(":", 2)
    return int(line), int(column)


def _explain(document: Document, details: Mapping[str, Any]) -> ManifestError:
    location = details["loc"]
    mistake = details.get("ctx", {}).get("error")
    if isinstance(mistake, _FieldError):
        return _at_its_place(document, location, mistake)
    if details["type"] == "missing" and isinstance(location[-1], str):
        where = document.at(*location, key=True)
        return ManifestError(f"key `{location[-1]}` is missing", where=where)
    what = _WORDS.get(details["type"], details["msg"].replace("Input should", "must"))
    return ManifestError(what, where=document.at(*location))


def _at_its_place(document: Document, location: Location, mistake: _FieldError) -> ManifestError:
    about = () if mistake.key is None else (mistake.key,)
    is_key = bool(about) or location[-1:] == ("[key]",)
    where = document.at(*location, *about, key=is_key)
    return ManifestError(mistake.what, where=where, hint=mistake.hint)
