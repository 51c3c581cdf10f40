"""A prepared launch: chosen, resolved and packed once; then one driver call a launch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from kernelpack.errors import ProblemError
from kernelpack.load.library import Launch, Library
from kernelpack.ops.arrays import Array, DeviceArray, check_numbers, view
from kernelpack.ops.checks import check_contiguous, check_writable
from kernelpack.ops.stream import stream_handle
from kernelpack.spec.launch import PlanArgument, Pointer, Scalar
from kernelpack.spec.number import number, rounded
from kernelpack.spec.params import MapParam, NumberParam, PointerParam
from kernelpack.spec.tensormap import TensorMap, check, resolve
from kernelpack.spec.variant import Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """Everything a launch is made from.

    Attributes:
        library: whose kernel runs.
        variant: the kernel chosen; None where there is nothing to compute.
        sizes: the problem, name → integer.
        views: the arrays by the manifest's argument names.
        device: the device they lie on.
        given: the caller's own objects, kept alive for as long as the launch is.
        written: the arguments that the kernel writes.
        cleared: those of `written` that are zeros where there is nothing to compute.
        returned: those of `written` that the caller gets.
        seen: the arrays as they were given.
        located: from those to `views`.
        made: the outputs that the op made, by argument name.

    """

    library: Library
    variant: Variant | None
    sizes: Mapping[str, float]
    views: Mapping[str, DeviceArray]
    device: int
    given: Mapping[str, Array]
    written: tuple[str, ...]
    cleared: tuple[str, ...]
    returned: tuple[str, ...]
    seen: Mapping[str, DeviceArray]
    located: Callable[[Mapping[str, DeviceArray]], Mapping[str, DeviceArray]]
    made: Mapping[str, Array] = field(default_factory=dict)

    @property
    def outputs(self) -> list[Array]:
        """The outputs that the caller gets, in order."""
        return [self.given[name] for name in self.returned]

    @property
    def out(self) -> Array:
        """The output as the caller gets it; of several, all of them in order."""
        return one_or_all(self.outputs)

    def pack(self, stream: int) -> Launch | None:
        """The packed launch; None where there is nothing to compute."""
        if self.variant is None:
            return None
        taken = {argument.name for argument in self.variant.arguments}
        addresses = {name: a.pointer for name, a in self.views.items() if name in taken}
        return self.library.pack(self.variant, self.sizes, addresses, self.device, stream=stream)

    def clear(self, views: Mapping[str, DeviceArray], stream: int) -> None:
        """Let a stream write zeros where there is nothing to compute, and yet an output."""
        for name in self.cleared:
            if views[name].size:
                self.library.clear(views[name].bytes, self.device, stream)


def one_or_all(arrays: Sequence[Array]) -> Array:
    """An op's result: its output, or its outputs in order; None where it has none."""
    return arrays[0] if len(arrays) == 1 else tuple(arrays) or None


def _more_facts(located: DeviceArray) -> list[str]:
    """A launch's facts of an array besides its numbers, such as where its rows lie."""
    plain = {fact.name for fact in fields(DeviceArray)}
    return [fact.name for fact in fields(located) if fact.name not in plain]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebinding:
    """Arrays that may replace others.

    Attributes:
        views: all arrays of the launch as they will be.
        put: puts them there.

    """

    views: Mapping[str, DeviceArray]
    put: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """The work that a call gave to a stream.

    Attributes:
        outputs: what the caller gets, in order.
        launches: each with what it was made from, in order; none on the emulator, or where there
            is nothing to compute.
        made: the arrays that the call made.
        instead: the caller's array, by the identity of one that stood for it.

    """

    outputs: Sequence[Array]
    launches: tuple[tuple[Call, Launch], ...] = ()
    made: Sequence[Array] = ()
    instead: Mapping[int, Array] = field(default_factory=dict)

    @property
    def out(self) -> Array:
        """The output; of several, all of them."""
        return one_or_all(self.outputs)


class Prepared:
    """A launch of one problem, to be started many times: `prepared(stream)`.

    One thread at a time may use it. It keeps its arrays alive. Unlike the op it does not ask the
    framework to order streams: the caller sees to it that the data is there.

    Attributes:
        out: the output array.
        variant: the kernel chosen; None where there is nothing to compute.

    """

    def __init__(self, call: Call, stream: int) -> None:
        self.out, self.variant = call.out, call.variant
        self._call, self._views, self._given = call, dict(call.views), dict(call.given)
        self._seen = dict(call.seen)
        self._kernel = call.variant.kernel if call.variant else ""
        self._launch = call.pack(stream)
        self._maps = self._resolved_maps()

    @property
    def launches(self) -> tuple[tuple[Call, Launch], ...]:
        """The launch with what it was made from; none where there is nothing to compute."""
        return () if self._launch is None else ((self._call, self._launch),)

    def __call__(self, stream: int = 0) -> None:
        """Start the kernel on a stream, given by its handle; does not wait for it."""
        if self._launch is not None:
            self._launch.__call__(stream)  # named, a call costs 0.1 us less than `launch(stream)`
        else:
            self._call.clear(self._views, stream)

    def rebind(self, **arrays: Array) -> None:
        """Replace named arrays by others of the same shape and type, and named numbers.

        Args:
            arrays: by argument name: an array, or just the device address of its first element;
                by the name of a number: its value.

        Raises:
            ProblemError: an unknown name, or an array of another shape, type or device, or an
                output that overlaps an input, or no number; nothing is put anywhere then.

        """
        self.rebinding(**arrays).put()

    def rebinding(self, **given: Array) -> "Rebinding":
        """The same in two parts: what is refused is refused here, before anything is put."""
        numbers = {n.name for n in self.variant.numbers} if self.variant else set[str]()
        arrays = {name: array for name, array in given.items() if name not in numbers}
        seen = {name: self._view(name, a) for name, a in arrays.items() if not isinstance(a, int)}
        located = self._call.located({**self._seen, **seen})
        fresh = {name: self._same_as(name, array, located) for name, array in arrays.items()}
        views = {**self._views, **fresh}
        self._check_written(views)
        patches: dict[int, PlanArgument] = {}
        for name in given.keys() & numbers:
            patches |= self._of_number(name, given[name])
        for name, array in fresh.items():
            patches |= self._patches(name, array.pointer)

        def put() -> None:
            self._patch(patches)
            self._views, self._given, self._seen = views, self._given | arrays, self._seen | seen
            self.out = one_or_all([self._given[name] for name in self._call.returned])

        return Rebinding(views=views, put=put)

    @property
    def views(self) -> Mapping[str, DeviceArray]:
        """The arrays by the manifest's argument names."""
        return self._views

    def _check_written(self, views: Mapping[str, DeviceArray]) -> None:
        for name in self._call.written:
            others = {other: array for other, array in views.items() if other != name}
            check_writable(views[name], name, others, self._kernel)

    def _view(self, name: str, array: Array) -> DeviceArray:
        """A view of what replaces an argument's array."""
        self._known(name)
        return view(array, name, stream_handle(None), self._call.library)

    def _known(self, name: str) -> DeviceArray:
        """The array that an argument was prepared with."""
        if name not in self._views:
            hint = f"arguments: {', '.join(self._views)}"
            raise ProblemError(f"no argument `{name}`", hint=hint)
        return self._views[name]

    def _same_as(self, name: str, array: Array, located: Mapping[str, DeviceArray]) -> DeviceArray:
        """The replacement of the argument's array, with its shape, type and device."""
        known = self._known(name)
        if isinstance(array, int):
            return check_numbers(replace(known, pointer=array), name)
        fresh = located[name]
        if not fresh.size:  # it may lie nowhere
            fresh = replace(fresh, device=known.device)
        for what in ("shape", "dtype", "device", *_more_facts(known)):
            before, now = getattr(known, what), getattr(fresh, what)
            if before != now:
                raise ProblemError(
                    f"`{name}` was prepared with {what} {before}, not {now}",
                    hint="prepare another launch for another problem",
                )
        check_contiguous({name: fresh}, self._kernel)
        return fresh

    def _of_number(self, name: str, value: object) -> dict[int, PlanArgument]:
        """Every parameter that takes a number."""
        assert self.variant is not None, "numbers are a variant's"
        found = number(value, name)
        return {
            index: Scalar(param.dtype, rounded(found, param.dtype, param.name))
            for index, param in enumerate(self.variant.params)
            if isinstance(param, NumberParam) and param.number == name
        }

    def _patches(self, name: str, pointer: int) -> dict[int, Pointer | TensorMap]:
        """Every parameter made from one argument's address, where that is another one."""
        moved = pointer - self._views[name].pointer
        if self._launch is None or self.variant is None or not moved:
            return {}
        argument = next((a for a in self.variant.arguments if a.name == name), None)
        if argument is None:  # the op alone looks at it
            return {}
        if pointer % argument.align_bytes:
            rule = f"must be aligned to {argument.align_bytes} bytes, not {pointer:#x}"
            raise ProblemError(rule, where=f"`{name}`")
        patches: dict[int, Pointer | TensorMap] = {}
        for index, param in enumerate(self.variant.params):
            if isinstance(param, PointerParam) and param.argument == name:
                patches[index] = Pointer(pointer)
            elif isinstance(param, MapParam) and param.map.argument == name:
                known = self._maps[index]
                patches[index] = fresh = replace(known, address=known.address + moved)
                check(fresh)
        return patches

    def _patch(self, patches: Mapping[int, PlanArgument]) -> None:
        for index, value in patches.items():
            assert self._launch is not None, "there are no patches of nothing"
            if isinstance(value, TensorMap):
                self._maps[index] = value
            self._launch.patch(index, value)

    def _resolved_maps(self) -> dict[int, TensorMap]:
        call, variant = self._call, self.variant
        if variant is None:
            return {}
        sizes = call.library.sizes(call.sizes, call.device)
        return {
            index: resolve(param.map, sizes, call.views[param.map.argument].pointer)
            for index, param in enumerate(variant.params)
            if isinstance(param, MapParam)
        }
