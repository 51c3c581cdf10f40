"""`build`'s report: why each variant was compiled, each mistake once, the sum."""

import re
from collections.abc import Iterator

from kernelpack.build.options import Outcome, Report, State
from kernelpack.cli import console
from kernelpack.errors import BudgetError
from kernelpack.spec.counted import counted

_NUMBER = re.compile(r"\d+")


def tell(report: Report, *, dry_run: bool, explain: bool) -> None:
    """Reasons to stdout, if they were asked for; everything else to stderr."""
    for outcome in report.outcomes:
        if explain and outcome.reasons:
            console.show(f"{outcome.variant_id}: {outcome.state}: {', '.join(outcome.reasons)}")
        if outcome.killed_by:
            console.say(f"{outcome.variant_id}: killed by {outcome.killed_by}, compiled once more")
    if explain and all(outcome.state is State.CACHED for outcome in report.outcomes):
        console.say("nothing was compiled: no input of any variant changed")
    for line in (line for message in messages(report) for line in message.split("\n")):
        console.say(line)
    if report.unlinted and not dry_run:
        console.say(report.unlinted)
    if report.trouble:
        console.say(f"warning: {report.trouble}")
    console.say(_sum(report))
    if report.failures:
        console.say(f"{report.bundle} was not written")
    elif not dry_run:
        verb = "wrote" if report.written else "unchanged:"
        console.say(f"{verb} {report.bundle} ({console.size(report.bundle.stat().st_size)})")


def messages(report: Report) -> Iterator[str]:
    """Each error and warning once, with the variants it is about."""
    found: dict[str, list[tuple[str, str]]] = {}
    for outcome in report.outcomes:
        for text in _told_of(outcome):
            key = text.replace(outcome.variant_id, "…")
            if isinstance(outcome.error, BudgetError):  # each variant uses another number
                key = _NUMBER.sub("…", key)
            found.setdefault(key, []).append((text, outcome.variant_id))
    for alike in found.values():
        text, variant_id = alike[0]
        named = "" if variant_id in text else f" in {variant_id}"
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        yield f"{text}\n {named}{more}" if named or more else text


def record(report: Report) -> dict[str, object]:
    """The report for programs."""
    return {
        "bundle": str(report.bundle),
        "root": report.root,
        "written": report.written,
        "toolchain": report.toolchain,
        "seconds": round(report.seconds, 3),
        "packing_seconds": round(report.packing_seconds, 3),
        "trouble": report.trouble,
        "unlinted": report.unlinted,
        "variants": [_variant(outcome) for outcome in report.outcomes],
    }


def _variant(outcome: Outcome) -> dict[str, object]:
    error = outcome.error
    return {
        "id": outcome.variant_id,
        "state": str(outcome.state),
        "reasons": list(outcome.reasons),
        "seconds": round(outcome.seconds, 3),
        "error": error and {"where": error.where, "what": error.what, "hint": error.hint},
        "warnings": list(outcome.warnings),
    }


def _told_of(outcome: Outcome) -> Iterator[str]:
    yield from (f"warning: {text}" for text in outcome.warnings)
    if outcome.error:
        yield f"error: {outcome.error}"


def _sum(report: Report) -> str:
    counts = {state: report.count(state) for state in State if report.count(state)}
    told = ", ".join(f"{count} {state}" for state, count in counts.items())
    total = counted(len(report.outcomes), "variant")
    seconds = round(report.packing_seconds, 1)
    packing = f", {seconds} s of them packing" if seconds else ""
    took = f"{report.seconds:.1f} s{packing}"
    return f"{total} with {report.toolchain} in {took}: {told or 'nothing to do'}"
