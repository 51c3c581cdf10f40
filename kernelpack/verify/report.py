"""What a verification found: who is proven on what, and what was not proven. Values and sentences.

The record of a bundle, `X.verified.json`, is the report for programs: the same for the same files.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import Any

from kernelpack.spec.counted import counted
from kernelpack.verify.outcome import Outcome, State
from kernelpack.verify.plan import Scope

FORMAT = 1
NOT_PROVEN = (
    "time: the emulator has no clock; nothing here says how fast a kernel is",
    "machine code: the PTX is run, ptxas is trusted; `kernelpack check` looks at the cubins",
    "cases beyond those listed, interleavings beyond those drawn",
    "sums of tensor cores are those of float64, rounded; hardware truncates (see docs)",
)
"""What no run of this verification can say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of a verification; outcomes are in the order of the plan.

    Attributes:
        bundle: the file.
        root: its root digest.
        scope: what was asked.
        emulator: the version of the emulator, a digest.
        ptx: the PTX digest of each variant verified.
        selecting: of each variant, how many cases select it.
        outcomes: one a run.
        seconds: how long it all took.

    """

    bundle: Path
    root: str
    scope: Scope
    emulator: str
    ptx: Mapping[str, str]
    selecting: Mapping[str, int]
    outcomes: tuple[Outcome, ...] = field(repr=False)
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether every run is right."""
        return all(outcome.is_right for outcome in self.outcomes)

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
    """What a person is told, in lines: each kind of complaint once, then the sum."""
    for group in complaints(report):
        yield from group
    states = Counter(outcome.state for outcome in report.outcomes)
    told = ", ".join(f"{states[state]} {state}" for state in State if states[state])
    cached = sum(outcome.cached for outcome in report.outcomes)
    right = sum(all(o.is_right for o in runs) for runs in report.by_variant.values())
    runs = counted(len(report.outcomes), "run")
    if report.unselected:
        unselected = counted(len(report.unselected), "variant")
        yield f"selected by no case, so only forced: {unselected}"
    yield (
        f"{runs} in {report.seconds:.1f} s ({cached} cached): {told}; "
        f"{right} of {counted(len(report.ptx), 'variant')} right in all of theirs"
    )


def complaints(report: Report) -> Iterator[list[str]]:
    """Each kind of wrong once, with one run that shows it and how many more there are."""
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
            *(f"  {line}" for line in text.splitlines()[:12]),
        ]


def _kinds(outcome: Outcome) -> Iterator[tuple[tuple[str, str], str]]:
    """What is wrong with a run: (kind, place) that are alike elsewhere, and the words."""
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


def record(report: Report) -> dict[str, Any]:
    """The report for programs."""
    return {
        "format": FORMAT,
        "bundle": report.bundle.name,
        "root": report.root,
        "emulator": report.emulator,
        "full": report.scope.full,
        "level": report.scope.level.name.lower(),
        "right": report.is_right,
        "not_proven": list(NOT_PROVEN),
        "entries": {
            variant_id: {
                "ptx": report.ptx[variant_id],
                "right": all(o.is_right for o in runs),
                "selected_by": report.selecting[variant_id],
                "runs": [_run(outcome) for outcome in runs],
            }
            for variant_id, runs in report.by_variant.items()
        },
    }


def _run(outcome: Outcome) -> dict[str, Any]:
    job = outcome.job
    found: dict[str, Any] = {
        "case": job.case.name,
        "sizes": job.sizes,
        "schedule": job.schedule,
        "seed": job.seed,
        "how": "selected" if job.selected else "forced",
        "state": str(outcome.state),
        "cluster": list(outcome.cluster),
        "ctas": outcome.ctas,
        "error_over_bound": outcome.ratio if isfinite(outcome.ratio) else None,
    }
    if not outcome.is_right:
        found["complaints"] = list(outcome.complaints())
    return found


def record_path(bundle: Path) -> Path:
    """Where the record of a bundle lies: `X.verified.json` beside `X.kpk`."""
    return bundle.with_name(f"{bundle.name.removesuffix('.kpk')}.verified.json")


def write_record(report: Report) -> Path:
    """Write the record beside the bundle; entries of the same bundle that were not run now stay."""
    path = record_path(report.bundle)
    value = record(report)
    if path.exists():
        value["entries"] = {**_same_bundle(path, value), **value["entries"]}
        value["right"] = all(entry["right"] for entry in value["entries"].values())
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")
    return path


def _same_bundle(path: Path, value: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of an earlier record of the same bytes by the same emulator."""
    try:
        known = json.loads(path.read_text())
        same = all(known[key] == value[key] for key in ("format", "root", "emulator", "level"))
        return dict(known["entries"]) if same else {}
    except (ValueError, KeyError, TypeError):
        return {}
