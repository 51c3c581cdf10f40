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
    title = escape("; ".join(map(verdict, reports)))
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style>\n{body}\n</html>\n"
    )


def verdict(report: Report) -> str:
    """How much of a bundle was verified, and the result."""
    runs = report.by_variant
    asked = f"{len(runs)} of {counted(len(report.ids), 'entry', 'entries')} verified"
    wrong = sum(not each or not all(outcome.is_right for outcome in each) for each in runs.values())
    came = f"{wrong} of these wrong" if wrong else "every run right"
    return f"{report.bundle.name}: {asked}, {came}"


def _report(report: Report) -> Iterator[str]:
    colour = "right" if report.is_right else "bad"
    yield f'<h1 class="{colour}">{escape(verdict(report))}</h1>'
    yield f"<p>{escape(list(summary(report))[-1])}</p>"
    yield "<h2>What was proven</h2>"
    yield f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in proven(report))}</ul>"
    yield "<h2>What was not</h2>"
    yield f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in unproven(report))}</ul>"
    yield from _wrong(report)
    yield f"<h2>Variants</h2><p>{_LEGEND}</p>"
    yield from _variants(report)
    yield f"<p>Root <code>{report.root}</code>, emulator <code>{report.emulator}</code>.</p>"


def _variants(report: Report) -> Iterator[str]:
    """Those with a run that is not right; the others are folded into one."""
    told: dict[bool, list[str]] = {False: [], True: []}
    for variant_id, runs in report.by_variant.items():
        is_right = bool(runs) and all(outcome.is_right for outcome in runs)
        told[is_right].append(_variant(variant_id, runs, report.selecting[variant_id]))
    yield from told[False]
    if told[True]:
        head = f"{counted(len(told[True]), 'variant')} right in every run"
        yield f"<details><summary>{head}</summary>{''.join(told[True])}</details>"


def proven(report: Report) -> Iterator[str]:
    """The right runs, in sentences."""
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
    if not right:
        return
    clusters = Counter(outcome.cluster for outcome in right)
    told = ", ".join(f"{' by '.join(map(str, c))} ({n})" for c, n in sorted(clusters.items()))
    yield f"clusters of {told}"
    schedules = Counter(outcome.job.schedule.partition(":")[0] for outcome in right)
    yield f"interleavings: {', '.join(f'{name} ({n})' for name, n in sorted(schedules.items()))}"


def unproven(report: Report) -> Iterator[str]:
    """What nothing here proves."""
    if unasked := len(report.ids) - len(report.ptx):
        yield f"{counted(unasked, 'entry', 'entries')} of the bundle that nobody asked for"
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
    wrong = [outcome for outcome in runs if not outcome.is_right]
    right = [outcome for outcome in runs if outcome.is_right]
    colour = "bad" if wrong else "right"
    ratio = max((outcome.ratio for outcome in runs), default=0.0)
    head = (
        f'<code>{escape(variant_id)}</code> <b class="{colour}">{len(right)} of {len(runs)} right'
        f"</b>, {ratio:.2f} of the bound at worst, selected by {counted(selecting, 'case')}"
    )
    opened = " open" if wrong else ""
    body = "".join(map(_picture, wrong)) + _table(right)
    return f"<details{opened}><summary>{head}</summary>{body}</details>"


def _picture(outcome: Outcome) -> str:
    """A run that is not right: where each output's errors are."""
    caption = f"{outcome.job.words}, {_how(outcome)}, cluster {_by(outcome.cluster)}"
    images = "".join(
        f'<img alt="errors of {escape(c.name)}" src="{data_uri(c.picture)}"> '
        for c in outcome.comparisons
    )
    return (
        f'<figure>{images}<figcaption>{escape(caption)}: <b class="bad">{outcome.state}</b>'
        "</figcaption></figure>"
    )


def _table(runs: Sequence[Outcome]) -> str:
    """Runs that are right, a case a row."""
    alike: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in runs:
        key = (outcome.job.case.name, str(outcome.job.sm_count), _by(outcome.cluster))
        alike.setdefault((*key, _how(outcome)), []).append(outcome)
    rows = "".join(_row(key, shown) for key, shown in alike.items())
    head = "".join(f"<th>{name}</th>" for name in _COLUMNS)
    return f"<table><tr>{head}</tr>{rows}</table>" if rows else ""


_COLUMNS = ("case", "multiprocessors", "cluster", "variant is", "interleavings", "of the bound")


def _row(key: tuple[str, ...], shown: Sequence[Outcome]) -> str:
    schedules = Counter(outcome.job.schedule.partition(":")[0] for outcome in shown)
    told = ", ".join(f"{name} ({count})" for name, count in sorted(schedules.items()))
    worst = max(outcome.ratio for outcome in shown)
    cells = "".join(f"<td>{escape(text)}</td>" for text in (*key, told))
    return f'<tr>{cells}<td class="n">{worst:.2f}</td></tr>'


def _how(outcome: Outcome) -> str:
    return "selected" if outcome.job.selected else "forced"


def _by(cluster: tuple[int, int, int]) -> str:
    return " by ".join(map(str, cluster))
