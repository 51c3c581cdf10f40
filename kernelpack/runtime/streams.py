"""Streams, events and graphs: order between streams for ops; the rest for tests and benchmarks."""

from collections.abc import Iterator
from contextlib import contextmanager

from kernelpack.runtime.driver import Driver

_NON_BLOCKING = 1  # CU_STREAM_NON_BLOCKING
_NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING
_CAPTURE_THREAD = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL


def wait(driver: Driver, stream: int, producer: int, device: int) -> None:
    """Let `stream` wait, on the GPU, for what `producer` has been given so far."""
    with driver.current(device):
        event = driver.call("cuEventCreate", _NO_TIMING)
        with driver.afterwards("cuEventDestroy", event):
            driver.call("cuEventRecord", event, producer)
            driver.call("cuStreamWaitEvent", stream, event, 0)


@contextmanager
def new_stream(driver: Driver, device: int) -> Iterator[int]:
    """A stream of a device; destroyed at the end, when its work is done."""
    with driver.current(device):
        stream = int(driver.call("cuStreamCreate", _NON_BLOCKING))
    with driver.afterwards("cuStreamDestroy", stream):
        yield stream


def synchronize(driver: Driver, stream: int, device: int) -> None:
    """Wait until a stream has done all it was given."""
    with driver.current(device):
        driver.call("cuStreamSynchronize", stream)


class Graph:
    """The work of a stream inside `with graph.capture(stream)`, to be launched again."""

    def __init__(self, driver: Driver, device: int) -> None:
        self._driver, self._device, self._ready = driver, device, 0

    @contextmanager
    def capture(self, stream: int) -> Iterator[None]:
        """Record what the block gives to the stream; nothing of it runs yet."""
        mode = self._driver.api.CUstreamCaptureMode(_CAPTURE_THREAD)
        with self._driver.current(self._device):
            self._driver.call("cuStreamBeginCapture", stream, mode)
            try:
                yield
            except BaseException:
                self._drop(stream)
                raise
            graph = self._driver.call("cuStreamEndCapture", stream)
            with self._driver.afterwards("cuGraphDestroy", graph):
                self._ready = int(self._driver.call("cuGraphInstantiate", graph, 0))

    def _drop(self, stream: int) -> None:
        """End a capture that failed, and what it recorded."""
        code, graph = self._driver.attempt("cuStreamEndCapture", stream)
        if not code and int(graph):
            self._driver.attempt("cuGraphDestroy", graph)

    def launch(self, stream: int) -> None:
        """Start the whole graph on a stream."""
        self._driver.call("cuGraphLaunch", self._ready, stream)

    def destroy(self) -> None:
        """Free the graph; it may not be running."""
        self._driver.call("cuGraphExecDestroy", self._ready)


class Timer:
    """Two events around the work of a stream."""

    def __init__(self, driver: Driver, device: int) -> None:
        self._driver, self._device = driver, device
        with driver.current(device):
            self._events = [driver.call("cuEventCreate", 0) for _ in range(2)]

    def start(self, stream: int) -> None:
        """Note the time when the stream comes to this point."""
        self._record(0, stream)

    def stop(self, stream: int) -> None:
        """Note the time when the stream comes to this point."""
        self._record(1, stream)

    def milliseconds(self) -> float:
        """The time between the two points; waits for the second."""
        with self._driver.current(self._device):
            self._driver.call("cuEventSynchronize", self._events[1])
            return float(self._driver.call("cuEventElapsedTime", *self._events))

    def _record(self, index: int, stream: int) -> None:
        with self._driver.current(self._device):
            self._driver.call("cuEventRecord", self._events[index], stream)
