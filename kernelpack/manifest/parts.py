"""The mappings within a manifest and their keys, as pydantic models.

A key that has no default must be there, but for those of `launch` and `budget`: a family's block
may give them instead (`family` sees that somebody does).
"""

from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    model_validator,
)

from kernelpack.manifest.fields import (
    AccessWord,
    Alignment,
    Expression,
    FamilyWord,
    FieldError,
    FillWord,
    InterleaveWord,
    Name,
    PromotionWord,
    Real,
    SwizzleWord,
    Text,
    Vector,
    Word,
)
from kernelpack.spec.expr import ONE, ZERO
from kernelpack.spec.nearest import nearest
from kernelpack.spec.params import Access
from kernelpack.spec.tensormap import Fill, Interleave, Promotion, Swizzle

ELSEWHERE: Any = None
"""The value of a key that a family's block, or the shared part, must give."""


class Part(BaseModel):
    """A mapping of a manifest: no unknown key, no silent conversion, never changed."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Its keys, as YAML has them."""
        return tuple(field.alias or name for name, field in cls.model_fields.items())

    @model_validator(mode="before")
    @classmethod
    def _keys_are_known(cls, data: object) -> object:
        known = cls.keys()
        for key in data if isinstance(data, dict) else ():
            if key not in known:
                hint = nearest(key, known) or f"keys: {', '.join(known)}"
                raise FieldError(f"unknown key `{key}`", hint, key=key)
        return data


class Claim(Part):
    """A condition, and the reason that is given where it does not hold."""

    when: Expression
    """An expression that is not 0 where the claim holds."""
    reason: Text
    """The message where it does not."""


class NumberPart(Part):
    """A real number of a call: what it means, or a mapping with that and its default."""

    doc: Text
    """Its meaning."""
    default: Real | None = None
    """The default where a call does not give it: `1e-6`, `0.5`, `-inf`."""

    @model_validator(mode="before")
    @classmethod
    def _of_its_meaning(cls, data: object) -> object:
        return {"doc": data} if isinstance(data, str) else data


class _OrItsMeaning:
    """For editors: a number may be its meaning alone."""

    def __get_pydantic_json_schema__(
        self,
        core: Any,  # noqa: ANN401 - pydantic's
        handler: GetJsonSchemaHandler,
    ) -> dict[str, Any]:
        return {"anyOf": [{"type": "string", "minLength": 1}, handler(core)]}


Numbers = dict[Name, Annotated[NumberPart, _OrItsMeaning()]]


class ArgumentPart(Part):
    """An array of the caller; `dtype` is a type, or an axis of types; `align` in bytes."""

    family: FamilyWord = Field(default="", alias="for")
    """The family of targets that alone has it; every one where it is left out."""
    dtype: Word
    """The element type: a word, or an axis of such words."""
    shape: Annotated[tuple[Expression, ...], Field(min_length=1)]
    """Elements that the kernel may touch, outermost side first; of none, its pointer is null."""
    access: AccessWord = Access.READ
    """The kernel's access."""
    align: Alignment = 16
    """Bytes that its address is a multiple of; a power of two."""


class MapPart(Part):
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
    """The value outside of the tensor."""
    promotion: PromotionWord = Promotion.NONE
    """How much L2 fetches around what is read."""
    gather4: bool = False
    """Whether rows are copied by `tile::gather4` or `tile::scatter4`: boxes of one row."""


class MapParamPart(Part):
    """A parameter that is a tensor map."""

    name: Name
    """Its name in the kernel's signature."""
    family: FamilyWord = Field(default="", alias="for")
    """The family of targets that alone has it; every one where it is left out."""
    map: MapPart
    """The map, below."""


class PointerParamPart(Part):
    """A parameter that is the address of an argument."""

    name: Name
    """Its name in the kernel's signature."""
    family: FamilyWord = Field(default="", alias="for")
    """The family of targets that alone has it; every one where it is left out."""
    pointer: Name
    """The argument whose address it is."""


class ScalarParamPart(Part):
    """A parameter that is an integer or a number of the call; `scalar` is its type."""

    name: Name
    """Its name in the kernel's signature."""
    family: FamilyWord = Field(default="", alias="for")
    """The family of targets that alone has it; every one where it is left out."""
    scalar: Word
    """Its type: one of integers, or fp16, bf16, fp32, fp64; or an axis of such."""
    value: Expression
    """Its value in a call: of an integer an expression, of another type the name of a number."""


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


class LaunchPart(Part):
    """Grid, block and cluster along x, y, z; dynamic shared memory; programmatic launch."""

    grid: Vector = Field(default=ELSEWHERE)
    """Blocks."""
    block: Vector = Field(default=ELSEWHERE)
    """Threads of a block."""
    cluster: Vector = (ONE, ONE, ONE)
    """Blocks of a cluster; the grid is a multiple of it."""
    shared_bytes: Expression = ZERO
    """Dynamic shared memory of a block."""
    programmatic: bool = False
    """Whether it may start before the kernel ahead of it in the stream has ended."""


class BudgetPart(Part):
    """The most that a compiled variant may use, from constants alone."""

    registers: Expression = Field(default=ELSEWHERE)
    """Of a thread."""
    shared_bytes: Expression = Field(default=ELSEWHERE)
    """Of a block, static and dynamic."""
    tensor_memory_columns: Expression = ZERO
    """Of a block, on Blackwell."""
