"""What a caller of a kernel may give, from the bundle alone: arrays, sizes and numbers by name.

The variants of one kernel differ in types, in sides that are constants, and in what their guards
ask of a size. What all of them say together is the kernel's face.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, TypeVar

from kernelpack.errors import BundleError
from kernelpack.formats.dtype import DType
from kernelpack.ops.operation import Form
from kernelpack.spec.expr import Op
from kernelpack.spec.params import Access, Argument
from kernelpack.spec.sides import counted
from kernelpack.spec.variant import Guard, Variant

P = TypeVar("P")
_REMEMBERED = 4096  # problems of a kernel

WORKSPACE = "workspace"
"""The argument that is scratch memory: made where it is not given, and not returned."""


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
        self._problems: dict[object, Any] = {}

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
    def pins(self) -> dict[str, dict[str, int]]:
        """By a variant's id: the sizes that a guard of its compares with one value, and that."""
        return {v.id: dict(filter(None, map(_pin, v.guards))) for v in self.variants}

    @cached_property
    def counted(self) -> frozenset[str]:
        """The sizes that sides of arrays are: integers, and nothing that stands for one."""
        return counted(self.variants)

    @cached_property
    def compared(self) -> frozenset[str]:
        """The sizes that guards look at: a word or a type has a meaning there alone."""
        return frozenset().union(*(g.when.names for v in self.variants for g in v.guards))

    def remembered(self, key: object, make: Callable[[], P]) -> P:
        """What is made of a problem, made once while few others are asked for."""
        if key not in self._problems:
            if len(self._problems) >= _REMEMBERED:
                self._problems.clear()
            self._problems[key] = make()
        found: P = self._problems[key]
        return found

    def shape(self, name: str) -> str:
        """The sides of an argument, as its manifest writes them."""
        return f"[{', '.join(self.inputs.get(name, self.outputs.get(name, _NONE)).dims.split())}]"

    def names(self) -> list[str]:
        """All that a call may give."""
        return [*self.inputs, *self.outputs, *self.sizes, *self.numbers]


_SEEN = tuple(d for d in DType if d not in (DType.TF32, DType.UE4M3))
"""Types that an array can have; of two that look alike, the usual one."""
_NONE = Form(dims="", dtypes=())


def alike(found: DType, wanted: DType) -> bool:
    """Whether an array of a type may stand for another: integers of a size, and bytes for u8."""
    both = found.is_integer and wanted.is_integer and found.bits == wanted.bits
    is_raw = wanted is DType.U8 and found.bits == wanted.bits
    return both or is_raw or found.numpy == wanted.numpy


def words(items: Iterable[object]) -> str:
    """Things of which one is right."""
    *some, last = dict.fromkeys(map(str, items))
    return f"{', '.join(some)} or {last}" if some else last


def _form(arguments: tuple[Argument, ...]) -> Form:
    """The rank and the types of an argument, whatever the variant."""
    wanted = {argument.dtype for argument in arguments}
    dtypes = [dtype for argument in arguments for dtype in (argument.dtype,)]
    dtypes += [d for d in _SEEN if any(alike(d, other) for other in wanted)]
    if len({len(argument.shape) for argument in arguments}) > 1:
        what = f"its variants take `{arguments[0].name}` with several numbers of sides"
        raise BundleError(
            what, hint="bundles of one kernel in two versions cannot be called by name"
        )
    sides = zip(*(argument.shape for argument in arguments), strict=True)
    dims = ("/".join(dict.fromkeys(str(side).replace(" ", "") for side in side)) for side in sides)
    return Form(dims=" ".join(dims), dtypes=tuple(dict.fromkeys(dtypes)))


def _pin(guard: Guard) -> tuple[str, int] | None:
    """The size of a guard that says `size == constant`, and the constant."""
    match guard.when.code:
        case ((Op.NAME, str(name)), (Op.CONST, int(value)), (Op.EQ, _)):
            return name, value
        case ((Op.CONST, int(value)), (Op.NAME, str(name)), (Op.EQ, _)):
            return name, value
    return None
