"""The arguments of a kernel, from the bundle alone: arrays, sizes and numbers by name.

The variants of one kernel differ in types, in sides that are constants, and in what their guards
ask of a size. Together they are the kernel's face.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from kernelpack.errors import BundleError
from kernelpack.formats.dtype import DType
from kernelpack.ops.operation import Form
from kernelpack.spec.expr import Op
from kernelpack.spec.params import Access, Argument
from kernelpack.spec.sides import counted
from kernelpack.spec.variant import Guard, Variant

WORKSPACE = "workspace"
"""The argument that is scratch memory: made where it is not given, and not returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """Variants that differ in nothing that a caller sees.

    Attributes:
        variant: one of them.
        arguments: the arrays that they take, by name.
        pins: the sizes that a guard of theirs compares with one value, and that.
        ids: of all of them.

    """

    variant: Variant
    arguments: Mapping[str, Argument]
    pins: Mapping[str, int]
    ids: frozenset[str]


class Face:
    """A kernel as its callers see it.

    Args:
        variants: those of one ABI, one at least.

    """

    def __init__(self, variants: tuple[Variant, ...]) -> None:
        self.variants, first = variants, variants[0]
        self.kernel, self.abis = first.kernel, range(first.abi, first.abi + 1)
        self.sizes = {size.name: size.doc for size in first.sizes}
        self.numbers = {number.name: number for number in first.numbers}

    @cached_property
    def arguments(self) -> dict[str, tuple[Argument, ...]]:
        """Each argument as the variants have it."""
        found: dict[str, dict[Argument, None]] = {}
        for variant in self.variants:
            for argument in variant.arguments:
                found.setdefault(argument.name, {})[argument] = None
        return {name: tuple(seen) for name, seen in found.items()}

    @cached_property
    def inputs(self) -> dict[str, Form]:
        """The arrays that are only read."""
        return {n: _form(a) for n, a in self.arguments.items() if a[0].access is Access.READ}

    @cached_property
    def outputs(self) -> dict[str, Form]:
        """The arrays that are written."""
        return {n: _form(a) for n, a in self.arguments.items() if n not in self.inputs}

    @cached_property
    def unreturned(self) -> frozenset[str]:
        """Outputs that a call does not return: scratch memory, and those that are read too."""
        both = (n for n, a in self.arguments.items() if a[0].access is Access.READ_WRITE)
        return frozenset({WORKSPACE, *both} & self.outputs.keys())

    @cached_property
    def kinds(self) -> tuple["Kind", ...]:
        """The variants, those together that take the same arrays for the same sizes' sake."""
        found: dict[tuple[object, ...], list[Variant]] = {}
        for v in self.variants:
            found.setdefault((v.arch, v.arguments, *_pins(v).items()), []).append(v)
        return tuple(map(_kind, found.values()))

    @cached_property
    def fixed(self) -> dict[str, tuple[int, ...]]:
        """By an argument's name: the places of sides that are constants in some variants."""
        return {name: _fixed(arguments) for name, arguments in self.arguments.items()}

    @cached_property
    def counted(self) -> frozenset[str]:
        """The sizes that sides of arrays are: integers, and nothing that stands for one."""
        return counted(self.variants)

    @cached_property
    def compared(self) -> frozenset[str]:
        """The sizes that guards look at: a word or a type has a meaning there alone."""
        return frozenset().union(*(g.when.names for v in self.variants for g in v.guards))

    def shape(self, name: str) -> str:
        """The sides of an argument, as its manifest writes them."""
        return f"[{', '.join(self.inputs.get(name, self.outputs.get(name, _NONE)).dims.split())}]"

    def names(self) -> list[str]:
        """All that a call may give."""
        return [*self.inputs, *self.outputs, *self.sizes, *self.numbers]


_NONE = Form(dims="", dtypes=())


STAND_INS = {
    DType.U16: (DType.I16,),
    DType.U32: (DType.I32,),
    DType.U64: (DType.I64,),
    DType.E4M3: (DType.U8,),
    DType.E5M2: (DType.U8,),
    DType.UE8M0: (DType.U8,),
    DType.UE4M3: (DType.U8, DType.E4M3),
}
"""The type used in frameworks that lack one."""


def alike(found: DType, wanted: DType) -> bool:
    """Whether an array of a type may stand for another; anything of eight bits is bytes."""
    is_raw = wanted is DType.U8 and found.bits == wanted.bits
    return is_raw or found.numpy == wanted.numpy or found in STAND_INS.get(wanted, ())


def types(arguments: Iterable[Argument]) -> str:
    """The types that an argument may have, in words."""
    wanted = dict.fromkeys(a.dtype for a in arguments)
    return words(d.label for dtype in wanted for d in (dtype, *STAND_INS.get(dtype, ())))


def words(items: Iterable[object]) -> str:
    """Alternatives: one is right."""
    *some, last = dict.fromkeys(map(str, items))
    return f"{', '.join(some)} or {last}" if some else last


def _form(arguments: tuple[Argument, ...]) -> Form:
    """The rank of an argument, whatever the variant; of its types, those of the variants first."""
    if len({len(argument.shape) for argument in arguments}) > 1:
        what = f"its variants take `{arguments[0].name}` with several numbers of sides"
        raise BundleError(
            what, hint="bundles of one kernel in two versions cannot be called by name"
        )
    sides = zip(*(argument.shape for argument in arguments), strict=True)
    dims = ("/".join(dict.fromkeys(str(side).replace(" ", "") for side in side)) for side in sides)
    dtypes = tuple(dict.fromkeys([*(argument.dtype for argument in arguments), *DType]))
    return Form(dims=" ".join(dims), dtypes=dtypes)


def _fixed(arguments: tuple[Argument, ...]) -> tuple[int, ...]:
    places = range(len(arguments[0].shape))
    return tuple(p for p in places if any(a.shape[p].constant is not None for a in arguments))


def _kind(variants: list[Variant]) -> Kind:
    first = variants[0]
    return Kind(
        variant=first,
        arguments={argument.name: argument for argument in first.arguments},
        pins=_pins(first),
        ids=frozenset(variant.id for variant in variants),
    )


def _pins(variant: Variant) -> dict[str, int]:
    return dict(filter(None, map(_pin, variant.guards)))


def _pin(guard: Guard) -> tuple[str, int] | None:
    """The size of a guard that says `size == constant`, and the constant."""
    match guard.when.code:
        case ((Op.NAME, str(name)), (Op.CONST, int(value)), (Op.EQ, _)):
            return name, value
        case ((Op.CONST, int(value)), (Op.NAME, str(name)), (Op.EQ, _)):
            return name, value
    return None
