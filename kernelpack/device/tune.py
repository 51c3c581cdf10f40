"""The story of tuning: problems → the variants that may serve → times → an overlay.

Nothing is measured again that the overlay has, and it is written after each problem, so that a
tuning that was interrupted goes on where it stopped. Inputs are made ahead, in threads: that takes
longer than to measure.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from kernelpack.device.apart import At, nowhere
from kernelpack.device.bench import launches, serving_of
from kernelpack.device.child import Connect
from kernelpack.device.machine import driver_words
from kernelpack.device.rotate import Sets
from kernelpack.device.timing import Effort, take_turns
from kernelpack.errors import BundleError, ProblemError, SelectionError
from kernelpack.files import publish
from kernelpack.kernels.definition import Arrays, Case, Definition
from kernelpack.kernels.registry import known
from kernelpack.load.library import Library
from kernelpack.load.load import load
from kernelpack.load.overlay import check_current, image_of, overlay_text, read_overlay
from kernelpack.spec.select import sizes_of
from kernelpack.spec.tuned import Measured, Overlay, TunedDevice, TunedKernel

AHEAD = 3
"""Problems whose inputs are being made while one is measured."""
EFFORT = Effort(rounds=3, replays=3)
FINALISTS, MORE_ROUNDS = 3, 3
"""How many of the fastest are measured once more, and how much longer."""
FIXED = "choose_for"
"""The size by which a caller asks for a choice that does not depend on the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """A problem, and the times of the variants that may serve it; microseconds by id."""

    case: Case
    usual: str
    times: Mapping[str, float]
    is_new: bool

    @property
    def variant_id(self) -> str:
        """The id of the fastest; the name that a progress shows."""
        return min(self.times, key=lambda one: (self.times[one], one))

    @property
    def gain(self) -> float:
        """How many times as fast the fastest is as what costs choose; 1 where that was lost."""
        best = self.times[self.variant_id]
        return self.times.get(self.usual, best) / best


@dataclass(frozen=True, kw_only=True)
class Tuner:
    """Measures a kernel's problems.

    Attributes:
        library: the bundle, on a driver.
        definition: what the kernel means.
        device: the GPU's ordinal.
        output: the overlay.
        effort: how much is measured.
        at: gets the variant that the GPU runs.
        without: the ids of variants that are left out.

    """

    library: Library
    definition: Definition
    device: int
    output: Path
    effort: Effort = EFFORT
    at: At = nowhere
    without: frozenset[str] = frozenset()

    def tune(self, cases: Sequence[Case]) -> Iterator[Tuned]:
        """Measure problems that are not known yet; write each, then report it.

        Raises:
            ProblemError: a problem asks for a choice that does not depend on it.
            SelectionError: none serves a problem.
            BundleError: the overlay that is there is of another device, driver or machine code.

        """
        for case in cases:
            self._check(case)
        overlay = self.begun()
        for case, arrays in self._with_inputs(cases, overlay):
            times = self._known(overlay, case)
            if arrays is not None:
                times = self._measure(case, arrays)
                overlay = self._added(overlay, case, times)
                publish(self.output, overlay_text(overlay).encode())
            microseconds = {one: time / 1000 for one, time in times.items()}
            usual = self._usual(case)
            yield Tuned(case=case, usual=usual, times=microseconds, is_new=arrays is not None)

    def begun(self) -> Overlay:
        """The overlay that is there, or an empty one.

        Raises:
            BundleError: what is there is no overlay, or is of another device or other machine code.

        """
        device = self.library.device(self.device)
        here = TunedDevice(name=device.name, capability=device.capability, sm_count=device.sm_count)
        empty = Overlay(
            device=here, driver=driver_words(self.library.driver, self.device), kernels=()
        )
        if not self.output.exists():
            return empty
        found = read_overlay(self.output)
        check_current(found, self.library.bundle, self.output)
        if (found.device, found.driver) != (here, empty.driver):
            what = f"was measured on {found.device}, {found.driver}"
            hint = "name another file, or remove it"
            raise BundleError(what, where=str(self.output), hint=hint)
        return found

    def sizes(self, case: Case) -> dict[str, int]:
        """The sizes of a problem, without numbers, which choose nothing."""
        return sizes_of(case.sizes, self.library.bundle.variants(self.definition.stem)[0])

    def _check(self, case: Case) -> None:
        if case.sizes.get(FIXED, 0):
            raise ProblemError(
                f"`{FIXED}` asks for one choice whatever the problem is, which is the manifest's",
                where=case.name,
                hint=f"tune problems of `{FIXED}=0`",
            )
        self._usual(case)

    def _usual(self, case: Case) -> str:
        """The choice of the manifest's costs."""
        stem, abis = self.definition.stem, self.definition.abis
        return self.library.select(stem, case.sizes, self.device, abis).id

    def _with_inputs(
        self, cases: Iterable[Case], overlay: Overlay
    ) -> Iterator[tuple[Case, Arrays | None]]:
        """Problems with their inputs, some made ahead; None in place of those of known ones."""
        waiting: deque[tuple[Case, Future[Arrays] | None]] = deque()
        with ThreadPoolExecutor(AHEAD) as pool:
            for case in cases:
                is_known = bool(self._known(overlay, case))
                made = None if is_known else pool.submit(self.definition.inputs, case)
                waiting.append((case, made))
                if len(waiting) > AHEAD:
                    yield _ready(*waiting.popleft())
            while waiting:
                yield _ready(*waiting.popleft())

    def _known(self, overlay: Overlay, case: Case) -> Mapping[str, int]:
        """Times that an overlay has of exactly these sizes."""
        sizes = self.sizes(case)
        found = (m for m in overlay.problems(self.definition.stem) if m.sizes == sizes)
        return next((measured.nanoseconds for measured in found), {})

    def _measure(self, case: Case, arrays: Arrays) -> Mapping[str, int]:
        """Nanoseconds of every variant that may serve.

        The fastest of many is also the luckiest. So the few fastest, and the one that costs would
        choose, are measured once more, and longer.
        """
        serving = serving_of(self.library, self.definition, case, self.device)
        variants = [variant for variant in serving if variant.id not in self.without]
        if not variants:
            raise SelectionError("no variant is left to time", where=case.name)
        sets = Sets(self.library, case, arrays, variants, self.device)
        starts = {v.id: launches(self.library, v, sets, self.device) for v in variants}
        times = take_turns(self.library, self.device, starts, self.effort, self.at)
        fastest = sorted(times, key=lambda one: (times[one].median, one))[:FINALISTS]
        wanted = {self._usual(case), *fastest} & starts.keys()
        finalists = {one: starts[one] for one in sorted(wanted)}
        longer = replace(self.effort, rounds=MORE_ROUNDS * self.effort.rounds)
        times |= take_turns(self.library, self.device, finalists, longer, self.at)
        return {one: max(1, round(1000 * time.median)) for one, time in times.items()}

    def _added(self, overlay: Overlay, case: Case, times: Mapping[str, int]) -> Overlay:
        """An overlay with one more problem of this kernel."""
        stem, capability = self.definition.stem, overlay.device.capability
        able = [v for v in self.library.bundle.variants(stem) if v.arch.runs_on(capability)]
        problems = (
            *overlay.problems(stem),
            Measured(sizes=self.sizes(case), nanoseconds=times),
        )
        tuned = TunedKernel(
            kernel=stem,
            images={v.id: image_of(v, self.library.bundle) for v in able},
            problems=problems,
        )
        others = (kernel for kernel in overlay.kernels if kernel.kernel != stem)
        kernels = sorted((*others, tuned), key=lambda kernel: kernel.kernel)
        return replace(overlay, kernels=tuple(kernels))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A tuning, as a process of its own is asked for it; words as of `Tuner`.

    Attributes:
        bundle: the file.
        kernel: the stem.
        kernels: folders of kernels of one's own.
        cases: the problems.

    """

    bundle: Path
    kernel: str
    kernels: tuple[Path, ...]
    cases: tuple[Case, ...]
    device: int
    output: Path


def tune(asked: Asked, connect: Connect, at: At, without: frozenset[str]) -> Iterator[Tuned]:
    """Measure what is asked for; errors as of `Tuner.tune`."""
    library = load(asked.bundle, driver=connect())
    tuner = Tuner(
        library=library,
        definition=known(asked.kernels).find(asked.kernel),
        device=asked.device,
        output=asked.output,
        at=at,
        without=without,
    )
    return tuner.tune(asked.cases)


def _ready(case: Case, made: Future[Arrays] | None) -> tuple[Case, Arrays | None]:
    return case, None if made is None else made.result()
