"""A case of a kernel on a GPU: inputs up, any variant run, outputs checked against the oracle."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.kernels.definition import UNTOUCHED, Arrays, Case, Definition, Expected
from kernelpack.kernels.held import check_expected, check_inputs
from kernelpack.load.library import Launch, Library, Memory, Timer
from kernelpack.spec.expr import evaluate
from kernelpack.spec.launch import Plan, is_absent
from kernelpack.spec.params import Access, Argument
from kernelpack.spec.variant import Variant

GUARD_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """An output beside the oracle's.

    Attributes:
        name: the output.
        ratio: the largest error over its bound; at most 1 is right; infinite for NaN.
        drift: the cosine difference of the whole over its limit; at most 1 is right.
        error: the largest absolute error.
        index: the element of the largest ratio.
        found: its value.
        expected: what the oracle has.
        is_guarded: whether the memory around the output is as it was.

    """

    name: str
    ratio: float
    drift: float
    error: float
    index: tuple[int, ...]
    found: float
    expected: float
    is_guarded: bool

    @property
    def is_right(self) -> bool:
        """Whether every element is within its bound and nothing else was written."""
        return self.ratio <= 1 and self.drift <= 1 and self.is_guarded

    def __str__(self) -> str:
        guards = "" if self.is_guarded else "; memory around it was written"
        return (
            f"{self.name}{list(self.index)} = {self.found:g}, expected {self.expected:g} "
            f"({self.ratio:.3g} of the bound, {self.drift:.3g} of the cosine's){guards}"
        )


class Trial:
    """A case whose inputs lie on a device.

    Args:
        library: the kernels.
        definition: what the kernel means.
        case: the problem.
        device: the device's ordinal.

    Attributes:
        plan: the launch of the latest `run`; None before it.

    """

    def __init__(
        self, library: Library, definition: Definition, case: Case, device: int = 0
    ) -> None:
        self.library, self.definition, self.case, self.device = library, definition, case, device
        self.plan: Plan | None = None
        self.arrays: Arrays = definition.inputs(case)
        self._inputs = {name: self._guarded(array) for name, array in self.arrays.items()}

    @cached_property
    def expected(self) -> dict[str, Expected]:
        """The oracle's outputs."""
        return self.definition.expected(self.case, self.arrays)

    def expects(self, variant: Variant) -> dict[str, Expected]:
        """The expected outputs of a variant.

        Raises:
            OracleError: it is not about the kernel's outputs.

        """
        check_expected(self.definition, self.expected, variant, self._sizes)
        return {name: of.on(variant.arch) for name, of in self.expected.items()}

    def select(self) -> Variant:
        """The variant that the library would take."""
        stem, abis = self.definition.stem, self.definition.abis
        return self.library.select(stem, self._problem, self.device, abis)

    def run(self, variant: Variant, stream: int = 0) -> dict[str, "Guarded"]:
        """Run a variant; returns the outputs when they are there.

        Raises:
            OracleError: the inputs are not those of the kernel.

        """
        check_inputs(self.definition, self.arrays, variant, self._sizes)
        outputs = self._outputs(variant)
        launch = self._pack(variant, outputs)
        self.plan = launch.plan
        self.library.order(stream, 0, self.device)  # 0, on which the memory was filled
        launch(stream)
        for output in outputs.values():
            output.download(self.library, stream)
        return outputs

    def disturbed(self, stream: int = 0) -> list[str]:
        """The inputs that a kernel wrote to, or around; they are put back."""
        found = []
        for name, memory in self._inputs.items():
            memory.download(self.library, stream)
            if not memory.is_guarded or memory.values.tobytes() != self.arrays[name].tobytes():
                self._inputs[name] = self._guarded(self.arrays[name])
                found.append(name)
        return found

    def check(self, variant: Variant, stream: int = 0) -> list[Comparison]:
        """Run a variant and check every output against the oracle."""
        outputs = self.run(variant, stream)
        expected = self.expects(variant)
        return [compare(name, outputs[name], expected[name]) for name in outputs]

    def time(self, variant: Variant, repeats: int = 20, stream: int = 0) -> float:
        """Microseconds of one launch, the median of `repeats`; the caches are warm."""
        launch = self._pack(variant, self._outputs(variant))
        timer, times = Timer(self.library.driver, self.device), []
        launch(stream)
        for _ in range(repeats):
            timer.start(stream)
            launch(stream)
            timer.stop(stream)
            times.append(1000 * timer.milliseconds())
        return median(times)

    def _pack(self, variant: Variant, outputs: Mapping[str, "Guarded"]) -> Launch:
        present = {a.name for a in variant.arguments if not is_absent(a, self._sizes)}
        held = self._inputs.items()
        addresses = {name: memory.address for name, memory in held if name in present}
        addresses |= {name: output.address for name, output in outputs.items()}
        return self.library.pack(variant, self._problem, addresses, self.device)

    @property
    def _problem(self) -> dict[str, float]:
        return self.library.known(self.definition.stem, self.case.sizes)

    @property
    def _sizes(self) -> dict[str, float]:
        return self.library.sizes(self.case.sizes, self.device)

    def _outputs(self, variant: Variant) -> dict[str, "Guarded"]:
        sizes = self._sizes
        written = (a for a in variant.arguments if a.access is not Access.READ)
        return {a.name: self._output(a, sizes) for a in written if not is_absent(a, sizes)}

    def _output(self, argument: Argument, sizes: Mapping[str, float]) -> "Guarded":
        if argument.access is Access.READ_WRITE:
            return self._guarded(self.arrays[argument.name])
        shape = tuple(evaluate(side, sizes) for side in argument.shape)
        return self._unwritten(np.empty(shape, argument.dtype.numpy))

    def _guarded(self, array: NDArray[Any]) -> "Guarded":
        """An array on the device, between two bands."""
        made = self._unwritten(array)
        made.memory.write(array, GUARD_BYTES)
        return made

    def _unwritten(self, values: NDArray[Any]) -> "Guarded":
        """Room for an array, between two bands; all of it UNTOUCHED."""
        memory = self.library.memory(values.nbytes + 2 * GUARD_BYTES, self.device)
        memory.fill(UNTOUCHED)
        return Guarded(memory=memory, values=values)


@dataclass(slots=True, kw_only=True)
class Guarded:
    """An array between two bands of memory that nothing may write."""

    memory: Memory
    values: NDArray[Any]  # set by `download`
    is_guarded: bool = False

    @property
    def address(self) -> int:
        """The device address of the first element."""
        return self.memory.address + GUARD_BYTES

    def download(self, library: Library, stream: int) -> None:
        """Fetch values and guards, once the stream has done its work."""
        raw = np.empty(self.memory.size_bytes, np.uint8)
        library.read(self.memory.address, raw, self.memory.device, stream)
        body = raw[GUARD_BYTES : raw.size - GUARD_BYTES]
        self.values = body.view(self.values.dtype).reshape(self.values.shape)
        bands = (raw[:GUARD_BYTES], raw[raw.size - GUARD_BYTES :])
        self.is_guarded = all(bool((band == UNTOUCHED).all()) for band in bands)


def compare(name: str, output: Guarded, expected: Expected) -> Comparison:
    """The element that is worst against its bound."""
    found = output.values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        error = np.abs(found - expected.value)
    ratio = expected.ratio(output.values)
    worst = np.unravel_index(int(ratio.argmax()), ratio.shape)
    return Comparison(
        name=name,
        ratio=float(ratio[worst]),
        drift=expected.drift(output.values),
        error=float(np.nanmax(error)) if not np.isnan(error).all() else float("nan"),
        index=tuple(int(i) for i in worst),
        found=float(found[worst]),
        expected=float(expected.value[worst]),
        is_guarded=output.is_guarded,
    )
