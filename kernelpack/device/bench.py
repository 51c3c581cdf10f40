"""A kernel's variants timed on a GPU, on one problem: in a graph, on arrays beyond its cache.

Nothing is verified here: `kernelpack verify --on gpu` does that.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kernelpack.device.apart import At, nowhere
from kernelpack.device.child import Connect
from kernelpack.device.machine import driver_words
from kernelpack.device.rotate import Sets
from kernelpack.device.timing import Effort, Start, Time, copy_rate, take_turns
from kernelpack.errors import SelectionError
from kernelpack.kernels.definition import Case, Definition
from kernelpack.kernels.registry import known
from kernelpack.load.library import Device, Library
from kernelpack.load.load import load
from kernelpack.runtime.nvml import Monitor
from kernelpack.spec.filter import filtered
from kernelpack.spec.select import judge
from kernelpack.spec.variant import Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
    """A variant of a bundle; `is_chosen` is whether selection takes it there."""

    bundle: Path
    library: Library
    variant: Variant
    is_chosen: bool

    @property
    def name(self) -> str:
        """A name that no other rival has."""
        return f"{self.bundle}: {self.variant.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A rival and its time."""

    bundle: Path
    variant_id: str
    is_chosen: bool
    time: Time


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The measurement.

    Attributes:
        device: the GPU.
        driver: its driver, for people.
        problem: the case's name.
        bytes: what the arguments of a call hold.
        sets: how many sets of arrays took turns.
        copy_rate: bytes that a device copy moves in a microsecond, read and written counted.
        clocks: what the GPU reported, before and after.
        rows: the rivals, the fastest first.

    """

    device: Device
    driver: str
    problem: str
    bytes: int
    sets: int
    copy_rate: float
    clocks: tuple[Mapping[str, int], Mapping[str, int]]
    rows: tuple[Row, ...]

    @property
    def floor(self) -> float:
        """Microseconds in which a copy would move the arguments' bytes."""
        return self.bytes / self.copy_rate


def rivals_of(
    path: Path, library: Library, definition: Definition, case: Case, device: int
) -> list[Rival]:
    """Every variant of a bundle that serves a problem on a device, the chosen one first.

    Raises:
        SelectionError: none serves.

    """
    chosen = library.select(definition.stem, case.sizes, device, definition.abis)
    serving = serving_of(library, definition, case, device)
    rivals = [
        Rival(bundle=path, library=library, variant=v, is_chosen=v.id == chosen.id) for v in serving
    ]
    return sorted(rivals, key=lambda rival: not rival.is_chosen)


def serving_of(library: Library, definition: Definition, case: Case, device: int) -> list[Variant]:
    """The variants that may serve a problem on a device."""
    sizes, capability = library.sizes(case.sizes, device), library.device(device).capability
    held = [v for v in library.bundle.variants(definition.stem) if v.abi in definition.abis]
    return [v for v in held if judge(v, sizes, capability).cost is not None]


def bench(
    rivals: Sequence[Rival],
    definition: Definition,
    case: Case,
    device: int,
    effort: Effort,
    at: At = nowhere,
) -> Bench:
    """Time rivals on a problem, in turns; they may be of several bundles on one driver.

    `at` gets each turn's name.

    Raises:
        SelectionError: there is none.
        DriverError: a kernel faults, or the driver refuses it.

    """
    if not rivals:
        raise SelectionError("no variant is left to time", where=definition.stem)
    library = rivals[0].library
    monitor = Monitor(library.driver.bus_id(device))
    sets = Sets(library, case, definition.inputs(case), [r.variant for r in rivals], device)
    rate, before = copy_rate(library, device), monitor.numbers()
    starts = {r.name: launches(r.library, r.variant, sets, device) for r in rivals}
    times = take_turns(library, device, starts, effort, at)
    rows = [
        Row(bundle=r.bundle, variant_id=r.variant.id, is_chosen=r.is_chosen, time=times[r.name])
        for r in rivals
    ]
    return Bench(
        device=library.device(device),
        driver=driver_words(library.driver, device),
        problem=case.name,
        bytes=sets.bytes,
        sets=len(sets.addresses),
        copy_rate=rate,
        clocks=(before, monitor.numbers()),
        rows=tuple(sorted(rows, key=lambda row: row.time.median)),
    )


INSTALLED = Path("installed")
"""Stands for the installed bundles, where none is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A bench, as a process of its own is asked for it.

    Attributes:
        bundle: the file; None: what is installed.
        against: another one.
        tuned: times that choose in the first.
        kernel: the stem.
        kernels: folders of kernels of one's own.
        case: the problem.
        keep: an expression over variant ids; empty keeps those that selection takes.
        is_all: whether all that may serve are kept where `keep` is empty.
        device: the GPU's ordinal.
        effort: how much is measured.

    """

    bundle: Path | None
    against: Path | None
    tuned: Path | None
    kernel: str
    kernels: tuple[Path, ...]
    case: Case
    keep: str
    is_all: bool
    device: int
    effort: Effort


def bench_of(asked: Asked, connect: Connect, at: At, without: frozenset[str]) -> Iterator[Bench]:
    """Time what is asked for; errors as of `rivals_of` and `bench`."""
    driver = connect()
    definition, case, device = known(asked.kernels).find(asked.kernel), asked.case, asked.device
    library = load(asked.bundle, driver=driver, tuned=asked.tuned)
    rivals = rivals_of(asked.bundle or INSTALLED, library, definition, case, device)
    if asked.against:
        other = load(asked.against, driver=driver)
        rivals += rivals_of(asked.against, other, definition, case, device)
    left = [rival for rival in _kept(rivals, asked) if rival.name not in without]
    yield bench(left, definition, case, device, asked.effort, at)


def _kept(rivals: list[Rival], asked: Asked) -> list[Rival]:
    """Those that an expression keeps; without one, all or those that selection takes."""
    if not asked.keep:
        return [rival for rival in rivals if asked.is_all or rival.is_chosen]
    ids = {variant.id for variant in filtered([rival.variant for rival in rivals], asked.keep)}
    return [rival for rival in rivals if rival.variant.id in ids]


def launches(library: Library, variant: Variant, sets: Sets, device: int) -> list[Start]:
    """A launch of a variant on each set."""
    pack = partial(library.pack, variant, sets.case.sizes, device=device)
    return [pack(addresses) for addresses in sets.addresses]
