"""Which runs prove a set of variants: the default in minutes, the full one before a release.

A variant runs on a case in one of two ways. *Selected*: selection takes this variant for it, so
that the whole road is proven, from the problem to the launch. *Forced*: another variant would be
taken; the kernel's body is proven wherever it serves, whatever is chosen.

In the default plan a variant runs its first telling cases, the smallest case that selects it, and
its share of runs that on each target together meet every pair of: an axis of the variants, a kind
of case, a format of arrays, who is held back or how, and the size of the device. So every kind of
case meets every format, and every format every interleaving. Interleavings are shared out among
the kinds of a group, as `heads_5` and `heads_64`, in which warps wait for each other in the same
way: all together meet each of them. One kind of case in one format meets few.

Targets have equal plans where they have equal variants, so that a run of the same PTX on two of
them is one run (`verify.key`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain, cycle, product
from math import prod

from kernelpack.emulator.faults import Level
from kernelpack.emulator.schedule import schedules
from kernelpack.errors import SelectionError
from kernelpack.kernels.definition import Case, Definition
from kernelpack.spec.expr import evaluate
from kernelpack.spec.launch import cluster_of
from kernelpack.spec.select import judge, select
from kernelpack.spec.variant import Variant
from kernelpack.verify.job import Job
from kernelpack.verify.pairwise import Factors, cover

FEW = 4
"""Multiprocessors of a small device: its blocks do several tiles, one after another."""
TELLING = 3
"""Cases that every variant runs in the default plan: the first of the telling ones it serves."""
IN_TURN = ("lazy", "eager", "fair")
"""Schedules of cases too large for all of them, in a full run."""
MORE_SEEDS = (1, 2)
"""Seeds of the lazy schedule in a full run, beside the one asked for."""
SMALL_CLUSTER = 4
"""Up to so many CTAs a full run holds each one back; of more, the first two and the last."""
MOST_ELEMENTS = 1 << 26
"""Of all arguments of a case in a full run: an emulator takes days for larger ones."""
PLANS = ("none", "part", "default", "full")
"""How far the runs of a variant go, the least first; a schedule that is asked for makes a part."""
DRAWS = 5
"""Devices and interleavings drawn for a variant and a case, from which pairs are covered."""
APART = (frozenset({"case", "schedule"}), frozenset({"case", "group"}))
"""Factors that need not meet: schedules meet groups of cases."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The options of a verification.

    Attributes:
        full: every small case under every schedule, and large ones; takes hours.
        schedule: this interleaving alone, on the telling cases; the plan's own where empty.
        seed: of what interleavings leave open.
        level: findings above it are not asked for.

    """

    full: bool = False
    schedule: str = ""
    seed: int = 0
    level: Level = Level.WARN

    @property
    def plan(self) -> str:
        """Which of `PLANS` it is."""
        if self.schedule:
            return "part"
        return "full" if self.full else "default"


@dataclass(frozen=True, kw_only=True)
class Planner:
    """The runs of one kernel.

    Attributes:
        definition: what the kernel means.
        variants: those selection may take: all of the bundle.
        scope: what is asked.

    """

    definition: Definition
    variants: Sequence[Variant]
    scope: Scope

    def jobs(self, wanted: Callable[[str], bool]) -> tuple[Job, ...]:
        """Every run of the variants wanted, each once, a variant's together.

        They are those that the plan of all variants has for them: pairs are shared out among all of
        a target, and a variant looked at alone has no more of them to meet.
        """
        verified = [v for v in self.variants if wanted(v.id)]
        each = self._full if self.scope.full else self._telling
        found = [job for variant in verified for job in each(variant)]
        if self.scope.plan == "default":
            asked = (of for of in self._by_target if any(wanted(v.id) for v in of))
            drawn = chain.from_iterable(map(self._shared, asked))
            found += [job for job in drawn if wanted(job.variant_id)]
        order = {variant.id: i for i, variant in enumerate(verified)}
        return tuple(sorted(dict.fromkeys(found), key=lambda job: order[job.variant_id]))

    def selected(self, variant: Variant) -> tuple[tuple[Case, int], ...]:
        """The cases, each with a device's size, for which selection takes this variant."""
        taken, name = self._selection.items(), variant.id
        return tuple((c, sm) for (arch, c, sm), chosen in taken if chosen == name)

    def _telling(self, variant: Variant) -> list[Job]:
        """Its telling cases, on small and large devices in turn, and one that selects it."""
        name = variant.id
        if name not in self._telling_jobs:
            self._telling_jobs[name] = list(self._draw_telling(variant))
        return self._telling_jobs[name]

    def _draw_telling(self, variant: Variant) -> Iterator[Job]:
        schedule = self.scope.schedule or "lazy"
        served = self._served(variant, self._told)
        for index, case in enumerate(served[:TELLING]):
            sm = variant.arch.multiprocessors if index % 2 else FEW
            yield self._job(variant, case, sm, schedule)
        selecting = self._emulated(self.selected(variant))
        if selecting:
            case, sm = min(selecting, key=lambda pair: weight(variant, *pair))
            yield self._job(variant, case, sm, schedule)

    def _emulated(self, pairs: Sequence[tuple[Case, int]]) -> list[tuple[Case, int]]:
        """Those of some cases that an emulator may run: large ones of one's own are a GPU's."""
        small = set(self._small)
        return [pair for pair in pairs if pair[0] in small or not self.definition.origin]

    @property
    def _by_target(self) -> list[list[Variant]]:
        """The variants of each target."""
        targets = dict.fromkeys(v.arch for v in self.variants)
        return [[v for v in self.variants if v.arch == target] for target in targets]

    def _shared(self, variants: Sequence[Variant]) -> Iterator[Job]:
        """The runs that cover what the telling ones of a target's variants do not."""
        told = [job for variant in variants for job in self._telling(variant)]
        drawn, seed = list(self._draws(variants)), self.scope.seed
        return cover(drawn, self._factors(), seed, done=told, apart=APART)

    def _draws(self, variants: Sequence[Variant]) -> Iterator[Job]:
        """A few devices and interleavings of every variant on every small case.

        Variants and cases of one kind take turns, so that together they draw all of them.
        """
        for number, runs in enumerate(self._by_kind(variants).values()):
            for at, (variant, case) in enumerate(runs):
                possible = list(_settings(variant, case))
                count = max(DRAWS, -(-len(possible) // len(runs)))
                first = (number + at) * count
                for turn in range(min(count, len(possible))):
                    sm, name = possible[(first + turn) % len(possible)]
                    yield self._job(variant, case, sm, name)

    def _by_kind(self, variants: Sequence[Variant]) -> dict[str, list[tuple[Variant, Case]]]:
        """The small cases of each kind, with each variant that serves them."""
        found: dict[str, list[tuple[Variant, Case]]] = {}
        for variant in variants:
            for case in self._served(variant, self._small):
                found.setdefault(self.definition.kind(case), []).append((variant, case))
        return found

    def _factors(self) -> Callable[[Job], Factors]:
        """The values that must meet in pairs."""
        axes = {v.id: dict(v.axes) for v in self.variants}

        def factors(job: Job) -> Factors:
            kind = self.definition.kind(job.case)
            return {
                **axes[job.variant_id],
                "case": kind,
                "group": self.definition.group(kind),
                "format": job.case.name.removesuffix(kind),
                "device": job.sm_count == FEW,
                "schedule": role(job.schedule),
            }

        return factors

    def _full(self, variant: Variant) -> Iterator[Job]:
        """Every small case under every schedule; every other that selects it under one, in turn.

        Schedules that hold a warp back are most of all, so devices take turns to run them.
        """
        small = self._served(variant, self._small)
        for turn, (case, sm) in enumerate(product(small, (variant.arch.multiprocessors, FEW))):
            for number, (name, seed) in enumerate(self._interleavings(variant, case, sm)):
                if not is_held(name) or (turn + turn // 2 + number) % 2 == 0:
                    yield self._job(variant, case, sm, name, seed)
        selecting = self._emulated(self.selected(variant))
        others = [pair for pair in selecting if pair[0] not in set(small)]
        possible = (pair for pair in others if weight(variant, *pair) <= MOST_ELEMENTS)
        for (case, sm), schedule in zip(possible, cycle(IN_TURN)):
            yield self._job(variant, case, sm, self.scope.schedule or schedule)

    def _interleavings(self, variant: Variant, case: Case, sm: int) -> Iterator[tuple[str, int]]:
        seed = self.scope.seed
        if self.scope.schedule:
            yield self.scope.schedule, seed
            return
        cluster, warps = shape(variant, case, sm)
        ends = (0, 1, cluster - 1)
        for schedule in schedules(cluster, warps):
            if cluster <= SMALL_CLUSTER or schedule.held is None or schedule.held[0] in ends:
                yield schedule.name, seed
        yield from (("lazy", seed + more) for more in MORE_SEEDS)

    def _job(
        self, variant: Variant, case: Case, sm: int, schedule: str, seed: int | None = None
    ) -> Job:
        name = variant.id
        return Job(
            variant_id=name,
            kernel=variant.kernel,
            case=case,
            sm_count=sm,
            schedule=schedule,
            seed=self.scope.seed if seed is None else seed,
            level=self.scope.level,
            selected=self._selection.get((variant.arch.name, case, sm)) == name,
        )

    def _served(self, variant: Variant, cases: Sequence[Case]) -> list[Case]:
        return [case for case in cases if serves(variant, case, FEW)]

    @cached_property
    def _telling_jobs(self) -> dict[str, list[Job]]:
        """By the name of a variant, as they are asked for."""
        return {}

    @cached_property
    def _small(self) -> tuple[Case, ...]:
        return tuple(self.definition.small())

    @cached_property
    def _told(self) -> tuple[Case, ...]:
        return tuple(self.definition.telling())

    @cached_property
    def _selection(self) -> dict[tuple[str, Case, int], str]:
        """Which variant selection takes, by target, case and device; small cases first."""
        small = set(self._small)
        cases = [*self._small, *(case for case in self.definition.cases() if case not in small)]
        chosen: dict[object, list[tuple[Case, int, int]]] = {}
        found: dict[tuple[str, Case, int], str] = {}
        for built in self._by_target:
            arch = built[0].arch
            key = arch.multiprocessors, tuple((v.axes, v.guards, v.cost) for v in built)
            if key not in chosen:
                chosen[key] = list(_choices(built, cases))
            names = [variant.id for variant in built]
            found |= {(arch.name, case, sm): names[at] for case, sm, at in chosen[key]}
        return found


def sizes_of(case: Case, sm_count: int) -> dict[str, float]:
    """The problem and the device, as the manifest names them."""
    return {**_sizes(case), "sm_count": sm_count}  # type: ignore[arg-type]


@lru_cache(maxsize=4096)
def _sizes(case: Case) -> Mapping[str, float]:
    """The sizes of a case, which each variant is asked about."""
    return case.sizes


def serves(variant: Variant, case: Case, sm_count: int) -> bool:
    """Whether every guard of the variant holds."""
    capability = variant.arch.capabilities[0]
    return judge(variant, sizes_of(case, sm_count), capability).cost is not None


def weight(variant: Variant, case: Case, sm_count: int) -> int:
    """Elements of all arguments: about how long a run takes."""
    sizes = sizes_of(case, sm_count)
    return sum(prod(evaluate(side, sizes) for side in a.shape) for a in variant.arguments)


def shape(variant: Variant, case: Case, sm_count: int) -> tuple[int, int]:
    """CTAs of a cluster and warps of a CTA."""
    block, cluster = cluster_of(variant, sizes_of(case, sm_count))
    return cluster.count, -(-block.count // 32)


def _settings(variant: Variant, case: Case) -> Iterator[tuple[int, str]]:
    """Every device with every schedule of the launch on it."""
    for sm in (variant.arch.multiprocessors, FEW):
        yield from ((sm, name) for name in _schedules(*shape(variant, case, sm)))


@cache
def _schedules(cluster: int, warps: int) -> tuple[str, ...]:
    return tuple(schedule.name for schedule in schedules(cluster, warps))


def _choices(built: Sequence[Variant], cases: Sequence[Case]) -> Iterator[tuple[Case, int, int]]:
    """Which variant of one target selection takes, by its place, of each case that one serves.

    Another target that has equal variants has equal choices.
    """
    arch = built[0].arch
    places = {id(variant): at for at, variant in enumerate(built)}
    for case in cases:
        for sm in (arch.multiprocessors, FEW):
            with suppress(SelectionError):
                taken = select(built, sizes_of(case, sm), arch.capabilities[0])
                yield case, sm, places[id(taken)]


def is_held(schedule: str) -> bool:
    """Whether the schedule holds a warp back."""
    return ":" in schedule


def role(schedule: str) -> str:
    """A schedule without the rank of the CTA whose warp is held back."""
    name, _, held = schedule.partition(":")
    return f"{name} warp {held.rpartition(':')[2]}" if held else name
