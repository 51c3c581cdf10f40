"""Order between streams, graphs and timers, as the driver is asked for them."""

import pytest

from kernelpack.runtime.driver import Driver
from kernelpack.runtime.streams import Graph, Timer, new_stream, synchronize, wait
from tests.fakes.driver import FakeCuda


@pytest.fixture
def cuda():
    return FakeCuda()


def test_wait(cuda):
    """One stream waits for what another was given; the event between them is given back."""
    stream, producer = cuda.new_stream(), cuda.new_stream()
    wait(Driver(cuda), stream, producer, 0)
    assert (cuda.waits, cuda.count("cuEventDestroy")) == ([(stream, producer)], 1)


def test_new_stream(cuda):
    """A stream lives as long as its block."""
    with new_stream(Driver(cuda), 0) as stream:
        assert stream in cuda.streams
    assert stream not in cuda.streams


def test_capture_ends_after_an_error(cuda):
    """A block that fails leaves no capture behind."""
    stream = cuda.new_stream()
    graph = Graph(Driver(cuda), 0)
    with pytest.raises(ValueError, match="any"), graph.capture(stream):
        raise ValueError("any")
    assert not cuda.streams[stream].capturing


def test_graph(cuda):
    """A captured graph is made ready, launched and destroyed."""
    stream = cuda.new_stream()
    graph = Graph(Driver(cuda), 0)
    with graph.capture(stream):
        assert cuda.streams[stream].capturing
    graph.launch(stream)
    graph.destroy()
    made = ["cuGraphInstantiate", "cuGraphDestroy", "cuGraphLaunch", "cuGraphExecDestroy"]
    assert made == [name for name in cuda.calls if name.startswith("cuGraph")]


def test_timer(cuda):
    """The time between two points of a stream, in milliseconds."""
    stream = cuda.new_stream()
    timer = Timer(Driver(cuda), 0)
    timer.start(stream)
    timer.stop(stream)
    assert timer.milliseconds() == 1.0


def test_synchronize(cuda):
    """Waiting for a stream asks the driver once."""
    synchronize(Driver(cuda), cuda.new_stream(), 0)
    assert cuda.count("cuStreamSynchronize") == 1
