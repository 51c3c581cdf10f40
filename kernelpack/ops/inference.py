"""The sizes of a call from its arrays: what their sides and types say, each by name.

A side that is a size gives it, and so do `2 * size` and `size + 1`; every other side is checked. A
type is told from the others by the guards of the variants that take it. What neither says must be
given.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.checks import require
from kernelpack.ops.face import Face, alike, words
from kernelpack.spec.expr import Expr, evaluate, symbol
from kernelpack.spec.params import Access, Argument
from kernelpack.spec.sides import named_alone, says, solved
from kernelpack.spec.variant import Variant

Views = Mapping[str, DeviceArray]


@dataclass(slots=True, kw_only=True)
class Inference:
    """What is known of a call.

    Attributes:
        face: the kernel's.
        variants: those that take the arrays.
        sizes: by name, those of the device too.
        given: the sizes that the caller gave, whose arrays may have more rows, as they were put.
        sources: the array that each size was read from.
        first: the array that was looked at first.

    """

    face: Face
    variants: tuple[Variant, ...]
    sizes: dict[str, int]
    given: Mapping[str, str]
    sources: dict[str, str] = field(default_factory=dict)
    first: str = ""

    def read(self, views: Views) -> None:
        """Read the sizes from arrays, inputs first.

        Raises:
            ProblemError: a type or a side is none of the kernel's, or does not go with another
                array's; or a size is not given and nothing says it.

        """
        for name, array in views.items():
            self._keep(name, array)
        for solve in (named_alone, solved):
            for name, array in views.items():
                self._bind(name, array, solve)
        self._keep_known()
        self._unpin(views)
        for name, array in views.items():
            self._check(name, array)

    def _keep(self, name: str, array: DeviceArray) -> None:
        """Keep the variants that take an array's type, and its sides where theirs are constants."""
        types = words(a.dtype.label for a in self._have(name))
        rule = f"`{name}` must be {types}{self._beside('')}, not {array.dtype.label}"
        self._filter(name, lambda a: alike(array.dtype, a.dtype), rule)
        for place, found in enumerate(array.shape):
            wanted = words(a.shape[place] for a in self._have(name))
            rule = f"`{name}` must have {wanted} along side {place}, not {found}"
            self._filter(name, partial(_may_have, place, found), rule)
        self.first = self.first or name

    def _have(self, name: str) -> list[Argument]:
        return [a for v in self.variants for a in v.arguments if a.name == name]

    def _filter(self, name: str, takes: Callable[[Argument], bool], rule: str) -> None:
        """Keep the variants whose argument suits; those of a family that lacks it stay."""
        kept = tuple(v for v in self.variants if all(map(takes, _named(v, name))))
        require(bool(kept), rule, self.face.kernel)
        self.variants = kept

    def _bind(
        self, name: str, array: DeviceArray, solve: Callable[[Expr, int], tuple[str, int]]
    ) -> None:
        for argument in _named(self.variants[0], name):
            for side, found in zip(argument.shape, array.shape, strict=True):
                size, value = solve(side, found)
                if size in self.face.sizes and size not in self.sizes:
                    self.sizes[size], self.sources[size] = value, name

    def _keep_known(self) -> None:
        """Drop the variants whose guards ask something else of a known size."""
        for size, value in self.sizes.items():
            pins = {v.id: self.face.pins[v.id].get(size, value) for v in self.variants}
            choices = words(self._word(v, size) for v in self.variants)
            source = self.sources.get(size)
            found = f"{source}'s {value}" if source else self.given.get(size, str(value))
            rule = f"`{size}` must be {choices}{self._beside(size)}, not {found}"
            require(value in pins.values(), rule, self.face.kernel)
            self.variants = tuple(v for v in self.variants if pins[v.id] == value)

    def _beside(self, size: str) -> str:
        """The array whose type was read first, which a size that was given must go with."""
        return f" beside `{self.first}`" if self.first and size not in self.sources else ""

    def _unpin(self, views: Views) -> None:
        """Take what every variant left asks of a size; what else is unknown must be given."""
        for size, doc in self.face.sizes.items():
            if size in self.sizes:
                continue
            values = {self.face.pins[v.id].get(size) for v in self.variants}
            value = next(iter(values))
            if len(values) == 1 and value is not None:
                self.sizes[size] = value
                continue
            is_pinned = values != {None}
            one_of = f", as {words(self._word(v, size) for v in self.variants)}" * is_pinned
            rule = f"`{size}` must be given{one_of}: {doc}"
            require(False, self._missing(size, views) or rule, self.face.kernel)

    def _missing(self, size: str, views: Views) -> str:
        """The array that is to be read and is not there, where a side of it would say a size."""
        for argument in self.variants[0].arguments:
            name, is_there = argument.name, argument.name in views
            if argument.access is not Access.WRITE and not is_there and size in says(argument):
                types = words(a.dtype.label for a in self._have(name))
                return f"`{name}` must be given: {self.face.shape(name)} of {types}"
        return ""

    def _word(self, variant: Variant, size: str) -> str:
        """What a variant asks of a size, as its axis has it."""
        pin = self.face.pins[variant.id].get(size)
        for _, value in variant.axes:
            if pin == (symbol(value) if isinstance(value, str) else value):
                return str(value)
        return "any" if pin is None else str(pin)

    def _check(self, name: str, array: DeviceArray) -> None:
        for argument in _named(self.variants[0], name):
            for place, side in enumerate(argument.shape):
                found, wanted = array.shape[place], evaluate(side, self.sizes)
                may_be_more = place == 0 and not side.names.isdisjoint(self.given)
                holds = found == wanted or (may_be_more and found > wanted)
                rule = f"`{name}` must have {self._words(name, side, wanted)} along side {place}"
                require(bool(holds), f"{rule}, not {found}", self.face.kernel)

    def _words(self, name: str, side: Expr, wanted: int) -> str:
        """A side in words: `x's width, 4096`, or `2 * width, 8192`."""
        source = self.sources.get(side.text, name)
        owner = f"{source}'s " if source != name else ""
        return str(wanted) if side.constant is not None else f"{owner}{side}, {wanted},"


def _named(variant: Variant, name: str) -> list[Argument]:
    """The argument of a name, if the variant has it."""
    return [argument for argument in variant.arguments if argument.name == name]


def _may_have(place: int, found: int, argument: Argument) -> bool:
    """Whether a side is the argument's, or depends on a size."""
    return argument.shape[place].constant in (None, found)
