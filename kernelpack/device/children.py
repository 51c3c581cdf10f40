"""Child processes that share a GPU: batches out, outcomes in, as they come.

Making inputs and oracles takes longer than the kernels do, so there are as many children as cores,
and the GPU takes turns among them. A child that ends in the middle of a run, or keeps the GPU for
longer than the limit, gives that run its fault; the rest of its batch goes to a fresh child. A
batch that a child died over before its kernels ran, most often for memory, is tried once more with
no other running; so is a run for which the GPU had too little memory left.
"""

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import connection, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Protocol

from kernelpack.device.batch import Batch, Bug, Free, Judged, Message, OffGpu, OnGpu, Short, Task
from kernelpack.device.child import Connect, serve
from kernelpack.errors import DeviceMemoryError, DriverError
from kernelpack.process import deaf
from kernelpack.spec.counted import counted
from kernelpack.verify.job import Job
from kernelpack.verify.outcome import Ended, Outcome, State
from kernelpack.workers.threads import one_thread

Serve = Callable[[Connection], None]
"""A child's work with its end of the pipe; a function of a module, or a partial of one."""

GRACE_S = 5.0
"""How long the driver may take to let go of a child that was killed."""

LOST = "ProcessEnded"
ENDING = (DriverError.__name__, LOST)
"""Errors that end a process; a variant that caused one does not run again."""

_CONTEXT = get_context("spawn")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of children.

    Attributes:
        jobs: how many there are at once.
        seconds: how long a run may keep the GPU.
        host_bytes: of the host's memory, all together.

    """

    jobs: int
    seconds: float
    host_bytes: int


class Runner(Protocol):
    """Whatever runs batches; one outcome a task, in any order."""

    def __call__(
        self, connect: Connect, batches: Sequence[Batch], limits: Limits, /
    ) -> Iterator[Outcome]:
        """The result of every task."""
        ...


def run_children(connect: Connect, batches: Sequence[Batch], limits: Limits) -> Iterator[Outcome]:
    """The runner for a real GPU; closing the iterator ends every child."""
    return spread(partial(serve, connect=connect), batches, limits)


def spread(work: Serve, batches: Sequence[Batch], limits: Limits) -> Iterator[Outcome]:
    """Children that each do `work`, and what they say of the batches."""
    pool = _Pool(work, batches, limits)
    try:
        yield from pool.outcomes()
    finally:
        pool.close()


def how_ended(process: BaseProcess) -> str:
    """How a child that is gone ended, for people."""
    process.join(GRACE_S)
    code = process.exitcode
    if code is not None and code < 0:
        return f"its process was killed by {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}"


class _Child:
    """A process, the pipe to it, its batch, what is left of that, and what the GPU does for it."""

    def __init__(self, serve: Serve) -> None:
        self.connection, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=serve, args=(theirs,), daemon=True)
        with one_thread(), deaf(signal.SIGTERM):
            self.process.start()
        theirs.close()
        self.batch: Batch | None = None
        self.left: dict[int, Task] = {}
        self.running: int | None = None
        self.deadline: float | None = None
        self.is_alone = False

    def give(self, batch: Batch, *, is_alone: bool) -> None:
        self.batch, self.left = batch, dict(enumerate(batch.tasks))
        self.running, self.deadline, self.is_alone = None, None, is_alone
        with suppress(OSError):  # it is gone, which is found out when nothing is heard of it
            self.connection.send(batch)

    def end(self) -> None:
        """Kill what is left of it."""
        self.connection.close()
        self.process.kill()
        self.process.join(GRACE_S)

    def ended(self) -> str:
        """How one that is gone ended, for people."""
        how = how_ended(self.process)
        self.end()
        return how


class _Pool:
    """Children, and the batches that are left to do."""

    def __init__(self, serve: Serve, batches: Sequence[Batch], limits: Limits) -> None:
        self._serve, self._limits = serve, limits
        self._queue, self._alone = deque(batches), deque[Batch]()
        self._busy: dict[Connection, _Child] = {}
        self._idle: list[_Child] = []
        self._faulted: dict[str, Job] = {}
        """The variants that faulted, and where first."""

    def outcomes(self) -> Iterator[Outcome]:
        while self._queue or self._alone or self._busy:
            yield from self._admit()
            for ready in connection.wait(list(self._busy), self._patience()):
                assert isinstance(ready, Connection)
                yield from self._hear(self._busy[ready])
            yield from self._end_late()

    def close(self) -> None:
        for child in (*self._idle, *self._busy.values()):
            child.end()

    def _admit(self) -> Iterator[Outcome]:
        """Give children what there is room for."""
        while self._queue and self._has_room(self._queue[0]):
            yield from self._start(self._queue.popleft(), is_alone=False)
        while self._alone and not self._queue and not self._busy:
            self._end_idle()  # each keeps a context on the GPU
            yield from self._start(self._alone.popleft(), is_alone=True)

    def _end_idle(self) -> None:
        for child in self._idle:
            child.end()
        self._idle.clear()

    def _has_room(self, batch: Batch) -> bool:
        taken = sum(child.batch.host_bytes for child in self._busy.values() if child.batch)
        fits = taken + batch.host_bytes <= self._limits.host_bytes
        return not self._busy or (len(self._busy) < self._limits.jobs and fits)

    def _start(self, batch: Batch, *, is_alone: bool) -> Iterator[Outcome]:
        """Give a batch to a child, less the variants that have faulted."""
        tasks = [task for task in batch.tasks if task.job.variant_id not in self._faulted]
        for task in batch.tasks:
            if task not in tasks:
                yield _not_run(task.job, self._faulted[task.job.variant_id])
        if tasks:
            child = self._idle.pop() if self._idle else _Child(self._serve)
            child.give(replace(batch, tasks=tuple(tasks)), is_alone=is_alone)
            self._busy[child.connection] = child

    def _patience(self) -> float | None:
        """Seconds until the first run is late; None where no run is timed."""
        deadlines = [child.deadline for child in self._busy.values() if child.deadline is not None]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _hear(self, child: _Child) -> Iterator[Outcome]:
        try:
            message: Message = child.connection.recv()
        except (EOFError, OSError):
            yield from self._lose(child, child.ended())
            return
        match message:
            case OnGpu(index):
                child.running, child.deadline = index, time.monotonic() + self._limits.seconds
            case OffGpu():
                child.running = child.deadline = None
            case Judged(index, outcome):
                yield self._judged(child, index, outcome)
            case Short(index, text):
                yield from self._short(child, child.left.pop(index), text)
            case Free(is_sound):
                self._free(child, is_sound=is_sound)
            case Bug(text):
                raise RuntimeError(f"a child failed in a way nobody foresaw:\n{text}")

    def _judged(self, child: _Child, index: int, outcome: Outcome) -> Outcome:
        del child.left[index]
        child.running = child.deadline = None
        if outcome.ended and outcome.ended.kind in ENDING:
            self._faulted.setdefault(outcome.variant_id, outcome.job)
        return outcome

    def _short(self, child: _Child, task: Task, text: str) -> Iterator[Outcome]:
        child.running = child.deadline = None
        if child.is_alone:
            yield _ended(task.job, State.UNSUPPORTED, DeviceMemoryError.__name__, text)
        elif child.batch:
            self._alone.append(replace(child.batch, tasks=(task,)))

    def _free(self, child: _Child, *, is_sound: bool) -> None:
        del self._busy[child.connection]
        if is_sound:
            self._idle.append(child)
            return
        child.end()
        self._again(child)

    def _again(self, child: _Child) -> None:
        """Put what is left of a child's batch before all others."""
        if child.left and child.batch:
            rest = replace(child.batch, tasks=tuple(child.left.values()))
            (self._alone if child.is_alone else self._queue).appendleft(rest)

    def _lose(self, child: _Child, how: str) -> Iterator[Outcome]:
        """A child is gone; the run that it was at, if it was at one, has faulted."""
        del self._busy[next(key for key, held in self._busy.items() if held is child)]
        if child.running is not None:
            outcome = _ended(child.left[child.running].job, State.FAULT, LOST, how)
            yield self._judged(child, child.running, outcome)
            self._again(child)
        elif child.is_alone:
            what = f"{how} before a kernel ran, twice: does the host have enough memory?"
            for task in child.left.values():
                yield _ended(task.job, State.UNSUPPORTED, LOST, what)
        elif child.batch:
            self._alone.append(replace(child.batch, tasks=tuple(child.left.values())))

    def _end_late(self) -> Iterator[Outcome]:
        now = time.monotonic()
        for child in list(self._busy.values()):
            if child.deadline is not None and child.deadline <= now:
                child.end()
                limit = counted(round(self._limits.seconds), "second")
                yield from self._lose(child, f"the GPU was not done with it after {limit}")


def _ended(job: Job, state: State, kind: str, text: str) -> Outcome:
    return Outcome(job=job, state=state, ended=Ended(kind=kind, text=text))


def _not_run(job: Job, first: Job) -> Outcome:
    text = f"not run after the variant's fault on {first.case.name}"
    return _ended(job, State.UNSUPPORTED, "NotRun", text)
