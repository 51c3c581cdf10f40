"""`X.verified.json`: the record, for programs, of what is proven of a bundle `X.kpk`.

Its keys are described in docs/reference/verified.md. A run depends on the bundle's bytes, on the
emulator and on the oracle; while these are the same, a later verification adds its runs to those
recorded, so that a narrow one takes nothing away. It lists what was not run too: an entry without
runs is among the `unverified`, and a `plan` says how far the runs go.
"""

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from kernelpack.files import publish
from kernelpack.verify.outcome import Outcome, State
from kernelpack.verify.plan import PLANS
from kernelpack.verify.report import NOT_PROVEN, Report

FORMAT = 2
_VERSIONS = ("format", "root", "emulator", "oracle")
"""The state that runs depend on: those of another one say nothing here."""
_RUN = ("case", "sizes", "schedule", "seed", "level")
"""The identity of a run of an entry."""

Record = dict[str, Any]


def record(report: Report) -> Record:
    """The record of one verification: the same for the same files."""
    return summed(
        {
            "format": FORMAT,
            "bundle": report.bundle.name,
            "root": report.root,
            "emulator": report.emulator,
            "oracle": report.oracle,
            "not_proven": list(NOT_PROVEN),
            "entries": {
                variant_id: {
                    "ptx": report.ptx[variant_id],
                    "selected_by": report.selecting[variant_id],
                    "plan": report.scope.plan,
                    "runs": [run_record(outcome) for outcome in runs],
                }
                for variant_id, runs in report.by_variant.items()
            },
        },
        report.ids,
    )


def run_record(outcome: Outcome) -> Record:
    """The record of one run."""
    job = outcome.job
    found: Record = {
        "case": job.case.name,
        "sizes": job.sizes,
        "schedule": job.schedule,
        "seed": job.seed,
        "level": job.level.name.lower(),
        "how": "selected" if job.selected else "forced",
        "state": str(outcome.state),
        "cluster": list(outcome.cluster),
        "ctas": outcome.ctas,
        "error_over_bound": outcome.ratio if isfinite(outcome.ratio) else None,
    }
    if not outcome.is_right:
        found["complaints"] = list(outcome.complaints())
    return found


def summed(value: Record, ids: Sequence[str]) -> Record:
    """A record with what its runs amount to, over every entry of the bundle."""
    entries = {
        variant_id: {
            **entry,
            "right": bool(entry["runs"]) and all(run["state"] == "right" for run in entry["runs"]),
            "runs": sorted(entry["runs"], key=_name),
        }
        for variant_id, entry in value["entries"].items()
    }
    plans = [entries[i]["plan"] if i in entries else PLANS[0] for i in ids]
    return {
        **value,
        "entries": entries,
        "right": all(entry["right"] for entry in entries.values()),
        "plan": min(plans, key=PLANS.index),
        "unverified": [i for i in ids if i not in entries],
    }


def record_path(bundle: Path) -> Path:
    """Where the record of a bundle lies: `X.verified.json` beside `X.kpk`."""
    return bundle.parent / f"{bundle.name.removesuffix('.kpk')}.verified.json"


def write_record(report: Report) -> Path:
    """Write the record beside the bundle, added to what it says already of the same bytes.

    Raises:
        KernelpackError: it cannot be written; the earlier one is as it was.

    """
    path = record_path(report.beside or report.bundle)
    add(path, record(report), report.ids, _VERSIONS)
    return path


def add(path: Path, value: Record, ids: Sequence[str], versions: Sequence[str]) -> None:
    """Write a record, added to the one that is there if that is of the same `versions`.

    Raises:
        KernelpackError: it cannot be written; the earlier one is as it was.

    """
    known = _known(path, value, versions)
    for variant_id, entry in value["entries"].items():
        known[variant_id] = _joined(known[variant_id], entry) if variant_id in known else entry
    whole = summed({**value, "entries": known}, ids)
    text = json.dumps(whole, indent=1, sort_keys=True) + "\n"
    publish(path, text.encode("utf-8", "surrogateescape"))


def _known(path: Path, value: Record, versions: Sequence[str]) -> Record:
    """The entries of an earlier record of the same versions."""
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        return _entries(known) if all(known[k] == value[k] for k in versions) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _entries(known: Record) -> Record:
    """The entries of a record that has the form of ours.

    Raises:
        ValueError, KeyError, TypeError: it has another.

    """
    for entry in known["entries"].values():
        PLANS.index(entry["plan"])
        for run in entry["runs"]:
            State(run["state"])
            _name(run)
    return dict(known["entries"])


def _joined(known: Record, new: Record) -> Record:
    """An entry with the runs of both, each once."""
    runs = {_name(run): run for run in [*known["runs"], *new["runs"]]}
    plan = max(known["plan"], new["plan"], key=PLANS.index)
    return {**new, "plan": plan, "runs": list(runs.values())}


def _name(run: Mapping[str, Any]) -> str:
    return json.dumps([run[key] for key in _RUN], sort_keys=True)
