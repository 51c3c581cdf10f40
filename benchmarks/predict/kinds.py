"""Which launches are recorded: our measured times, FlashMLA's, those that others published, ours.

Kinds: `h200` our measured times and FlashMLA's; `tuned` every tenth problem by all its variants on
an H200; `b200` the published times; `ours` our shapes on sm_100a, `choices` some problems by each
variant for sm_100a that may serve them: these two have no times.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from benchmarks.predict import choices, flashmla, measured, published, tuned
from kernelpack.cli.emulate import cache_dir
from kernelpack.emulate import devices, standin
from kernelpack.errors import KernelpackError
from kernelpack.predict.inputs import Prepared
from kernelpack.predict.planned import PlannedLibrary
from kernelpack.predict.programs import show
from kernelpack.predict.sample import Sample, sample
from kernelpack.toolchain.locate import find

OWN = ("rms_norm", "silu_mul_fp8")
"""Kernels of examples/kernels, which have a bundle of their own."""

TENTH = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A launch, or several, to record. `microseconds` is None where nobody measured it."""

    key: str
    microseconds: float | None
    record: Callable[[], list[Sample]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Where bundles and built programs are."""

    bundle: Path
    own: Path
    programs: Path


def everything(kind: str, places: Places) -> Iterator[Wanted]:
    """All points of a kind."""
    yield from KINDS[kind](places)


def _h200(places: Places) -> Iterator[Wanted]:
    for point in measured.points():
        bundle = places.own if point.kernel in OWN else places.bundle
        yield _ours(point, bundle, "sm_90a", point.microseconds)
    for one in flashmla.points(places.programs):
        family = f"flashmla_{Path(one.command[0]).name.rpartition('_')[2]}"
        yield _shown(f"{family}|{one.name}", one, "h100")


def _all_splits() -> Iterator[measured.Point]:
    """Every time of ours; of decode attention those of all numbers of splits."""
    for benchmark in measured.OF:
        if benchmark is not measured.decode:
            yield from benchmark(measured.RESULTS)
    yield from measured.decode(measured.RESULTS, all_splits=True)


def _b200(places: Places) -> Iterator[Wanted]:
    for one in published.points(places.programs):
        yield _shown(one.key, one, "b200")


def _blackwell(places: Places) -> Iterator[Wanted]:
    """Our shapes of docs/performance.md; the kernels for Hopper alone are left out."""
    for point in _all_splits():
        if point.kernel in choices.KERNELS:
            yield _ours(point, places.bundle, "sm_100a", None)


def _choices(places: Places) -> Iterator[Wanted]:
    library = _library(places.bundle, "sm_100a")
    for one in choices.choices(library):
        yield Wanted(
            key=one.key,
            microseconds=None,
            record=partial(_choice, one, library),
        )


def _choice(one: choices.Choice, library: PlannedLibrary) -> list[Sample]:
    return [sample(one.launch(library), find())]


def _tuned(places: Places) -> Iterator[Wanted]:
    for problem in list(tuned.problems())[::TENTH]:
        sizes = ", ".join(f"{n} {v}" for n, v in problem.sizes.items() if n in tuned.TYPED)
        for name, microseconds in problem.microseconds.items():
            yield Wanted(
                key=f"{problem.kernel}|{sizes}|{name}",
                microseconds=microseconds,
                record=partial(_variant, problem, _library(places.bundle, "sm_90a"), name),
            )


def _variant(problem: tuned.Problem, library: PlannedLibrary, name: str) -> list[Sample]:
    return [sample(problem.launch(library, name), find())]


def _ours(point: measured.Point, bundle: Path, arch: str, time: float | None) -> Wanted:
    return Wanted(
        key=f"{point.kernel}|{point.name}",
        microseconds=time,
        record=lambda: [sample(one, find()) for one in point.launches(_library(bundle, arch))],
    )


@cache
def _library(bundle: Path, arch: str) -> PlannedLibrary:
    return PlannedLibrary(bundle, arch=arch)


def _shown(key: str, point: flashmla.Point | published.Point, device: str) -> Wanted:
    def record() -> list[Sample]:
        found: list[Sample] = []
        failed: list[KernelpackError] = []

        def each(launch: Prepared) -> None:
            try:
                found.append(sample(launch, find()))
            except KernelpackError as error:  # to the program it is a launch that failed
                failed.append(error)
                raise

        show(
            point.command,
            standin.build(cache_dir(), find().include_dirs),
            each,
            device=devices.find(device),
            kernels=point.kernels,
            memory_bytes=point.memory_bytes,
        )
        if failed:
            raise failed[0]
        return found

    return Wanted(key=key, microseconds=point.microseconds, record=record)


KINDS = {"h200": _h200, "tuned": _tuned, "b200": _b200, "ours": _blackwell, "choices": _choices}
