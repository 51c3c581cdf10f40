"""Streams of any framework as the driver's handle."""

from typing import Any

from kernelpack.errors import ProblemError

Stream = Any
"""A stream of any framework, its handle, or None."""

LEGACY = 1  # the number of the legacy default stream in DLPack, the array interface, the driver


def stream_handle(stream: Stream) -> int:
    """The driver's handle of a stream: an integer, or an object of a framework.

    None is the legacy default stream, which waits for every blocking stream of its device. A
    framework's current stream is used only where the caller gives it, such as
    `torch.cuda.current_stream()`.
    """
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    for attribute in ("cuda_stream", "ptr", "handle"):  # torch; cupy; numba and others
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute))
    hint = "give a handle, or a stream of torch, cupy or cuda.core"
    raise ProblemError(f"`stream` is a {type(stream).__name__}, not a stream", hint=hint)
