"""The results of a verification: what is proven, on which cases, and what is not.

For programs the same is a record: kernelpack/verify/verified.py.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelpack.spec.counted import counted
from kernelpack.verify.outcome import Outcome, State
from kernelpack.verify.plan import Scope
from kernelpack.verify.source_lines import NO_SOURCES, SourceLines

NOT_PROVEN = (
    "time: the emulator has no clock; nothing here says how fast a kernel is",
    "machine code: the PTX is run, ptxas is trusted; `kernelpack check` looks at the cubins",
    "cases beyond those listed, interleavings beyond those drawn",
    "last bits: tensor cores add in float64 here, hardware truncates: docs/reference/verified.md",
)
"""What no run of this verification can prove."""

MOST_LINES = 12
"""Of one complaint that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report of a verification; outcomes are in the order of the plan.

    Attributes:
        bundle: the file.
        root: its root digest.
        scope: what was asked.
        emulator: the version of the emulator, a digest.
        oracle: that of the oracles, their inputs and bounds.
        ids: every entry of the bundle, also those that were not asked for.
        ptx: the PTX digest of each variant verified.
        selecting: of each variant, how many cases select it.
        outcomes: one a run.
        seconds: how long it all took.
        beside: the path that its record lies beside; that of the bundle if None.
        lines: of the sources that its kernels were made of.

    """

    bundle: Path
    root: str
    scope: Scope
    emulator: str
    oracle: str
    ids: tuple[str, ...] = field(repr=False)
    ptx: Mapping[str, str]
    selecting: Mapping[str, int]
    outcomes: tuple[Outcome, ...] = field(repr=False)
    seconds: float
    beside: Path | None = None
    lines: SourceLines = field(default=NO_SOURCES, repr=False)

    @property
    def is_right(self) -> bool:
        """Whether every run is right, and every variant had one."""
        return all(outcome.is_right for outcome in self.outcomes) and not self.idle

    @property
    def idle(self) -> tuple[str, ...]:
        """Variants that serve no case: nothing was proven of them."""
        return tuple(variant_id for variant_id, runs in self.by_variant.items() if not runs)

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """The runs that are not right."""
        return tuple(outcome for outcome in self.outcomes if not outcome.is_right)

    @property
    def by_variant(self) -> dict[str, list[Outcome]]:
        """The runs of each variant."""
        found: dict[str, list[Outcome]] = {variant_id: [] for variant_id in self.ptx}
        for outcome in self.outcomes:
            found[outcome.variant_id].append(outcome)
        return found

    @property
    def unselected(self) -> tuple[str, ...]:
        """Variants that no case selects: they ran only where they were forced."""
        return tuple(variant_id for variant_id, count in self.selecting.items() if not count)


def summary(report: Report) -> Iterator[str]:
    """The report for people, in lines: each kind of complaint once, then the sum."""
    for group in complaints(report):
        yield from group
    states = Counter(outcome.state for outcome in report.outcomes)
    told = ", ".join(f"{states[state]} {state}" for state in State if states[state])
    cached = sum(outcome.cached for outcome in report.outcomes)
    proven = filter(None, report.by_variant.values())
    right = sum(all(o.is_right for o in runs) for runs in proven)
    runs = counted(len(report.outcomes), "run")
    if unasked := len(report.ids) - len(report.ptx):
        yield f"not verified: {unasked} of {counted(len(report.ids), 'entry', 'entries')}"
    if report.idle:
        idle = counted(len(report.idle), "variant")
        yield f"serve no case, so nothing is proven of them: {idle}, such as {report.idle[0]}"
    if forced := [each for each in report.unselected if each not in report.idle]:
        yield f"selected by no case, so only forced: {counted(len(forced), 'variant')}"
    yield (
        f"{runs} in {report.seconds:.1f} s ({cached} cached): {told or 'none'}; "
        f"{right} of {counted(len(report.ptx), 'variant')} right in all of theirs"
    )


def complaints(report: Report) -> Iterator[list[str]]:
    """Each kind of wrong once, with one run that shows it, how many more there are, its lines."""
    alike: dict[tuple[str, str], list[tuple[Outcome, str]]] = {}
    for outcome in report.failures:
        for kind, text in _kinds(outcome):
            alike.setdefault(kind, []).append((outcome, text))
    for (what, place), shown in alike.items():
        outcome, text = shown[0]
        runs = counted(len({o.job for o, _ in shown}), "run")
        variants = counted(len({o.variant_id for o, _ in shown}), "variant")
        head = f"{what}" + (f" at {place}" if place else "")
        yield [
            f"{head}: {runs} of {variants}",
            f"  {outcome.variant_id} {outcome.job.words}",
            *_shown(text.splitlines()),
            *(f"    {line}" for line in report.lines.beside(place, text)),
        ]


def _shown(lines: Sequence[str]) -> Iterator[str]:
    """Lines of a complaint, the first of many."""
    yield from (f"  {line}" for line in lines[:MOST_LINES])
    if (more := len(lines) - MOST_LINES) > 0:
        yield f"    … and {counted(more, 'more line')}"


def _kinds(outcome: Outcome) -> Iterator[tuple[tuple[str, str], str]]:
    """The mistakes of a run: (kind, place), which may recur, and the words."""
    ended = outcome.ended
    if ended:
        yield (ended.kind, ended.place), ended.text
    for comparison in outcome.comparisons:
        if not comparison.is_right:
            yield (f"wrong numbers in {comparison.name}", ""), str(comparison)
    for broken in outcome.broken:
        if ended and f"[{broken.rule}," in ended.text:
            continue  # the finding that ended the run
        yield (broken.rule, broken.place), broken.text
