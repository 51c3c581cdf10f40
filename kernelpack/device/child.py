"""A child's life: batches in, messages out. It is the process that a kernel's fault ends.

A kernel that faults leaves its process without a usable GPU, and one that hangs never comes back.
So no kernel runs in the process that a person started.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from traceback import format_exc

from kernelpack.bundle.reader import open_entries
from kernelpack.cache.store import Store
from kernelpack.device.batch import Batch, Bug, Free, Judged, Message, OffGpu, OnGpu, Short, Task
from kernelpack.device.prove import prove
from kernelpack.errors import DeviceMemoryError, DriverError, KernelpackError
from kernelpack.kernels.definition import Definition
from kernelpack.kernels.registry import known
from kernelpack.load.library import Library
from kernelpack.load.load import load
from kernelpack.ops.trial import Trial
from kernelpack.runtime.driver import Driver
from kernelpack.verify.job import Job
from kernelpack.verify.outcome import Ended, Outcome, State
from kernelpack.verify.record import encode

Say = Callable[[Message], None]
Connect = Callable[[], Driver]

KEPT = (State.RIGHT, State.FOUND, State.WRONG)
"""What the cache keeps: not a fault, for it may have been the machine's."""


def serve(inbox: Connection, connect: Connect) -> None:
    """Do batches until the other end closes, or this process is of no more use."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    with inbox, suppress(EOFError, BrokenPipeError, ConnectionResetError):
        is_sound = True
        while is_sound:
            is_sound = _attempt(inbox.recv(), inbox.send, connect)


def _attempt(batch: Batch, say: Say, connect: Connect) -> bool:
    """Do a batch; whether this process can do another."""
    try:
        is_sound = do(batch, say, connect)
    except MemoryError:  # of the host: as if the system had killed us for it
        return False
    except Exception:  # noqa: BLE001 - the parent gets it in full and raises it
        say(Bug(format_exc()))
        return False
    say(Free(is_sound))
    return is_sound


def do(batch: Batch, say: Say, connect: Connect) -> bool:
    """Run every task of a batch and send its outcome; False after a fault, which ends it."""
    try:
        library = _library(batch.bundle, batch.root, connect)
        trial = Trial(library, _definition(batch.kernels, batch.kernel), batch.case, batch.device)
    except DeviceMemoryError as error:
        for index in range(len(batch.tasks)):
            say(Short(index, str(error)))
        return True
    except KernelpackError as error:
        for index, task in enumerate(batch.tasks):
            say(Judged(index, fault(task.job, error)))
        return not isinstance(error, DriverError)
    return all(_one(index, task, batch, trial, say) for index, task in enumerate(batch.tasks))


def _one(index: int, task: Task, batch: Batch, trial: Trial, say: Say) -> bool:
    """Run a task; False where the process is of no more use."""
    variant = trial.library.bundle.holding(task.job.variant_id).variant(task.job.variant_id)
    try:
        outcome = prove(task.job, trial, variant, batch.repeats, _busy(index, say))
    except DeviceMemoryError as error:
        say(Short(index, str(error)))
        return True
    except KernelpackError as error:
        say(Judged(index, fault(task.job, error)))
        return not isinstance(error, DriverError)
    if outcome.state in KEPT:
        Store(batch.cache).put(task.key, encode(outcome))
    say(Judged(index, outcome))
    return True


@contextmanager
def _busy(index: int, say: Say) -> Iterator[None]:
    say(OnGpu(index))
    yield
    say(OffGpu())


def fault(job: Job, error: KernelpackError) -> Outcome:
    """The outcome of a run that an error ended."""
    ended = Ended(kind=type(error).__name__, text=str(error))
    return Outcome(job=job, state=State.FAULT, ended=ended)


@lru_cache(maxsize=16)
def _definition(kernels: tuple[Path, ...], stem: str) -> Definition:
    return known(kernels).find(stem)


@lru_cache(maxsize=1)
def _library(path: Path, root: str, connect: Connect) -> Library:
    if open_entries(path).root != root:
        raise KernelpackError("the bundle changed while it was verified", where=str(path))
    return load(path, driver=connect())
