"""The common steps of an op: read the arrays, choose the kernel, launch it.

    arrays → views → problem → outputs → variant → Call → launch

An op's own file says what it takes, which rules hold and what it makes. numpy arrays go the same
way to the CPU emulator, whatever GPU is there.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.load.library import Library
from kernelpack.ops.arrays import Array, DeviceArray, Type, host_array, host_view, view
from kernelpack.ops.checks import (
    check_array,
    check_contiguous,
    check_devices,
    check_out,
    check_writable,
    require,
)
from kernelpack.ops.emulated import EmulatedLibrary, emulated, is_for_emulator, loaded
from kernelpack.ops.output import Beside, made_view
from kernelpack.ops.prepared import Call, Prepared, Started, one_or_all
from kernelpack.ops.stream import Stream, stream_handle

Views = Mapping[str, DeviceArray]
"""Arrays as seen, by the manifest's argument names."""

Read = Callable[[str], NDArray[Any]]
"""The values of an input, by its name; on a GPU this waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """An array's form: its dimensions' names, such as `g 3n k`, and the allowed types."""

    dims: str
    dtypes: tuple[DType, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An output as a problem makes it: its sides and its type."""

    shape: tuple[int, ...]
    dtype: DType


class Problem(Protocol):
    """The sizes of a call whose rules hold."""

    @property
    def sizes(self) -> Mapping[str, float]:
        """The names a manifest's expressions use."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is launched."""


P = TypeVar("P", bound=Problem)
S = TypeVar("S")
T = TypeVar("T")

Said = Mapping[str, Any]
"""Sizes that no array says, and numbers, by name: what a request says beside a manifest."""

Traced = Sequence[tuple[tuple[Any, ...], Type]]
"""The shape of each output, whose sides may be symbols, and its element type."""


def as_given(views: Views) -> Views:
    """Every array as it is."""
    return views


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[S, T]):
    """A call of an op, which returns a T: what the caller gave.

    Attributes:
        inputs: by name; None for an optional one that is not there.
        outputs: by name; None for one that the op is to make.
        problem: the sizes, from the views of inputs and of outputs given, after the op's own rules.
        located: arrays as the kernel is to see them, where that is not as they were given: a part
            of an array, or its bytes. Inputs and outputs given are asked for together.
        stream: a handle, or a stream of any framework; None: the legacy default stream.
        library: the kernels to choose from; None: those of the installed bundle.
        debug: whether values that the kernel relies on are read back and checked first.

    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]
    problem: Callable[[Views, Views], S]
    located: Callable[[Views], Views] = as_given
    stream: Stream = None
    library: Library | EmulatedLibrary | None = None
    debug: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Generic[P]):
    """An op's inputs, checks and outputs.

    Attributes:
        kernel: the kernel's stem.
        abis: the kernel-ABI numbers that this version can call.
        inputs: the form of each input, by argument name.
        outputs: the form of each output, by argument name.
        keywords: the caller's word for an output, where it is not the argument's name.
        unread: inputs whose sides alone count; the kernel has no argument for them.
        optional: inputs that may be left out, to the kernel they are empty; outputs that a caller
            need not want.
        made: every output that the problem has, as it makes it.
        traced: the outputs of tensors without values, from the arguments of a call; None where all
            outputs are given.
        check_values: checks what lies in the inputs by what the kernel relies on.
        takes_any_values: whether the kernel relies on nothing there, so that only those who debug
            have it looked at.
        cleared: outputs that are zeros where a problem has some and yet nothing is launched.
        in_place: outputs that are always the caller's own, which a call does not return.

    """

    kernel: str
    abis: range
    inputs: Mapping[str, Form]
    outputs: Mapping[str, Form]
    keywords: Mapping[str, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    made: Callable[[P], Mapping[str, Made]]
    traced: Callable[..., Traced] | None = None
    check_values: Callable[[P, Read], None]
    takes_any_values: bool = False
    cleared: frozenset[str] = frozenset()
    in_place: frozenset[str] = frozenset()

    def run(self, request: Request[P, T]) -> Array:
        """Launch, or compute on the emulator; the output, or the outputs in order."""
        return self.start(request).out

    def start(self, request: Request[P, T]) -> Started:
        """Launch, or compute on the emulator; what was started."""
        inputs = self._inputs(request)
        if is_for_emulator(tuple(inputs.values()), request.library):
            found = self.emulation(request)()
            return Started(outputs=found if isinstance(found, tuple) else (found,))
        handle = stream_handle(request.stream)
        call = self._call(loaded(request.library), request, inputs, handle)
        launch = call.pack(handle)
        if launch is None:
            call.clear(call.views, handle)
            return Started(outputs=call.outputs)
        launch(handle)
        made = tuple(call.made.values())
        return Started(outputs=call.outputs, launches=((call, launch),), made=made)

    def prepare(self, request: Request[P, T]) -> Prepared:
        """Choose, resolve and pack a launch without starting it."""
        handle = stream_handle(request.stream)
        call = self._call(loaded(request.library), request, self._inputs(request), handle)
        return Prepared(call, handle)

    def emulation(self, request: Request[P, T]) -> Callable[[], Array]:
        """Check a call of numpy arrays; what is returned computes it, and gives its outputs."""
        if request.stream is not None:
            raise ProblemError("`stream`: the emulator has none", where=self.kernel)
        return self._emulate(emulated(request.library), request, self._inputs(request))

    def word(self, name: str) -> str:
        """The caller's word for an output."""
        return self.keywords.get(name, name)

    def _inputs(self, request: Request[P, T]) -> dict[str, Array]:
        """The inputs that are there, and those that must be."""
        assert request.inputs.keys() == self.inputs.keys(), "a request names every input"
        given = request.inputs
        return {n: given[n] for n in self.inputs if given[n] is not None or n not in self.optional}

    def _absent(self, present: Collection[str]) -> dict[str, DeviceArray]:
        """Empty arrays that lie nowhere, for inputs left out and outputs that a problem lacks."""
        forms = {**self.inputs, **self.outputs}
        absent = {name: form.dtypes[0] for name, form in forms.items() if name not in present}
        return {n: DeviceArray(pointer=0, shape=(0,), dtype=dtype) for n, dtype in absent.items()}

    def _outputs(self, request: Request[P, T]) -> dict[str, Array]:
        """The outputs that were given."""
        assert request.outputs.keys() == self.outputs.keys(), "a request names every output"
        given = request.outputs
        return {name: given[name] for name in self.outputs if given[name] is not None}

    def _call(
        self, library: Library, request: Request[P, T], inputs: Mapping[str, Array], stream: int
    ) -> Call:
        """See and check the arrays, make the outputs that are missing, and choose the kernel."""
        outs = self._outputs(request)
        given = {name: view(array, name, stream, library) for name, array in inputs.items()}
        given |= {n: view(array, self.word(n), stream, library) for n, array in outs.items()}
        views, seen = _apart(request.located(given), outs)
        problem = self._problem(request, views, seen)
        device = check_devices({**views, **{self.word(n): seen[n] for n in seen}}, self.kernel)
        wanted = self.made(problem)
        place = Beside(library=library, device=device, stream=stream, arrays=inputs.values())
        made = {n: place.new(of.shape, of.dtype) for n, of in wanted.items() if n not in seen}
        outs |= made
        seen |= {n: made_view(array, wanted[n].dtype, device) for n, array in made.items()}
        variant, sizes = None, problem.sizes
        if not problem.is_empty:
            library.check_stream(stream, device)
            sizes = library.known(self.kernel, sizes, self.abis)
            variant = library.select(self.kernel, sizes, device, self.abis)
        call = Call(
            library=library,
            variant=variant,
            sizes=sizes,
            views={**self._absent({*views, *seen}), **views, **seen},
            device=device,
            given={**inputs, **outs},
            written=tuple(wanted),
            cleared=tuple(self.cleared),
            returned=self._returned(wanted),
            seen=given,
            located=request.located,
            made=made,
        )
        if request.debug:
            self.check_values(problem, _reader(call, stream))
        return call

    def _emulate(
        self,
        library: EmulatedLibrary,
        request: Request[P, T],
        inputs: Mapping[str, Array],
    ) -> Callable[[], Array]:
        """See and check numpy arrays; what is returned chooses the kernel and computes."""
        outs = self._outputs(request)
        given = self._on_host(inputs, outs)
        views, seen = _apart(request.located(given), outs)
        inputs = {n: a if views[n] is given[n] else host_array(views[n]) for n, a in inputs.items()}
        outs = {n: a if seen[n] is given[n] else host_array(seen[n]) for n, a in outs.items()}
        problem = self._problem(request, views, seen)
        wanted = self.made(problem)
        for name, made in wanted.items():
            outs.setdefault(name, np.zeros(made.shape, made.dtype.numpy))
        if request.debug or not self.takes_any_values:
            self.check_values(problem, lambda name: np.asarray(inputs[name]))

        def compute() -> Array:
            if not problem.is_empty:
                absent = self._absent({*inputs, *outs}).items()
                empty = {name: np.zeros(array.shape, array.dtype.numpy) for name, array in absent}
                known = {**empty, **inputs, **outs}
                arrays = {name: known[name] for name in known if name not in self.unread}
                sizes = library.known(self.kernel, problem.sizes)
                found = library.run(self.kernel, sizes, arrays, self.abis)
                for name, out in outs.items():
                    # bytes may be called u8 or e4m3, and rows be seen as bytes
                    out[...] = found[name].view(out.dtype).reshape(out.shape)
            for name in self.cleared if problem.is_empty else ():
                outs[name][...] = 0
            return one_or_all([outs[name] for name in self._returned(wanted)])

        return compute

    def located_on_host(self, request: Request[P, T]) -> Views:
        """Numpy arrays as the kernel is to see them."""
        return request.located(self._on_host(self._inputs(request), self._outputs(request)))

    def _on_host(
        self, inputs: Mapping[str, Array], outs: Mapping[str, Array]
    ) -> dict[str, DeviceArray]:
        given = {name: host_view(array, name) for name, array in inputs.items()}
        return given | {name: host_view(array, self.word(name)) for name, array in outs.items()}

    def _returned(self, made: Collection[str]) -> tuple[str, ...]:
        """The outputs that a call returns, of those that its problem has."""
        return tuple(name for name in made if name not in self.in_place)

    def _problem(self, request: Request[P, T], views: Views, outs: Views) -> P:
        """The sizes of a call, after every rule about its arrays holds."""
        for name, array in views.items():
            form = self.inputs[name]
            check_array(array, name, form.dims, form.dtypes, self.kernel)
        for name, array in outs.items():
            form = self.outputs[name]
            check_array(array, self.word(name), form.dims, form.dtypes, self.kernel)
        problem = request.problem(views, outs)
        check_contiguous(views, self.kernel)
        self._check_outs(self.made(problem), views, outs)
        return problem

    def _check_outs(self, made: Mapping[str, Made], views: Views, outs: Views) -> None:
        """Outputs that were given are as the problem makes them, each in memory of its own."""
        seen = {**views, **{self.word(name): out for name, out in outs.items()}}
        for name, out in outs.items():
            word = self.word(name)
            rule = f"`{word}` must be left out: nothing in this call makes it"
            require(name in made, rule, self.kernel)
            check_out(out, word, made[name].shape, made[name].dtype, self.kernel)
            others = {other: array for other, array in seen.items() if other != word}
            check_writable(out, word, others, self.kernel)


def _apart(
    located: Views, outs: Collection[str]
) -> tuple[dict[str, DeviceArray], dict[str, DeviceArray]]:
    """The inputs and the outputs among all views."""
    inputs = {name: array for name, array in located.items() if name not in outs}
    return inputs, {name: located[name] for name in outs}


def _reader(call: Call, stream: int) -> Read:
    def read(name: str) -> NDArray[Any]:
        array = call.views[name]
        values = np.empty(array.shape, array.dtype.numpy)
        if array.size:
            call.library.read(array.pointer, values, call.device, stream)
        return values

    return read
