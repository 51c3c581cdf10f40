"""Times on a GPU: launches in a graph, rivals in turns, the median and how far times spread.

A graph keeps the gaps between launches small; rivals that take turns meet the same clocks and the
same heat, so that their ratio says more than their times.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median, quantiles

from kernelpack.device.apart import At, nowhere
from kernelpack.load.library import Library, Timer
from kernelpack.runtime.driver import Driver
from kernelpack.runtime.memory import Memory, copy
from kernelpack.runtime.streams import Graph, new_stream, synchronize

CALLS = 60
"""At least, in a graph, of a kernel that takes microseconds."""
GRAPH_US = 20_000.0
"""About the most that a graph takes, unless every set of arrays needs longer."""
COPIED_BYTES = (1 << 28, 1 << 30)
COPIES = 10

Start = Callable[[int], object]
"""Starts one launch on a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is measured: rounds of turns, and replays of each graph in a turn."""

    rounds: int = 5
    replays: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """Microseconds of one launch.

    Attributes:
        median: over all replays.
        low: a tenth of the replays took less.
        high: a tenth took more.
        calls: launches in a graph.

    """

    median: float
    low: float
    high: float
    calls: int

    @property
    def spread(self) -> float:
        """How far apart low and high are, as a part of the median."""
        return (self.high - self.low) / self.median


class Timed:
    """Launches recorded in a graph, to be replayed."""

    def __init__(self, driver: Driver, device: int, stream: int, starts: Sequence[Start]) -> None:
        self._graph, self._timer = Graph(driver, device), Timer(driver, device)
        self._stream = stream
        for start in starts:  # loaded, and planned
            start(stream)
        synchronize(driver, stream, device)
        self.calls = _calls(self._once(starts), len(starts))
        with self._graph.capture(stream):
            for index in range(self.calls):
                starts[index % len(starts)](stream)
        self.replay()

    def _once(self, starts: Sequence[Start]) -> float:
        """Microseconds of one launch outside a graph, about."""
        self._timer.start(self._stream)
        for start in starts:
            start(self._stream)
        self._timer.stop(self._stream)
        return 1000 * self._timer.milliseconds() / len(starts)

    def replay(self) -> float:
        """Microseconds of one launch."""
        self._timer.start(self._stream)
        self._graph.launch(self._stream)
        self._timer.stop(self._stream)
        return 1000 * self._timer.milliseconds() / self.calls

    def destroy(self) -> None:
        """Free the graph."""
        self._graph.destroy()


def _calls(once_us: float, sets: int) -> int:
    """How many launches a graph has: a multiple of the sets."""
    wanted = min(CALLS, GRAPH_US / max(once_us, 1e-3))
    return max(1, -(-round(wanted) // sets)) * sets


def take_turns(
    library: Library,
    device: int,
    rivals: Mapping[str, Sequence[Start]],
    effort: Effort,
    at: At = nowhere,
) -> dict[str, Time]:
    """The times of each; of one that cannot be launched the driver's error is raised.

    `at` gets each turn's name, so that the one that never ends is known.
    """
    found: dict[str, list[float]] = {name: [] for name in rivals}
    with _timed(library.driver, device, rivals, at) as timed:
        for _ in range(effort.rounds):
            for name, one in timed.items():
                at(name)
                found[name] += [one.replay() for _ in range(effort.replays)]
        at("")
        return {name: _time(values, timed[name].calls) for name, values in found.items()}


@contextmanager
def _timed(
    driver: Driver, device: int, rivals: Mapping[str, Sequence[Start]], at: At
) -> Iterator[dict[str, Timed]]:
    made: dict[str, Timed] = {}
    with new_stream(driver, device) as stream:
        try:
            for name, starts in rivals.items():
                at(name)
                made[name] = Timed(driver, device, stream, starts)
            yield made
        finally:
            synchronize(driver, stream, device)
            for one in made.values():
                one.destroy()


def _time(values: Sequence[float], calls: int) -> Time:
    if len(values) < 2:
        return Time(median=values[0], low=values[0], high=values[0], calls=calls)
    tenths = quantiles(values, n=10, method="inclusive")
    return Time(median=median(values), low=tenths[0], high=tenths[-1], calls=calls)


def copy_rate(library: Library, device: int) -> float:
    """Bytes that a device copy reads and writes in a microsecond: the best of some sizes."""
    return max(_copy_rate(library, device, size) for size in COPIED_BYTES)


def _copy_rate(library: Library, device: int, size: int) -> float:
    source, target = (Memory(library.driver, size, device) for _ in range(2))
    source.fill(0x5A)

    def start(stream: int) -> None:
        copy(library.driver, target.address, source.address, size, stream)

    with library.driver.current(device):
        times = take_turns(library, device, {"": [start] * COPIES}, Effort(rounds=1))
    return 2 * size / times[""].median
