"""A chart as a trace that https://ui.perfetto.dev and chrome://tracing open.

A process is a CTA, a thread a row; `Ticks` says how long a tick is: an emulated step is a
microsecond. Flows lead from an issue to
its operation, and from the end of an operation to who waited for it.
Format: "Trace Event Format" (Chromium project).
"""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from kernelpack.verify.timeline.bars import Bar
from kernelpack.verify.timeline.chart import Arrow, Chart, Row

LEAST = 0.5
"""How long a bar is drawn that took no step."""
_INSIDE = 0.25

Event: TypeAlias = dict[str, object]


def trace(chart: Chart, facts: Mapping[str, object]) -> dict[str, object]:
    """The trace as JSON's objects; `facts` say what was run."""
    size = chart.ticks.microseconds
    events = _events(chart)
    return {
        "otherData": {"time": chart.ticks.told, **facts},
        "displayTimeUnit": "ms" if size == 1 else "ns",
        "traceEvents": list(events if size == 1 else (_scaled(one, size) for one in events)),
    }


def _scaled(event: Event, size: float) -> Event:
    """An event whose ticks are so many microseconds."""
    times = {name: event[name] for name in ("ts", "dur") if name in event}
    return event | {
        name: round(time * size, 6) for name, time in times.items() if isinstance(time, int | float)
    }


def _events(chart: Chart) -> Iterator[Event]:
    processes = {cta: number for number, cta in enumerate(chart.ctas)}
    for cta, number in processes.items():
        yield _named("process_name", number, 0, f"CTA {cta}")
    places = {}
    for index, row in enumerate(chart.rows):
        place = {"pid": processes[row.cta], "tid": 2 * index + 1}
        places[row.key] = place
        yield from _row(row, place)
    for number, arrow in enumerate(chart.arrows):
        yield from _flow(arrow, number, places)


def _row(row: Row, place: dict[str, int]) -> Iterator[Event]:
    name = f"{row.name} {row.note}".strip()
    for thread, bars, suffix in ((0, row.bars, ""), (1, row.own, ", its operations")):
        if bars:
            pid, tid = place["pid"], place["tid"] + thread
            yield _named("thread_name", pid, tid, name + suffix)
            yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid,
                   "args": {"sort_index": tid}}  # fmt: skip
            yield from (_slice(bar, pid, tid) for bar in bars)


def _named(what: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _slice(bar: Bar, pid: int, tid: int) -> Event:
    return {
        "ph": "X",
        "name": bar.name,
        "cat": bar.kind.value,
        "pid": pid,
        "tid": tid,
        "ts": bar.begin,
        "dur": _end(bar) - bar.begin,
        "args": dict(bar.details),
    }


def _end(bar: Bar) -> float:
    return max(bar.end, bar.begin + LEAST)


def _flow(arrow: Arrow, number: int, places: Mapping[int, dict[str, int]]) -> Iterator[Event]:
    """Both ends of an arrow, each inside the slice that it belongs to."""
    begin, end = arrow.begin + _INSIDE, arrow.end + _INSIDE
    if arrow.wakes:
        begin = _end(arrow.bar) - _INSIDE if arrow.bar else begin
        end = max(end, begin) + _INSIDE
    head = {"name": arrow.kind.value, "cat": "wakes" if arrow.wakes else "issue", "id": number}
    yield {"ph": "s", **head, **places[arrow.source], "ts": begin}
    yield {"ph": "f", "bp": "e", **head, **places[arrow.target], "ts": end}
