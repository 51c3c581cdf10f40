"""From a call that was made the whole way to what can be repeated of it."""

from collections.abc import Sequence
from weakref import proxy

from kernelpack.load.library import Launch, Library, Moving, Pointing
from kernelpack.ops.again import Apart, Made, Repeat, Rules
from kernelpack.ops.arrays import Array
from kernelpack.ops.facts import Facts
from kernelpack.ops.output import Output, address_of
from kernelpack.ops.prepared import Call, Started
from kernelpack.ops.tensors import pattern
from kernelpack.ops.workspace import ALIGN, Part
from kernelpack.spec.launch import Scalar
from kernelpack.spec.params import MapParam, PointerParam
from kernelpack.spec.tensormap import TensorMap, align_of


class _Numbered:
    """The arrays of a call by their numbers."""

    def __init__(self, facts: Facts, started: Started) -> None:
        self.arrays = [*facts.arrays, *started.made]
        self.pointers = [*facts.pointers, *map(address_of, started.made)]
        self._numbers: dict[int, int] = {}
        self._instead = started.instead
        for number, array in enumerate(self.arrays):
            self._numbers.setdefault(id(array), number)

    def same(self) -> tuple[tuple[int, int], ...]:
        """Pairs of numbers of one array."""
        numbered = ((self._numbers[id(a)], number) for number, a in enumerate(self.arrays))
        return tuple((first, number) for first, number in numbered if first != number)

    def number(self, array: Array) -> int | None:
        """The number of an array, or of the workspace that it is a part of."""
        owner = array.of if isinstance(array, Part) else array
        return self._numbers.get(id(self._instead.get(id(owner), owner)))


def repeat_of(facts: Facts, started: Started, library: Library) -> Repeat | None:
    """The repeatable part of a call; None where nothing can."""
    numbered = _Numbered(facts, started)
    returned = [numbered.number(array) for array in started.outputs]
    launches = [_moving(call, launch, numbered, library) for call, launch in started.launches]
    rules = _rules(started.launches, numbered)
    is_mixed = len(_frameworks(facts.arrays)) > 1  # each has a stream to wait for
    if not launches or is_mixed or rules is None or None in launches or None in returned:
        return None
    return Repeat(
        library=proxy(library),  # it keeps this, for the garbage collector out of sight in C
        launches=tuple(launch for launch in launches if launch is not None),
        rules=rules,
        makes=tuple(map(_made, started.made)),
        returned=tuple(number for number in returned if number is not None),
        pointers=numbered.pointers,
    )


def _frameworks(arrays: Sequence[Array]) -> set[str]:
    """The packages that arrays are of, beside this one."""
    return {type(array).__module__.partition(".")[0] for array in arrays} - {"kernelpack"}


def _made(array: Array) -> Made:
    """How an array is made again."""
    if isinstance(array, Output):
        return Made(array.shape, array.dtype, None)
    return Made(tuple(array.shape), None, pattern(array, array.shape, array.dtype))


def _moving(call: Call, launch: Launch, numbered: _Numbered, library: Library) -> Moving | None:
    """A launch with the parameters that point into arrays; None where one is nobody's."""
    found: dict[int, Pointing] = {}
    listed = zip(launch.function.variant.params, launch.plan.arguments, strict=True)
    for index, (param, argument) in enumerate(listed):
        if isinstance(argument, Scalar) or not argument.address:  # a number, or an absent array
            continue
        assert isinstance(param, MapParam | PointerParam), "only these have addresses"
        name = param.map.argument if isinstance(param, MapParam) else param.argument
        number = numbered.number(call.given.get(name))
        if number is None:
            return None
        found[index] = Pointing(number, argument.address - numbered.pointers[number])
    return library.moving(launch, found)


def _rules(launches: Sequence[tuple[Call, Launch]], numbered: _Numbered) -> Rules | None:
    """Conditions on arrays; None where addresses cannot decide them."""
    spans: dict[int, range] = {}
    bits: dict[int, int] = {}
    written: set[int] = set()
    for call, launch in launches:
        for name, view in call.views.items():
            if not view.size:
                continue
            given = call.given.get(name)
            number = numbered.number(given)
            if number is None:
                return None
            start = view.pointer - numbered.pointers[number]
            spans[number] = _both(spans.get(number), range(start, start + len(view.bytes)))
            align = ALIGN if isinstance(given, Part) else _align(launch, name)
            bits[number] = bits.get(number, 0) | (align - 1)
            written |= {number} if name in call.written else set()
    apart = tuple(
        Apart(i, j, spans[j].start - spans[i].stop, spans[j].stop - spans[i].start)
        for i in sorted(written)
        for j in spans
        if i != j and not (j in written and j < i)
    )
    aligned = tuple((i, mask, numbered.pointers[i] & mask) for i, mask in bits.items())
    rules = Rules(same=numbered.same(), aligned=aligned, apart=apart)
    return rules if rules.hold(numbered.arrays, numbered.pointers) else None


def _align(launch: Launch, name: str) -> int:
    """Bytes that an argument's address is a multiple of, as a power of two."""
    variant = launch.function.variant
    aligns = [argument.align_bytes for argument in variant.arguments if argument.name == name]
    listed = zip(variant.params, launch.plan.arguments, strict=True)
    maps = [
        align_of(argument)
        for param, argument in listed
        if isinstance(param, MapParam)
        and isinstance(argument, TensorMap)
        and param.map.argument == name
    ]
    return max([1, *aligns, *maps])


def _both(known: range | None, more: range) -> range:
    """Bytes from the first of both to the last."""
    if known is None:
        return more
    return range(min(known.start, more.start), max(known.stop, more.stop))
