"""The launches of an earlier call, to be started for other arrays, and what must hold of those."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelpack.formats.dtype import DType
from kernelpack.load.library import Library, Moving
from kernelpack.ops.arrays import Array
from kernelpack.ops.facts import Facts
from kernelpack.ops.output import new_output
from kernelpack.ops.prepared import one_or_all
from kernelpack.ops.stream import LEGACY
from kernelpack.ops.tensors import Tensor, new_tensor, tensor_maker

_END = 1 << 64  # of addresses


@dataclass(frozen=True, slots=True)
class Made:
    """An output that each call makes: an `Output` of a type, or a tensor like a pattern."""

    shape: tuple[int, ...]
    dtype: DType | None
    pattern: Tensor

    @property
    def maker(self) -> Callable[[], Tensor] | None:
        """The function that makes a tensor on torch's current stream; None for an `Output`."""
        return None if self.dtype is not None else tensor_maker(self.pattern)


@dataclass(frozen=True, slots=True)
class Apart:
    """Two arrays, one of them written: `low < first - second < high` where they overlap."""

    first: int
    second: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Conditions on a call's arrays, which have numbers: those given, then those made.

    Attributes:
        same: pairs of numbers of one array that was given twice.
        aligned: of each array of some elements its number, the low bits of its address that
            count, and what they are.
        apart: the pairs with a written one.

    """

    same: tuple[tuple[int, int], ...]
    aligned: tuple[tuple[int, int, int], ...]
    apart: tuple[Apart, ...]

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
    rules: Rules
    makes: tuple[Made, ...]
    returned: tuple[int, ...]
    pointers: list[int]

    def fits(self, facts: Facts, stream: int) -> list[Array] | None:
        """The arrays of a call that the launches now serve; None: they do not serve it."""
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
