"""A call that looks like an earlier one: its launches are there, and only addresses are new.

What depends on shapes, strides, types, numbers and the device alone (checks, choice, plan, tensor
maps) was computed by the earlier call, and is found by one key. Looked at anew, at every call, is
where arrays lie, whether that is aligned and apart, the stream, and whose it is. Where any of it is
not as it should be, the call goes the whole way again, which refuses it in its own words.

A library remembers for each thread by itself: nothing is locked, and no two calls share a launch.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import proxy

from kernelpack.errors import KernelpackError
from kernelpack.formats.dtype import DType
from kernelpack.load import load
from kernelpack.load.library import Launch, Library, Moving, Pointing
from kernelpack.ops import native
from kernelpack.ops.arrays import Array
from kernelpack.ops.facts import Facts
from kernelpack.ops.output import Output, address_of, new_output
from kernelpack.ops.prepared import Call, Started, one_or_all
from kernelpack.ops.stream import LEGACY, stream_handle
from kernelpack.ops.tensors import Tensor, new_tensor, pattern, tensor_maker
from kernelpack.ops.workspace import ALIGN, Part
from kernelpack.spec.launch import Scalar
from kernelpack.spec.params import MapParam, PointerParam
from kernelpack.spec.tensormap import TensorMap, align_of

KEPT = 512
"""Calls that a thread remembers of a library; the oldest goes first."""

_END = 1 << 64  # of addresses

_OF_A_LAUNCH = frozenset({"stream", "library", "debug"})


def repeated(
    what: Hashable,
    start: Callable[[], Started],
    args: tuple[Any, ...],
    given: dict[str, Any],
) -> Array:
    """Make a call: as an earlier one where it looks like one, else the whole way.

    Args:
        what: is called.
        start: makes the call the whole way.
        args: the arguments by position.
        given: those by keyword, `stream`, `library` and `debug` among them.

    """
    library = _library(given)
    if library is None:
        return start().out
    stream, known = given.get("stream"), library.repeats.known
    handle = 0 if stream is None else stream_handle(stream)
    if native.call is not None:
        found = native.call(what, args, given, known, handle)
        if found.__class__ is list:  # what a call is known by
            key, arrays, pointers = found
            return _first(Facts(key, arrays, pointers), start, library, native.made)
        if found is not NotImplemented:
            return found
    facts = Facts([what, *given])
    try:
        is_read = facts.read(args) and facts.read(_own(given))
        facts.key = tuple(facts.key)
        repeat = known.get(facts.key)
    except (RuntimeError, TypeError):  # a tensor without an address; a raw array's list of sides
        is_read = False
    if not is_read:
        return start().out
    if repeat is not None:
        known.pop(facts.key, None)  # a call amid this one, by a finalizer, makes its own
        arrays = repeat.fits(facts, handle)
        if arrays is not None:
            out = repeat.start(handle, arrays)
            known[facts.key] = repeat
            return out
    return _first(facts, start, library, _as_it_is)


def _own(given: Mapping[str, Any]) -> list[Any]:
    """The arguments by keyword but those of any launch."""
    return [value for name, value in given.items() if name not in _OF_A_LAUNCH]


def _first(
    facts: Facts,
    start: Callable[[], Started],
    library: Library,
    kept: Callable[["Repeat"], object],
) -> Array:
    """Make a call the whole way, and remember what can be repeated of it."""
    started, known = start(), library.repeats.known
    repeat = _repeat(facts, started, library)
    if repeat is not None:
        if len(known) >= KEPT:
            known.pop(next(iter(known)), None)
        known[facts.key] = kept(repeat)
    return started.out


def _as_it_is(repeat: "Repeat") -> object:
    return repeat


def _library(given: Mapping[str, Any]) -> Library | None:
    """The kernels of a call for a GPU; None of one that is not to be remembered."""
    library = given.get("library")
    if library is None:
        with suppress(KernelpackError):  # the whole way says what is missing
            library = load.default()
    return None if given.get("debug") or not isinstance(library, Library) else library


@dataclass(frozen=True, slots=True)
class _Made:
    """An output that each call makes: an `Output` of a type, or a tensor like a pattern."""

    shape: tuple[int, ...]
    dtype: DType | None
    pattern: Tensor

    @property
    def maker(self) -> Callable[[], Tensor] | None:
        """What makes a tensor on torch's current stream; None of an `Output`."""
        return None if self.dtype is not None else tensor_maker(self.pattern)


@dataclass(frozen=True, slots=True)
class _Apart:
    """Two arrays of which one is written: `low < first - second < high` where they overlap."""

    first: int
    second: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What must hold of a call's arrays, which have numbers: those given, then those made.

    Attributes:
        same: pairs of numbers of one array that was given twice.
        aligned: of each array of some elements its number, the low bits of its address that
            count, and what they are.
        apart: the pairs of which one is written.

    """

    same: tuple[tuple[int, int], ...]
    aligned: tuple[tuple[int, int, int], ...]
    apart: tuple[_Apart, ...]

    def hold(self, arrays: Sequence[Array], pointers: Sequence[int]) -> bool:
        """Whether these may be a call's arrays, at these addresses."""
        for first, second in self.same:
            if arrays[first] is not arrays[second]:
                return False
        for number, bits, low in self.aligned:
            pointer = pointers[number]
            if not 0 < pointer < _END or pointer & bits != low:
                return False
        for pair in self.apart:
            if pair.low < pointers[pair.first] - pointers[pair.second] < pair.high:
                return False
        return True


@dataclass(slots=True, kw_only=True)
class Repeat:
    """The launches of a call, to be started for arrays elsewhere. For one thread.

    Attributes:
        library: whose launches they are; a proxy, as a library ends with its user.
        launches: in order.
        rules: what must hold of arrays.
        makes: the outputs that are made.
        returned: the numbers of the arrays that the caller gets.
        pointers: where the launches have their arrays.

    """

    library: Library
    launches: tuple[Moving, ...]
    rules: _Rules
    makes: tuple[_Made, ...]
    returned: tuple[int, ...]
    pointers: list[int]

    def fits(self, facts: Facts, stream: int) -> list[Array] | None:
        """The arrays of a call for which the launches are ready now; None: they do not serve it."""
        first = self.launches[0]
        if not first.takes(stream) or (self.makes and self._is_captured(stream)):
            return None
        if facts.stream is not None:
            self.order(stream, facts.stream(facts.device))
        arrays, pointers = list(facts.arrays), list(facts.pointers)
        for number in range(len(self.makes)):
            array, pointer = self.make(number, stream)
            arrays.append(array)
            pointers.append(pointer)
        if pointers == self.pointers and not self.rules.same:
            return arrays
        if not self.rules.hold(arrays, pointers):
            return None
        self.pointers = []  # until all of them are there
        for launch in self.launches:
            if not launch.put(pointers):
                return None
        self.pointers = pointers
        return arrays

    def _is_captured(self, stream: int) -> bool:
        known = self.launches[0].is_capturing(stream)
        return self.library.driver.is_capturing(stream, self._device) if known is None else known

    def start(self, stream: int, arrays: Sequence[Array]) -> Array:
        """Start the launches; what the caller gets of a call's arrays."""
        for moving in self.launches:
            moving.launch(stream)
        return one_or_all([arrays[number] for number in self.returned])

    @property
    def _device(self) -> int:
        return self.launches[0].device

    def order(self, stream: int, producer: int) -> None:
        """Let the stream wait for what a framework gave to its own, where that is another."""
        if (producer or LEGACY) != (stream or LEGACY):
            self.library.order(stream, producer, self._device)

    def make(self, number: int, stream: int) -> tuple[Array, int]:
        """An output that the call makes, and its address."""
        made = self.makes[number]
        if made.dtype is None:
            tensor = new_tensor(made.pattern, stream)
            return tensor, tensor.data_ptr()
        output = new_output(self.library, made.shape, made.dtype, self._device)
        return output, output.memory.address

    def enter(self) -> None:
        """Make the device's context current, where another is or none, and the stream a default."""
        self.library.driver.call("cuCtxPushCurrent", self.launches[0].launch.context)

    def leave(self) -> None:
        """Put back what `enter` found."""
        self.library.driver.call("cuCtxPopCurrent")

    def fail(self, code: int) -> None:
        """Raise what the driver answered to a launch."""
        raise self.library.driver.error("cuLaunchKernelEx", code)


# --- from a call that was made the whole way ---


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


def _repeat(facts: Facts, started: Started, library: Library) -> Repeat | None:
    """What can be repeated of a call; None where nothing can."""
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


def _made(array: Array) -> _Made:
    """How an array is made again."""
    if isinstance(array, Output):
        return _Made(array.shape, array.dtype, None)
    return _Made(tuple(array.shape), None, pattern(array, array.shape, array.dtype))


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


def _rules(launches: Sequence[tuple[Call, Launch]], numbered: _Numbered) -> _Rules | None:
    """What must hold of arrays; None where it cannot be said by their addresses."""
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
        _Apart(i, j, spans[j].start - spans[i].stop, spans[j].stop - spans[i].start)
        for i in sorted(written)
        for j in spans
        if i != j and not (j in written and j < i)
    )
    aligned = tuple((i, mask, numbered.pointers[i] & mask) for i, mask in bits.items())
    rules = _Rules(same=numbered.same(), aligned=aligned, apart=apart)
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
    return max(1, *aligns, *maps, 1)


def _both(known: range | None, more: range) -> range:
    """Bytes from the first of both to the last."""
    if known is None:
        return more
    return range(min(known.start, more.start), max(known.stop, more.stop))
