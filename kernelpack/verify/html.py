"""The report as one page, nothing beside it: what was proven, what was not, where errors are."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

from kernelpack.spec.counted import counted
from kernelpack.verify.outcome import Outcome, State
from kernelpack.verify.picture import data_uri
from kernelpack.verify.report import NOT_PROVEN, Report, complaints, summary

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 72em; color: #222; }
h1, h2 { font-weight: 600; } code, td.id, pre { font-family: ui-monospace, monospace; }
table { border-collapse: collapse; width: 100%; } td, th { padding: .2em .6em; text-align: left; }
tr { border-bottom: 1px solid #eee; } td.n { text-align: right; } pre { white-space: pre-wrap; }
img { image-rendering: pixelated; height: 48px; vertical-align: middle; border: 1px solid #ddd; }
summary { cursor: pointer; padding: .2em 0; } .right { color: #17703a; } .bad { color: #b3261e; }
figure { display: inline-block; margin: .4em .8em .4em 0; } figcaption { font-size: 12px; }
"""
_LEGEND = (
    "A pixel is the worst of the elements it covers, planes side by side: white no error, blue all "
    "of the bound, orange to red beyond it, black NaN."
)


def page(reports: Sequence[Report]) -> str:
    """A page of every report."""
    body = "\n".join(part for report in reports for part in _report(report))
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        f"<title>kernelpack verify</title><style>{_STYLE}</style>\n{body}\n</html>\n"
    )


def _report(report: Report) -> Iterator[str]:
    verdict = "every run is right" if report.is_right else "something is wrong"
    yield f"<h1>{escape(report.bundle.name)}: {verdict}</h1>"
    yield f"<p>{escape(list(summary(report))[-1])}</p>"
    yield "<h2>What was proven</h2>"
    yield f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in proven(report))}</ul>"
    yield "<h2>What was not</h2>"
    yield f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in unproven(report))}</ul>"
    yield from _wrong(report)
    yield f"<h2>Variants</h2><p>{_LEGEND}</p>"
    for variant_id, runs in report.by_variant.items():
        yield _variant(variant_id, runs, report.selecting[variant_id])
    yield f"<p>Root <code>{report.root}</code>, emulator <code>{report.emulator}</code>.</p>"


def proven(report: Report) -> Iterator[str]:
    """What the right runs say, in sentences."""
    right = [outcome for outcome in report.outcomes if outcome.is_right]
    variants = {outcome.variant_id for outcome in right}
    selected = {outcome.variant_id for outcome in right if outcome.job.selected}
    yield (
        f"{len(variants)} of {counted(len(report.ptx), 'variant')} compute right numbers without a "
        f"finding, in {counted(len(right), 'run')} of "
        f"{counted(len({o.job.case for o in right}), 'case')}"
    )
    yield (
        f"{len(selected)} of them by selection, from the problem to the launch; "
        "the others where they were forced to run"
    )
    clusters = Counter(outcome.cluster for outcome in right)
    told = ", ".join(f"{' by '.join(map(str, c))} ({n})" for c, n in sorted(clusters.items()))
    yield f"clusters of {told or 'none'}"
    schedules = Counter(outcome.job.schedule.partition(":")[0] for outcome in right)
    yield f"interleavings: {', '.join(f'{name} ({n})' for name, n in sorted(schedules.items()))}"


def unproven(report: Report) -> Iterator[str]:
    """What nothing here says."""
    if report.failures:
        yield f"not right, below: {counted(len(report.failures), 'run')}"
    unsupported = sum(o.state is State.UNSUPPORTED for o in report.outcomes)
    if unsupported:
        yield f"what the emulator does not model, which {counted(unsupported, 'run')} would need"
    if report.unselected:
        yield f"that selection ever takes: {', '.join(report.unselected)}"
    if not report.scope.full:
        yield "every small case under every schedule: this was not a full run"
    yield from NOT_PROVEN


def _wrong(report: Report) -> Iterator[str]:
    groups = list(complaints(report))
    if groups:
        yield "<h2>What is wrong</h2>"
    for head, *lines in groups:
        yield f'<h3 class="bad">{escape(head)}</h3><pre>{escape(chr(10).join(lines))}</pre>'


def _variant(variant_id: str, runs: Sequence[Outcome], selecting: int) -> str:
    right = sum(outcome.is_right for outcome in runs)
    colour = "right" if right == len(runs) else "bad"
    ratio = max((outcome.ratio for outcome in runs), default=0.0)
    head = (
        f'<code>{escape(variant_id)}</code> <b class="{colour}">{right} of {len(runs)} right</b>, '
        f"{ratio:.2f} of the bound at worst, selected by {counted(selecting, 'case')}"
    )
    return f"<details><summary>{head}</summary>{''.join(map(_run, runs))}</details>"


def _run(outcome: Outcome) -> str:
    how = "selected" if outcome.job.selected else "forced"
    colour = "right" if outcome.is_right else "bad"
    caption = f"{outcome.job.words}, {how}, cluster {' by '.join(map(str, outcome.cluster))}"
    images = "".join(
        f'<img alt="errors of {escape(c.name)}" src="{data_uri(c.picture)}"> '
        for c in outcome.comparisons
    )
    return (
        f'<figure>{images}<figcaption>{escape(caption)}: <b class="{colour}">{outcome.state}</b>'
        "</figcaption></figure>"
    )
