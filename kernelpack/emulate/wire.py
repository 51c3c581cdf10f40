"""The socket that programs call: each one that speaks CUDA is served, a request at a time.

A connection ends with the process that made it, also where a child of it still holds the socket.

A program waits for the answer to a request before it sends another, so one loop serves any number
of them: also a program that starts another one and waits for it.
"""

import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from select import select
from selectors import EVENT_READ, DefaultSelector

from kernelpack.emulate import arena
from kernelpack.emulate.options import Options
from kernelpack.emulate.report import Log
from kernelpack.emulate.server import Server

_POLL_SECONDS = 0.05


@contextmanager
def listening(path: Path) -> Iterator[socket.socket]:
    """A socket at a path, at which programs call."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        yield listener


@dataclass(frozen=True, slots=True, eq=False)
class _Caller:
    """A program that called: its server, its connection, and what ends with it."""

    server: Server
    connection: socket.socket
    held: ExitStack
    end: int
    """A file that can be read once the process has ended."""


def serve(
    listener: socket.socket,
    has_ended: Callable[[], bool],
    options: Options,
    tell: Callable[[str], None],
    log: Log,
) -> None:
    """Serve programs until the one that was started and all that called have ended.

    Args:
        listener: where they call.
        has_ended: whether the program that was started has.
        options: the device they find, and how their kernels are run.
        tell: is given each launch and each error as it happens, one text.
        log: their outcomes, as they come.

    Raises:
        KernelpackError: there is no room for device memory.

    """
    with DefaultSelector() as calls, ExitStack() as all_held:
        calls.register(listener, EVENT_READ)
        while True:
            is_last = has_ended()  # asked before the calls are, so that none is missed
            ready = calls.select(_POLL_SECONDS)
            if is_last and not ready and len(calls.get_map()) == 1:
                return
            for caller in {key.data for key in calls.get_map().values() if key.data}:
                caller.server.queue.look()
            for key, _ in ready:
                caller = key.data
                if caller is None:
                    caller = _accept(listener, options, tell, log)
                    all_held.push(caller.held)
                    calls.register(caller.connection, EVENT_READ, caller)
                    calls.register(caller.end, EVENT_READ, caller)
                elif key.fd not in calls.get_map():
                    continue  # it ended in this round
                elif key.fd == caller.end or not caller.server.serve(caller.connection):
                    caller.server.queue.run()
                    calls.unregister(caller.connection)
                    calls.unregister(caller.end)
                    caller.held.close()


def _accept(
    listener: socket.socket, options: Options, tell: Callable[[str], None], log: Log
) -> _Caller:
    """Let a program in, and give it device memory."""
    with ExitStack() as held:
        connection = held.enter_context(listener.accept()[0])
        end = _end_of(connection)
        held.callback(os.close, end)
        memory = held.enter_context(arena.shared(options.memory_bytes))
        server = Server(memory, options, tell, log, lambda: not select([end], [], [], 0)[0])
        return _Caller(server, connection, held.pop_all(), end)


_CREDENTIALS = struct.Struct("3i")


def _end_of(connection: socket.socket) -> int:
    """A file that can be read once the process at the other end has ended."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process, *_ = _CREDENTIALS.unpack(raw)
    try:
        return os.pidfd_open(process)
    except ProcessLookupError:
        return os.eventfd(1)  # it has ended already: this can be read
