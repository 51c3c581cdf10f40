"""A timeline of a run, for people who would rather look than read.

Time is counted in warp instructions of the whole grid. `Trace` listens and collects spans: what
each warp waited for, and every asynchronous operation from its issue to its effect; `chrome` gives
them as trace JSON, which Perfetto and chrome://tracing open.
"""

from collections.abc import Callable
from dataclasses import dataclass

from kernelpack.emulator.events import AgentStarted, Began, Bus, Issued, Waited


@dataclass(frozen=True, slots=True)
class Span:
    """Something that lasted: `track` is a warp or a unit; `begin` and `end` are steps."""

    track: str
    name: str
    kind: str
    """`wait`, or `operation`."""
    begin: int
    end: int


class Trace:
    """The spans of one run. `clock` gives the step."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.clock = clock
        self.names: dict[int, str] = {}
        self.spans: list[Span] = []
        self._issued: dict[int, tuple[int, str]] = {}

    def listen(self, bus: Bus) -> None:
        """Hear of agents, waits and operations."""
        bus.listen(AgentStarted, self.on_start)
        bus.listen(Waited, self.on_wait)
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, self.on_begin)

    def on_start(self, event: AgentStarted) -> None:
        """Remember a name."""
        self.names[event.agent] = event.name

    def on_wait(self, event: Waited) -> None:
        """A warp stood still."""
        name = self.names[event.agent]
        self.spans.append(Span(name, event.what, "wait", event.begin, event.end))

    def on_issue(self, event: Issued) -> None:
        """Remember when."""
        self._issued[event.operation] = (self.clock(), event.label)

    def on_begin(self, event: Began) -> None:
        """An operation takes effect."""
        begin, label = self._issued.pop(event.operation)
        name = self.names[event.agent]
        self.spans.append(Span(name, label.split(" ")[0], "operation", begin, self.clock()))

    def chrome(self) -> dict[str, object]:
        """The spans as Chrome trace events: one thread a track."""
        tracks = {track: n for n, track in enumerate(dict.fromkeys(s.track for s in self.spans))}
        named = [
            {"ph": "M", "name": "thread_name", "pid": 0, "tid": tid, "args": {"name": track}}
            for track, tid in tracks.items()
        ]
        spans = [
            {
                "ph": "X",
                "name": span.name,
                "cat": span.kind,
                "pid": 0,
                "tid": tracks[span.track],
                "ts": span.begin,
                "dur": max(span.end - span.begin, 1),
            }
            for span in self.spans
        ]
        return {"traceEvents": [*named, *spans], "displayTimeUnit": "ns"}
