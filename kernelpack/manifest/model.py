"""The schema of a manifest, as pydantic models: the shared part, and a block a family.

A mistake is a ManifestError at the line and column where it is. Rules that need the whole
manifest (names, ranks, unused axes) are in `names`.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, ValidationError

from kernelpack.errors import ManifestError
from kernelpack.manifest.fields import (
    AxisValue,
    Constant,
    Expression,
    FamilyWord,
    FieldError,
    Name,
    Target,
    Text,
)
from kernelpack.manifest.parts import (
    ArgumentPart,
    BudgetPart,
    Claim,
    LaunchPart,
    Numbers,
    ParamPart,
    Part,
)
from kernelpack.manifest.reader import Document, Location
from kernelpack.spec.expr import ZERO


class _Body(Part):
    """Keys that a family's block and the shared part may both have; one of the two has each."""

    where: tuple[Claim, ...] = ()
    """A condition for a combination to be built."""
    let: dict[Constant, Expression] = Field(default_factory=dict)
    """Integer constants made of axes and of each other; templates see them."""
    derive: dict[Name, Expression] = Field(default_factory=dict)
    """Names for expressions over sizes and each other, for what is known in a call alone."""
    launch: LaunchPart = Field(default_factory=LaunchPart)
    """Grid, block, cluster and dynamic shared memory."""
    serves: tuple[Claim, ...] = ()
    """A condition for a variant to serve a problem."""
    cost: Expression = ZERO
    """Of the variants that serve a problem, the one of least cost is taken."""
    workspace_bytes: Expression = ZERO
    """Scratch memory of a call."""
    budget: BudgetPart = Field(default_factory=BudgetPart)
    """The most that a compiled variant may use; a spill of any size is too much."""


class Block(_Body):
    """The keys of one family's kernels, in addition to the shared ones.

    Claims and names are added to the shared ones; a key of `launch` or `budget`, `cost` and
    `workspace_bytes` are in one of the two places.
    """

    template: Text
    """The family's template, a path under templates/."""


class _Head(Part):
    """Keys that do not depend on the family."""

    kernel: Name
    """The kernel's stem, the same in every folder."""
    abi: Annotated[int, Field(ge=1, lt=2**31)]
    """Changes when a caller would have to change."""
    doc: Text
    """A sentence about the kernel."""
    targets: Annotated[tuple[Target, ...], Field(min_length=1)]
    """The targets, in order; each is of a family that has a block."""
    families: dict[FamilyWord, Block] = Field(alias="for")
    """A block a family: what its kernels alone have."""
    sizes: dict[Name, Text]
    """A problem: the integers that describe a call, and what each means."""
    numbers: Numbers = Field(default_factory=dict)
    """The real numbers of a call, such as an epsilon, and what each means."""
    axes: dict[Constant, Annotated[tuple[AxisValue, ...], Field(min_length=1)]]
    """The constants whose product, less what `where` excludes, are the variants."""
    arguments: dict[Name, ArgumentPart]
    """The arrays that a caller gives."""
    params: tuple[ParamPart, ...]
    """The kernel's signature, in order."""


class Manifest(_Body, _Head):
    """A kernel's variants, its launch, and the problems that it serves."""

    _document: Document = PrivateAttr()

    def at(self, *location: str | int, key: bool = False) -> str:
        """`path:line:column` of a value, or of its key."""
        return self._document.at(*location, key=key)


def validate(document: Document) -> Manifest:
    """Check a document against the models.

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
