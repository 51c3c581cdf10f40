"""What a manifest may say: its mappings and their keys, as pydantic models.

A mistake is a ManifestError at the line and column where it stands. Rules that need the whole
manifest (names, ranks, unused axes) are in `names`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PrivateAttr,
    Tag,
    ValidationError,
    model_validator,
)

from kernelpack.errors import ManifestError
from kernelpack.manifest.fields import (
    AccessWord,
    Alignment,
    AxisValue,
    Constant,
    Expression,
    FieldError,
    FillWord,
    InterleaveWord,
    Name,
    PromotionWord,
    SwizzleWord,
    Target,
    Text,
    Vector,
    Word,
)
from kernelpack.manifest.reader import Document, Location
from kernelpack.spec.expr import ONE, ZERO
from kernelpack.spec.nearest import nearest
from kernelpack.spec.params import Access
from kernelpack.spec.tensormap import Fill, Interleave, Promotion, Swizzle


class _Part(BaseModel):
    """A mapping of a manifest: no unknown key, no silent conversion, never changed."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known(cls, data: object) -> object:
        known = cls.model_fields
        for key in data if isinstance(data, dict) else ():
            if key not in known:
                hint = nearest(key, known) or f"keys: {', '.join(known)}"
                raise FieldError(f"unknown key `{key}`", hint, key=key)
        return data


class Claim(_Part):
    """A condition, and the reason that is given where it does not hold."""

    when: Expression
    """An expression that is not 0 where the claim holds."""
    reason: Text
    """What people are told where it does not."""


class ArgumentPart(_Part):
    """An array of the caller; `dtype` is a type, or an axis of types; `align` in bytes."""

    dtype: Word
    """The element type: a word, or an axis of such words."""
    shape: Annotated[tuple[Expression, ...], Field(min_length=1)]
    """Elements that the kernel may touch, outermost side first; of none, its pointer is null."""
    access: AccessWord = Access.READ
    """What the kernel does with it."""
    align: Alignment = 16
    """Bytes that its address is a multiple of; a power of two."""


class MapPart(_Part):
    """A tensor map over an argument: dimension 0 is innermost, strides are those of 1 and up."""

    over: Name
    """The argument whose memory it describes."""
    element: Word
    """The type of an element, as the TMA unit sees it: a word, or an axis of such words."""
    dims: Annotated[tuple[Expression, ...], Field(min_length=1, max_length=5)]
    """Elements along each dimension."""
    strides_bytes: tuple[Expression, ...] = ()
    """Bytes from one to the next along dimension 1 and up."""
    box: tuple[Expression, ...]
    """Elements that one copy moves, along each dimension."""
    element_strides: tuple[Expression, ...] = ()
    """Which elements a copy takes: each, every second, …; each if left out."""
    offset_bytes: Expression = ZERO
    """Where it begins, from the argument's address."""
    swizzle: SwizzleWord = Swizzle.NONE
    """How rows are mixed over banks of shared memory."""
    interleave: InterleaveWord = Interleave.NONE
    """Layout of channels in slices of this many bytes."""
    fill: FillWord = Fill.ZERO
    """What is read outside of the tensor."""
    promotion: PromotionWord = Promotion.NONE
    """How much L2 fetches around what is read."""
    gather4: bool = False
    """Whether rows are copied by `tile::gather4` or `tile::scatter4`: boxes of one row."""


class MapParamPart(_Part):
    """A parameter that is a tensor map."""

    name: Name
    """Its name in the kernel's signature."""
    map: MapPart
    """The map, below."""


class PointerParamPart(_Part):
    """A parameter that is the address of an argument."""

    name: Name
    """Its name in the kernel's signature."""
    pointer: Name
    """The argument whose address it is."""


class ScalarParamPart(_Part):
    """A parameter that is an integer; `scalar` is its type."""

    name: Name
    """Its name in the kernel's signature."""
    scalar: Word
    """Its integer type."""
    value: Expression
    """Its value in a call."""


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
    """Blocks."""
    block: Vector
    """Threads of a block."""
    cluster: Vector = (ONE, ONE, ONE)
    """Blocks of a cluster; the grid is a multiple of it."""
    shared_bytes: Expression = ZERO
    """Dynamic shared memory of a block."""
    programmatic: bool = False
    """Whether it may start before the kernel ahead of it in the stream has ended."""


class BudgetPart(_Part):
    """The most that a compiled variant may use, from constants alone."""

    registers: Expression
    """Of a thread."""
    shared_bytes: Expression
    """Of a block, static and dynamic."""
    tensor_memory_columns: Expression = ZERO
    """Of a block, on Blackwell."""


class Manifest(_Part):
    """What one kernel can be built as, how it is launched, and which problems it serves."""

    kernel: Name
    """The kernel's stem, the same in every folder."""
    abi: Annotated[int, Field(ge=1, lt=2**31)]
    """Changes when a caller would have to change."""
    doc: Text
    """What the kernel does, in a sentence."""
    targets: Annotated[tuple[Target, ...], Field(min_length=1)]
    """What it is built for, in order."""
    sizes: dict[Name, Text]
    """A problem: the integers that describe a call, and what each means."""
    axes: dict[Constant, Annotated[tuple[AxisValue, ...], Field(min_length=1)]]
    """The constants whose product, less what `where` excludes, are the variants."""
    where: tuple[Claim, ...] = ()
    """What a combination must meet to be built."""
    let: dict[Constant, Expression] = Field(default_factory=dict)
    """Integer constants made of axes and of those before them; templates see them."""
    derive: dict[Name, Expression] = Field(default_factory=dict)
    """Names for expressions over sizes, usable below."""
    templates: dict[Target, Text]
    """The template of each target, a path under templates/."""
    arguments: dict[Name, ArgumentPart]
    """The arrays that a caller gives."""
    params: tuple[ParamPart, ...]
    """The kernel's signature, in order."""
    launch: LaunchPart
    """Grid, block, cluster and dynamic shared memory."""
    serves: tuple[Claim, ...] = ()
    """What a problem must meet for a variant to serve it."""
    cost: Expression = ZERO
    """Of the variants that serve a problem, the one of least cost is taken."""
    workspace_bytes: Expression = ZERO
    """Scratch memory of a call."""
    budget: BudgetPart
    """The most that a compiled variant may use; a spill of any size is too much."""
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
    if isinstance(mistake, FieldError):
        return _at_its_place(document, location, mistake)
    if details["type"] == "missing" and isinstance(location[-1], str):
        where = document.at(*location, key=True)
        return ManifestError(f"key `{location[-1]}` is missing", where=where)
    what = _WORDS.get(details["type"], details["msg"].replace("Input should", "must"))
    return ManifestError(what, where=document.at(*location))


def _at_its_place(document: Document, location: Location, mistake: FieldError) -> ManifestError:
    about = () if mistake.key is None else (mistake.key,)
    is_key = bool(about) or location[-1:] == ("[key]",)
    where = document.at(*location, *about, key=is_key)
    return ManifestError(mistake.what, where=where, hint=mistake.hint)
