"""Run one function over many items in worker processes, as many at once as memory allows.

A worker serves one item after another, so what it loads (NVRTC) is loaded once. Where a worker, or
the compiler it waits for, is killed, most often for memory, the item is tried once more with no
other running. Results come back as they are ready; closing the iterator, as Ctrl-C does, ends
every worker within seconds.

Workers come from a fork server, which imports a program's main module: a script that builds needs
`if __name__ == "__main__":`, as with every use of multiprocessing.
"""

import os
import re
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import (
    connection,
    forkserver,
    get_context,
    parent_process,
    resource_tracker,
)
from multiprocessing.connection import Connection
from threading import Thread
from traceback import format_exc
from types import FrameType
from typing import Any, Generic, Protocol, TypeVar

from kernelpack.errors import KernelpackError, ToolchainError
from kernelpack.process import deaf, folder_of_sockets
from kernelpack.workers.garbage import rare_search
from kernelpack.workers.memory import available_bytes, used_bytes
from kernelpack.workers.threads import one_thread

T = TypeVar("T")
R = TypeVar("R")

JOB_BYTES = 2**30
"""What a job is taken to need until one was measured: more than those seen, of 600 MB."""

GRACE_S = 1.0
"""How long workers may clean up before they are killed."""

_KILLED = re.compile(r"was killed by (SIG\w+)")
"""How `toolchain` says that a compiler did not end by itself."""

_CONTEXT = get_context("forkserver")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Generic[R]):
    """How one item ended: its value, or the error a user can meet.

    `killed_by` names the signal that ended a first attempt, such as `SIGKILL`; else empty.
    """

    index: int
    value: R | None = None
    error: KernelpackError | None = None
    seconds: float = 0.0
    killed_by: str = ""


class Runner(Protocol):
    """Whatever applies a function to every item, in any order; a function's bug is raised."""

    def __call__(
        self, work: Callable[[T], R], items: Sequence[T], jobs: int, /
    ) -> Iterator[Finished[R]]:
        """One `Finished` an item, as each ends; `jobs` is the most to run at once."""
        ...


def run_here(work: Callable[[T], R], items: Sequence[T], _jobs: int) -> Iterator[Finished[R]]:
    """The simple runner: one item after another, in this process."""
    for index, item in enumerate(items):
        start = time.monotonic()
        try:
            value, error = work(item), None
        except KernelpackError as caught:
            value, error = None, caught
        yield Finished(index=index, value=value, error=error, seconds=time.monotonic() - start)


def run_workers(
    work: Callable[[T], R], items: Sequence[T], jobs: int, available: int | None = None
) -> Iterator[Finished[R]]:
    """The runner for many cores.

    Args:
        work: a function of a module, importable by a worker.
        items: values that can be pickled.
        jobs: the most workers to run at once.
        available: bytes of memory that all workers may use; what the machine has left if None.

    """
    if not items:
        return
    _start_server(work)
    with ExitStack() as stack:
        with deaf(signal.SIGTERM):  # between making it and knowing it the folder would be left
            scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="kernelpack-"))
        limit = available_bytes() if available is None else available
        pool = stack.enter_context(closing(_Pool(work, items, jobs, limit, scratch)))
        yield from pool.results()


def _start_server(work: Callable[[T], R]) -> None:
    """Start the fork server, deaf to Ctrl-C as all that comes from it: we decide what it means.

    It imports what the work is in once, for all workers.
    """
    _CONTEXT.set_forkserver_preload(["__main__", _module(work)])
    resource_tracker.ensure_running()  # which, started by the server, would lift the mask
    folder, usual = folder_of_sockets(), tempfile.tempdir
    try:
        tempfile.tempdir = folder  # its socket lies among the temporary files
        with deaf(), one_thread():
            forkserver.ensure_running()
    except OSError as error:
        raise ToolchainError(
            f"workers cannot be started there ({error.strerror or error})",
            where=folder,
            hint=f"name a shorter folder than its {len(folder)} characters in TMPDIR",
        ) from error
    finally:
        tempfile.tempdir = usual


def _module(work: Callable[[T], R]) -> str:
    """The module of a function, or of the one that a `partial` is of."""
    function: Callable[..., object] = work.func if isinstance(work, partial) else work
    return function.__module__


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reply(Generic[R]):
    """What a worker says of an item; `bug` is the traceback of anything but a user's error."""

    value: R | None = None
    error: KernelpackError | None = None
    bug: str = ""
    used_bytes: int = 0


class _Worker:
    """A process, the pipe to it, and the item it works on."""

    def __init__(self, work: Callable[[Any], Any], scratch: str) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(theirs, work, scratch), daemon=True)
        with deaf(signal.SIGTERM):  # one that got half of its orders would show a trace
            self._process.start()
        theirs.close()
        self.index = -1
        self.start = 0.0

    def give(self, index: int, item: object) -> bool:
        """Hand over an item; False if the worker is gone."""
        self.index, self.start = index, time.monotonic()
        with suppress(OSError):
            self.connection.send(item)
            return True
        return False

    def ask_to_end(self) -> None:
        self.connection.close()
        self._process.terminate()

    def end(self, deadline: float) -> int:
        """Wait for the end, by force after the deadline; the exit code, negative for a signal."""
        self._process.join(max(0.0, deadline - time.monotonic()))
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        code = self._process.exitcode or 0
        self._process.close()
        return code


class _Pool(Generic[T, R]):
    """Workers, what is left to do, and the memory a job was seen to use."""

    def __init__(
        self,
        work: Callable[[T], R],
        items: Sequence[T],
        jobs: int,
        available: int,
        scratch: str,
    ) -> None:
        self._work, self._items, self._scratch = work, items, scratch
        self._jobs = jobs
        self._available = available
        self._job_bytes = 0
        self._queue = deque(range(len(items)))
        self._alone: deque[int] = deque()
        self._killed: dict[int, str] = {}
        self._busy: dict[Connection, _Worker] = {}
        self._idle: list[_Worker] = []

    def results(self) -> Iterator[Finished[R]]:
        while self._queue or self._alone or self._busy:
            self._admit()
            for ready in connection.wait(list(self._busy)):
                assert isinstance(ready, Connection)
                worker = self._busy.pop(ready)
                if (finished := self._collect(worker)) is not None:
                    yield finished

    def close(self) -> None:
        """End every worker, by force where it does not end by itself."""
        workers = [*self._idle, *self._busy.values()]
        for worker in workers:
            worker.ask_to_end()
        deadline = time.monotonic() + GRACE_S
        for worker in workers:
            worker.end(deadline)

    def _admit(self) -> None:
        fits = self._available // (self._job_bytes or JOB_BYTES)
        while self._queue and len(self._busy) < min(self._jobs, max(1, fits)):
            self._start(self._queue.popleft())
        if self._alone and not self._busy:
            self._start(self._alone.popleft())

    def _start(self, index: int) -> None:
        worker = self._idle.pop() if self._idle else _Worker(self._work, self._scratch)
        if worker.give(index, self._items[index]):
            self._busy[worker.connection] = worker
        else:  # it died while it was idle
            worker.ask_to_end()
            worker.end(time.monotonic() + GRACE_S)
            self._start(index)

    def _collect(self, worker: _Worker) -> Finished[R] | None:
        """The outcome of an item; None if it will be tried again."""
        try:
            reply: _Reply[R] = worker.connection.recv()
        except (EOFError, ConnectionResetError):
            reply = _Reply(error=_lost(worker))
        else:
            self._idle.append(worker)
        self._job_bytes = max(self._job_bytes, reply.used_bytes)
        if reply.bug:
            raise RuntimeError(f"a worker failed in a way nobody foresaw:\n{reply.bug}")
        if self._tries_again(worker.index, reply.error):
            return None
        return Finished(
            index=worker.index,
            value=reply.value,
            error=reply.error,
            seconds=time.monotonic() - worker.start,
            killed_by=self._killed.get(worker.index, ""),
        )

    def _tries_again(self, index: int, error: KernelpackError | None) -> bool:
        killed = _KILLED.search(error.what) if error else None
        if not killed or index in self._killed:
            return False
        self._killed[index] = killed[1]
        self._alone.append(index)
        return True


def _lost(worker: _Worker) -> KernelpackError:
    """The error of a worker that ended before it answered."""
    worker.connection.close()
    code = worker.end(time.monotonic() + GRACE_S)
    if code >= 0:
        raise RuntimeError(f"a worker left with exit code {code}; see its message above")
    return ToolchainError(
        f"the compiling process was killed by {signal.Signals(-code).name}",
        hint="SIGKILL mostly means that memory ran out: build with fewer jobs",
    )


def _serve(inbox: Connection, work: Callable[[Any], Any], scratch: str) -> None:
    """A worker's life: items in, replies out, until the other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    signal.signal(signal.SIGTERM, _leave)
    Thread(target=_leave_with_parent, daemon=True).start()
    tempfile.tempdir = scratch
    with inbox, rare_search(), suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            inbox.send(_attempt(work, inbox.recv()))


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """Unwind, so that what is half done is cleaned up and a running compiler is killed."""
    sys.exit(128 + signal.SIGTERM)


def _leave_with_parent() -> None:
    """End with the process that builds, also where that was killed and could send nothing."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _attempt(work: Callable[[T], R], item: T) -> _Reply[R]:
    try:
        return _Reply(value=work(item), used_bytes=used_bytes())
    except KernelpackError as error:
        return _Reply(error=error, used_bytes=used_bytes())
    except Exception:  # noqa: BLE001 - the parent gets it in full and raises it
        return _Reply(bug=format_exc())
