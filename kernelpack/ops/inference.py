"""The sizes of a call from its arrays: what their sides and types say, each by name.

A side that is a size gives it, and so do `2 * size` and `size + 1`; every other side is checked. A
type follows from the guards of the variants that take it. All else must be
given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from kernelpack.errors import ProblemError, UnservedError
from kernelpack.formats.dtype import DType
from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.face import Face, Kind, alike, types, words
from kernelpack.spec.expr import Expr, Op, evaluate, symbol
from kernelpack.spec.nearest import nearest
from kernelpack.spec.params import Access, Argument
from kernelpack.spec.sides import counted_by, named_alone, says, solved

Views = Mapping[str, DeviceArray]
Takes = Callable[[Kind], bool]


@dataclass(slots=True, kw_only=True)
class Inference:
    """The facts of a call.

    Attributes:
        face: the kernel's.
        kinds: those variants that take the arrays.
        sizes: by name, those of the device too.
        given: the given sizes; where they count rows, an array may have more.
        word: from an argument's name to the caller's word.
        sources: the array that each size was read from.
        first: the array that was looked at first.

    """

    face: Face
    kinds: tuple[Kind, ...]
    sizes: dict[str, int]
    given: Mapping[str, int]
    word: Callable[[str], str]
    sources: dict[str, str] = field(default_factory=dict)
    first: str = ""

    def read(self, views: Views) -> None:
        """Read the sizes from arrays, inputs first.

        Raises:
            UnservedError: a type, a side or a size is not one of the kernel's, or does not go with
                another.
            ProblemError: a size is not given and nothing says it.

        """
        known = self.kinds
        self._keep_known()
        for name, array in views.items():
            self._keep(name, array, known)
        for names in (self.face.inputs, self.face.outputs):
            for solve in (named_alone, solved):
                for name in names:
                    if name in views:
                        self._bind(name, views[name], solve)
        self._keep_known()
        for size in self.face.sizes:
            if size not in self.sizes:
                self._unpin(size, views)

    def check(self, views: Views) -> None:
        """Check every side against the sizes.

        Raises:
            ProblemError: names the array, the side and what would be right.

        """
        rows = self.face.counted.intersection(self.given)
        for name, array in views.items():
            if argument := self.kinds[0].arguments.get(name):
                self._check(argument, array, rows)

    def _keep(self, name: str, array: DeviceArray, known: tuple[Kind, ...]) -> None:
        """Keep the variants that take an array's type, and its sides where theirs are constants."""
        self._filter(partial(_has_type, name, array.dtype), name, array.dtype.label, known)
        for place in self.face.fixed[name]:
            found = array.shape[place]
            takes = partial(_may_have, name, place, found)
            if not any(map(takes, self.kinds)):
                wanted = words(a.shape[place] for a in self._have(name))
                rule = f"must have {wanted} along side {place}, not {found}"
                raise UnservedError(f"`{self.word(name)}` {rule}", where=self.face.kernel)
            self.kinds = tuple(filter(takes, self.kinds))
        self.first = self.first or self.word(name)

    def _have(self, name: str) -> list[Argument]:
        return [a for kind in self.kinds if (a := kind.arguments.get(name))]

    def _filter(self, takes: Takes, name: str, found: str, known: tuple[Kind, ...]) -> None:
        """Keep the variants that take a type; those of a family that lack the argument stay."""
        kept = tuple(filter(takes, self.kinds))
        if not kept:
            left = {a.dtype for a in self._have(name)}
            others = [k for k in known if (a := k.arguments.get(name)) and a.dtype not in left]
            why = self._why(list(filter(takes, known)) or others)
            rule = f"`{self.word(name)}` must be {types(self._have(name))}{why}, not {found}"
            raise UnservedError(rule, where=self.face.kernel)
        self.kinds = kept

    def _why(self, gone: Sequence[Kind]) -> str:
        """The reason why variants of another type do not fit: a given size, or arrays."""
        for kind in gone:
            for size, value in self.given.items():
                if kind.pins.get(size, value) != value:
                    return f" as `{size}` says"
        return f" beside `{self.first}`" if gone and self.first else ""

    def _bind(
        self, name: str, array: DeviceArray, solve: Callable[[Expr, int], tuple[str, int]]
    ) -> None:
        if argument := self.kinds[0].arguments.get(name):
            for side, found in zip(argument.shape, array.shape, strict=True):
                size, value = solve(side, found)
                if size in self.face.sizes and size not in self.sizes:
                    self.sizes[size], self.sources[size] = value, self.word(name)

    def _keep_known(self) -> None:
        """Drop the variants whose guards ask something else of a known size."""
        for size, value in self.sizes.items():
            kept = tuple(kind for kind in self.kinds if kind.pins.get(size, value) == value)
            if not kept:
                source = self.sources.get(size)
                found = f"{source}'s {value}" if source else _shown(value)
                choices = [_word(kind, size) for kind in self.kinds]
                rule = f"`{size}` must be {words(choices)}{self._beside(size)}, not {found}"
                raise UnservedError(rule, where=self.face.kernel, hint=nearest(found, choices))
            self.kinds = kept

    def _beside(self, size: str) -> str:
        """The array whose type was read first, which a size that was given must go with."""
        return f" beside `{self.first}`" if self.first and size not in self.sources else ""

    def _unpin(self, size: str, views: Views) -> None:
        """Take what every variant left asks of a size; what else is unknown must be given."""
        values = {kind.pins.get(size) for kind in self.kinds}
        value = next(iter(values))
        if len(values) > 1 or value is None:
            one_of = f", as {words(_word(kind, size) for kind in self.kinds)}"
            rule = f"`{size}` must be given{one_of * (values != {None})}: {self.face.sizes[size]}"
            what = self._missing(size, views) or rule
            raise ProblemError(what, where=self.face.kernel)
        self.sizes[size] = value

    def _missing(self, size: str, views: Views) -> str:
        """The array whose side would say a size, and is not there or has no such side."""
        for argument in self.kinds[0].variant.arguments:
            name = argument.name
            if size not in says(argument):
                continue
            if name in views:
                place = [counted_by(side) for side in argument.shape].index(size)
                side, found = argument.shape[place], views[name].shape[place]
                return f"`{self.word(name)}` must have {side} along side {place}, not {found}"
            if argument.access is not Access.WRITE:
                shape = self.face.shape(name)
                return f"`{name}` must be given: {shape} of {types(self._have(name))}"
        return ""

    def _check(self, argument: Argument, array: DeviceArray, rows: frozenset[str]) -> None:
        """Hold the sides of an array; of the first there may be more where rows were given."""
        name = self.word(argument.name)
        for place, (side, found) in enumerate(zip(argument.shape, array.shape, strict=True)):
            wanted = evaluate(side, self.sizes)
            may_be_more = place == 0 and not side.names.isdisjoint(rows)
            if found != wanted and not (may_be_more and found > wanted):
                what = "at least " * may_be_more + self._words(name, side, wanted)
                rule = f"`{name}` must have {what} along side {place}, not {found}"
                raise ProblemError(rule, where=self.face.kernel)

    def _words(self, name: str, side: Expr, wanted: int) -> str:
        """A side in words: `x's width, 4096`, or `2 * width, 8192`."""
        has_condition = " if " in side.text
        is_decided = has_condition and Op.SELECT not in {op for op, _ in side.code}
        if side.constant is not None or is_decided:
            return str(wanted)
        owners = {source for size in side.names if (source := self.sources.get(size, name)) != name}
        owner = f"{owners.pop()}'s " if len(owners) == 1 and not has_condition else ""
        return f"{owner}{side}, {wanted},"


def _word(kind: Kind, size: str) -> str:
    """A variant's condition on a size, as its axis has it."""
    pin = kind.pins.get(size)
    for _, value in kind.variant.axes:
        if pin == (symbol(value) if isinstance(value, str) else value):
            return str(value)
    return "any" if pin is None else str(pin)


def _shown(size: int) -> str:
    return size.label if isinstance(size, DType) else str(size)


def _has_type(name: str, dtype: DType, kind: Kind) -> bool:
    argument = kind.arguments.get(name)
    return argument is None or alike(dtype, argument.dtype)


def _may_have(name: str, place: int, found: int, kind: Kind) -> bool:
    """Whether a side is the argument's, or depends on a size."""
    argument = kind.arguments.get(name)
    return argument is None or argument.shape[place].constant in (None, found)
