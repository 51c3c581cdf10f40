"""A pretended GPU on which a test sets the microseconds of each launch."""

from tests.device.twice import Twice

COPY_RATE = 4000.0  # bytes a microsecond


class Clocked(Twice):
    """`cost(entry, n)` is the microseconds of a launch; a graph takes those of what it recorded."""

    def __init__(self, cost, **changes):
        super().__init__(**changes)
        self.cost, self.now = cost, 0.0
        self.recorded = {}
        """Stream → microseconds, while it is captured; graph → microseconds."""
        self.marks = {}
        self.replays = []

    def spend(self, stream, microseconds):
        if stream in self.recorded:
            self.recorded[stream] += microseconds
        else:
            self.now += microseconds

    def _launch(self, *arguments):
        code = super()._launch(*arguments)
        launched = self.launches[-1]
        self.spend(launched.stream, self.cost(launched.entry, launched.number(2)))
        return code

    def on_cuMemcpyDtoDAsync(self, destination, source, size, stream):  # noqa: N802
        super().on_cuMemcpyDtoDAsync(destination, source, size, stream)
        self.spend(int(stream), 2 * size / COPY_RATE)

    def on_cuStreamBeginCapture(self, stream, mode):  # noqa: N802
        super().on_cuStreamBeginCapture(stream, mode)
        self.recorded[int(stream)] = 0.0

    def on_cuStreamEndCapture(self, stream):  # noqa: N802
        graph = super().on_cuStreamEndCapture(stream)
        self.recorded[graph] = self.recorded.pop(int(stream))
        return graph

    def on_cuGraphInstantiate(self, graph, flags):  # noqa: N802
        return graph

    def on_cuGraphLaunch(self, graph, stream):  # noqa: N802
        self.now += self.recorded[int(graph)]
        self.replays.append(int(graph))

    def on_cuEventRecord(self, event, stream):  # noqa: N802
        super().on_cuEventRecord(event, stream)
        self.marks[int(event)] = self.now

    def on_cuEventElapsedTime(self, start, end):  # noqa: N802
        return (self.marks[int(end)] - self.marks[int(start)]) / 1000


def by_entry(**costs):
    """The same microseconds for every problem."""
    return lambda entry, _n: costs[entry]
