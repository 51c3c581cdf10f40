"""Work on a GPU in a process of its own, which one of its kernels may end.

A kernel that faults leaves its process without a usable GPU, and one that hangs never comes back.
So the process that a person started runs none: a child does the work and says which kernel it is
at. One that the child ends with is lost, and the work is done again without it.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from traceback import format_exc
from typing import Any, Protocol, TypeVar

from kernelpack.device.batch import Bug
from kernelpack.device.children import how_ended
from kernelpack.errors import DeviceMemoryError, DriverError, KernelpackError
from kernelpack.process import deaf
from kernelpack.spec.counted import counted

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
At = Callable[[str], None]
"""Says which kernel the GPU works on from now on; empty: none."""

LIMIT_S = 60.0
"""How long the GPU may work on one kernel before it says anything; then it has hung."""

_CONTEXT = get_context("spawn")


class Work(Protocol[T_co]):
    """A child's work; a function of a module, or a partial of one."""

    def __call__(self, at: At, without: frozenset[str], /) -> Iterator[T_co]:
        """The result, without some kernels."""
        ...


Runner = Callable[[Work[T], frozenset[str], float], Iterator[T]]
"""Whatever does work: a child, or a test in this process."""


class LostError(DriverError):
    """A kernel ended the process that ran it, or kept the GPU for longer than the limit."""


def nowhere(_name: str) -> None:
    """Where nobody watches."""


def surviving(
    work: Work[T], tell: Callable[[LostError], None], run: Runner[T], limit_s: float = LIMIT_S
) -> Iterator[T]:
    """The results of work, less the kernels that are lost; nothing is reported twice.

    Raises:
        LostError: what ended the process was none of its kernels, or one that was left out.

    """
    lost: set[str] = set()
    told = 0
    while True:
        try:
            for number, value in enumerate(run(work, frozenset(lost), limit_s)):
                if number >= told:
                    told += 1
                    yield value
        except LostError as error:
            if error.where in {"", *lost}:
                raise
            lost.add(error.where)
            tell(error)
        else:
            return


def apart(work: Work[T], without: frozenset[str], limit_s: float) -> Iterator[T]:
    """Do work in a child; closing the iterator ends it.

    Raises:
        LostError: the child ended; `where` is the kernel that it was at.
        KernelpackError: what the work itself raised.

    """
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_serve, args=(theirs, work, without), daemon=True)
    with deaf(signal.SIGTERM):
        process.start()
    theirs.close()
    try:
        yield from _heard(ours, process, limit_s)
    finally:
        ours.close()
        process.kill()
        process.join()


@dataclass(frozen=True, slots=True)
class _At:
    name: str


@dataclass(frozen=True, slots=True)
class _Told:
    value: Any


@dataclass(frozen=True, slots=True)
class _Failed:
    error: KernelpackError


@dataclass(frozen=True, slots=True)
class _Done:
    pass


def _heard(inbox: Connection, process: BaseProcess, limit_s: float) -> Iterator[Any]:
    at = ""
    while True:
        if not inbox.poll(limit_s if at else None):
            limit = counted(round(limit_s), "second")
            raise LostError(f"the GPU was not done with it after {limit}", where=at)
        try:
            message = inbox.recv()
        except (EOFError, OSError):
            raise LostError(how_ended(process), where=at) from None
        match message:
            case _At(name):
                at = name
            case _Told(value):
                yield value
            case _Done():
                return
            case _Failed(DriverError() as error) if at and not isinstance(error, DeviceMemoryError):
                raise LostError(str(error), where=at)
            case _Failed(error):
                raise error
            case Bug(text):
                raise RuntimeError(f"a child failed in a way nobody foresaw:\n{text}")


def _serve(outbox: Connection, work: Work[T], without: frozenset[str]) -> None:
    """A child's life."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what Ctrl-C means
    with outbox, suppress(BrokenPipeError, ConnectionResetError):
        outbox.send(_outcome(outbox, work, without))


def _outcome(outbox: Connection, work: Work[T], without: frozenset[str]) -> _Failed | Bug | _Done:
    try:
        for value in work(lambda name: outbox.send(_At(name)), without):
            outbox.send(_Told(value))
    except KernelpackError as error:
        return _Failed(error)
    except Exception:  # noqa: BLE001 - the parent gets it in full and raises it
        return Bug(format_exc())
    return _Done()
