"""Several ops as one: each a step, with arrays between them; launched one after another.

    mla_decode_fp8 = absorb → attention → combine → project

A chain's function says which steps a call is. All of them are checked before the first is launched,
so that a call that is refused has written nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, update_wrapper
from itertools import product
from typing import Any, Generic, ParamSpec, TypeVar

from kernelpack.errors import ProblemError
from kernelpack.ops.arrays import Array
from kernelpack.ops.checks import overlap
from kernelpack.ops.emulated import is_for_emulator
from kernelpack.ops.op import Op
from kernelpack.ops.operation import Request, Traced, Views
from kernelpack.ops.prepared import Prepared, Started, one_or_all
from kernelpack.ops.repeat import repeated
from kernelpack.ops.stream import stream_handle

A = ParamSpec("A")
T = TypeVar("T")
D = TypeVar("D", bound=Callable[..., "Steps[Any]"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One op of a call.

    Attributes:
        op: which.
        request: its part of the call.
        words: the caller's word → the step's, of each argument that is the caller's.

    """

    op: Op[..., Any]
    request: Request[Any, Any]
    words: Mapping[str, str]

    @property
    def own(self) -> dict[str, str]:
        """The caller's word → the step's, of those that the call has."""
        given = {**self.request.inputs, **self.request.outputs}
        return {word: name for word, name in self.words.items() if given.get(name) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Generic[T]):
    """A call of a chain, which returns a T.

    Attributes:
        steps: in order.
        outputs: what the call returns, by the caller's word.
        kept: what else must live as long as launches do: the memory between steps.
        made: the arrays of the call that are new.

    """

    steps: tuple[Step, ...]
    outputs: Mapping[str, Array]
    kept: tuple[Array, ...] = ()
    made: Sequence[Array] = ()


class PreparedChain:
    """A call's launches, to be started many times: `prepared(stream)`.

    Attributes:
        out: the output array, or the outputs in order.
        launches: each step's own.

    """

    def __init__(self, call: Steps[Any], of: "Chain") -> None:
        self.launches: tuple[Prepared, ...] = tuple(
            step.op.operation.prepare(step.request) for step in call.steps
        )
        self._call, self._outputs, self._of = call, dict(call.outputs), of
        check_apart(call, [launch.views for launch in self.launches], of)

    @property
    def out(self) -> Array:
        """A call's results."""
        return one_or_all(list(self._outputs.values()))

    def __call__(self, stream: int = 0) -> None:
        """Start the kernels on a stream, given by its handle; does not wait for them."""
        for launch in self.launches:
            launch(stream)

    def rebind(self, **arrays: Array) -> None:
        """Replace the named arrays by others of the same shape and type.

        Args:
            arrays: by the words of the call; of a cache `kv` and `kv_scales`.

        Raises:
            ProblemError: an unknown name, an array of another shape, type or device, or one that
                overlaps another; nothing is put anywhere then, in any step.

        """
        known = {word for step in self._call.steps for word in step.own}
        for word in arrays:
            if word not in known:
                raise ProblemError(f"no argument `{word}`", hint=f"arguments: {', '.join(known)}")
        fresh = []
        for step, launch in zip(self._call.steps, self.launches, strict=True):
            own = {name: arrays[word] for word, name in step.own.items() if word in arrays}
            fresh.append(launch.rebinding(**own))
        check_apart(self._call, [each.views for each in fresh], self._of)
        for each in fresh:
            each.put()
        self._outputs |= {word: arrays[word] for word in self._outputs if word in arrays}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A chain's inputs and outputs, as frameworks see them.

    Attributes:
        kernel: the chain's stem.
        inputs: the names of its inputs.
        outputs: the names of its outputs.
        optional: inputs that may be left out, and outputs that a caller need not want.
        shared: inputs that may lie in what a step before writes, as a second source may in a cache.
        traced: the outputs of tensors without values; None where all outputs are given.
        workspace_bytes: bytes that a call needs between its launches.

    """

    kernel: str
    inputs: frozenset[str]
    outputs: tuple[str, ...]
    workspace_bytes: Callable[..., int]
    optional: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    traced: Callable[..., Traced] | None = None

    def word(self, name: str) -> str:
        """The caller's word for an output."""
        return name

    def start(self, call: Steps[Any]) -> Started:
        """Launch, or compute on the emulator; what was started."""
        first = call.steps[0].request
        given = tuple(array for array in first.inputs.values() if array is not None)
        if is_for_emulator(given, first.library):
            computes = [step.op.operation.emulation(step.request) for step in call.steps]
            views = [step.op.operation.located_on_host(step.request) for step in call.steps]
            check_apart(call, views, self)
            for compute in computes:
                compute()
            return Started(outputs=list(call.outputs.values()))
        prepared = self.prepare(call)
        prepared(stream_handle(first.stream))
        return Started(
            outputs=list(call.outputs.values()),
            launches=tuple(launch for step in prepared.launches for launch in step.launches),
            made=call.made,
        )

    def prepare(self, call: Steps[Any]) -> PreparedChain:
        """Choose, resolve and pack the launches without starting them."""
        return PreparedChain(call, self)


WORKSPACE = "workspace"
"""The word for arrays that no caller named: what lies between the steps."""


def check_apart(call: Steps[Any], views: Sequence[Views], of: Chain) -> None:
    """Refuse memory that one step writes and another knows by another word.

    Of the arrays of one step its op has asked already.

    Raises:
        ProblemError: names the two.

    """
    known: dict[str, range] = {}
    written: set[str] = set()
    for step, seen in zip(call.steps, views, strict=True):
        words = {name: word for word, name in step.own.items()}
        for name, array in seen.items():
            if array.size:
                word = words.get(name, WORKSPACE)
                known[word] = _both(known.get(word), array.bytes)
                written |= {word} if name in step.op.operation.outputs else set()
    for word, other in product(sorted(written), known):
        if word != other and other not in of.shared and overlap(known[word], known[other]):
            what = f"`{word}` overlaps `{other}`"
            raise ProblemError(what, where=of.kernel, hint="give it memory of its own")


def _both(known: range | None, more: range) -> range:
    """Addresses from the first of both to the last."""
    if known is None:
        return more
    return range(min(known.start, more.start), max(known.stop, more.stop))


class ChainOp(Generic[A, T]):
    """A chain as a caller has it: call it, or `prepare` it once and launch it many times.

    Attributes:
        operation: what it takes and makes.
        request: from the arguments of a call to its steps.
        tensors: the same from what a framework has.
        workspace_bytes: bytes that a call needs between its launches.

    """

    def __init__(self, operation: Chain, request: Callable[A, Steps[T]]) -> None:
        update_wrapper(self, request)
        self.operation, self.request = operation, request
        self.tensors: Callable[..., Steps[T]] = request
        self.workspace_bytes = operation.workspace_bytes

    def __call__(self, *args: A.args, **given: A.kwargs) -> T:
        """Launch, or compute on the emulator; see the chain's own description."""

        def whole() -> Started:
            return self.operation.start(self.request(*args, **given))

        out: T = repeated(self.request, whole, args, given)
        return out

    def prepare(self, *args: A.args, **given: A.kwargs) -> PreparedChain:
        """Choose, resolve and pack the launches without starting them; arguments as of a call."""
        return self.operation.prepare(self.request(*args, **given))

    def fill(self, *args: Array, **given: Array) -> T:
        """Launch, or compute on the emulator, with what a framework has."""
        out: T = repeated(self.tensors, partial(self.start, *args, **given), args, given)
        return out

    def start(self, *args: Array, **given: Array) -> Started:
        """`fill`, the whole way, whatever calls there were before."""
        return self.operation.start(self.tensors(*args, **given))

    def of_tensors(self, request: D) -> D:
        """Take this function for what frameworks call: all but numbers are tensors there."""
        self.tensors = request
        return request


def chain(operation: Chain) -> Callable[[Callable[A, Steps[T]]], ChainOp[A, T]]:
    """Make an op of the function that says which steps a call is."""

    def make(request: Callable[A, Steps[T]]) -> ChainOp[A, T]:
        return ChainOp(operation, request)

    return make
