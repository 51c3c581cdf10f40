"""Streams of any framework."""

from types import SimpleNamespace

import pytest

from kernelpack.errors import ProblemError
from kernelpack.ops.stream import stream_handle


class Protocol:
    """A stream that follows cuda.core's protocol, with a method."""

    def __cuda_stream__(self):
        return (0, 0x77)


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (None, 0),
        (0x55, 0x55),
        (Protocol(), 0x77),
        (SimpleNamespace(__cuda_stream__=(0, 0x66)), 0x66),
        (SimpleNamespace(cuda_stream=0x44), 0x44),
        (SimpleNamespace(ptr=0x33), 0x33),
        (SimpleNamespace(handle=0x22), 0x22),
    ],
    ids=["none", "integer", "protocol", "property", "torch", "cupy", "numba"],
)
def test_handle(stream, handle):
    """Every framework's stream becomes the driver's handle; none is the legacy default stream."""
    assert handle == stream_handle(stream)


def test_not_a_stream():
    """Anything else is refused by its type."""
    with pytest.raises(ProblemError, match="`stream` is a str, not a stream"):
        stream_handle("fast")
