"""The one subprocess: run a command to its end, keep what it wrote, leave nothing running.

A command is a sequence of words, never a shell line. It gets its own process group, so that a
timeout or a Ctrl-C ends the children it started too, and only the environment it is given:
`NVCC_APPEND_FLAGS` and its kin change nothing here.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import current_thread, main_thread
from typing import Any

from kernelpack.errors import ToolchainError

ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}
"""A command's environment by default: the system's own programs, messages in English."""

MOST_OF_A_FOLDER = 64
"""Bytes of a folder's name that leave room, of the 107 of a socket's path, for names below it."""
SHORT_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - what is made there is ours alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a command ended, and what it wrote; a negative `returncode` is the signal that ended it.

    Bytes that are not UTF-8 are kept as backslash escapes.
    """

    command: tuple[str, ...]
    returncode: int
    stdout: str = field(repr=False)
    stderr: str = field(repr=False)

    @property
    def killed_by(self) -> str:
        """The name of the signal that ended the command, such as `SIGKILL`; else empty."""
        return signal.Signals(-self.returncode).name if self.returncode < 0 else ""


_running = set[subprocess.Popen[bytes]]()
"""What `run` waits for, in any thread."""


def end_running() -> None:
    """Kill what other threads run, since this process ends: a Ctrl-C reaches the main one alone."""
    for process in tuple(_running):
        _kill(process)


def run(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
) -> Completed:
    """Run a command and wait for it.

    Args:
        command: the program and its arguments.
        cwd: the folder it runs in; this process's own if not given.
        stdin: text for its standard input; empty if not given.
        timeout: seconds after which it is killed.
        env: all of its environment; `ENVIRONMENT` if not given.

    Raises:
        ToolchainError: the program is missing or cannot be executed, or ran past the timeout.

    """
    process = _start(command, cwd, ENVIRONMENT if env is None else env)
    _running.add(process)
    try:
        stdout, stderr = process.communicate((stdin or "").encode(), timeout)
    except subprocess.TimeoutExpired:
        raise ToolchainError(f"ran longer than {timeout:g} s", where=command[0]) from None
    finally:
        _running.discard(process)
        _end(process)
    return Completed(
        command=tuple(command),
        returncode=process.returncode,
        stdout=stdout.decode(errors="backslashreplace"),
        stderr=stderr.decode(errors="backslashreplace"),
    )


@contextmanager
def beside(
    command: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A program that runs beside us, on our own stdin, stdout and stderr, and with our Ctrl-C.

    Args:
        command: the program and its arguments.
        env: all of its environment.
        cwd: the folder it runs in; this process's own if not given.

    Raises:
        ToolchainError: the program is missing or cannot be executed.

    """
    process = _open(command, cwd=cwd, env=env)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def folder_of_sockets() -> str:
    """A folder for sockets: that of temporary files, or another where their paths would not fit."""
    given = tempfile.gettempdir()
    if len(os.fsencode(given)) <= MOST_OF_A_FOLDER:
        return given
    return next((folder for folder in SHORT_FOLDERS if os.access(folder, os.W_OK)), given)


@contextmanager
def orderly() -> Iterator[None]:
    """A SIGTERM ends us as an exit does: programs that run beside us end, our folders go."""
    if current_thread() is not main_thread():  # where no signal is heard
        yield
        return
    before = signal.signal(signal.SIGTERM, _end_us)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        _asked.clear()


_asked: list[int] = []
"""The signal by which we were asked to end, if we were."""


def _end_us(number: int, _frame: object) -> None:
    _asked[:] = [number]
    obey()


def obey() -> None:
    """End, if a SIGTERM came whose exit was lost: in a callback, where Python drops it."""
    if _asked:
        sys.exit(128 + _asked[0])


@contextmanager
def deaf(*others: signal.Signals) -> Iterator[None]:
    """Hear a Ctrl-C, and other signals, only afterwards; a process started in between never does.

    An import that is interrupted may end in an error of its own (numpy's does), and a server that
    shares our terminal would show a trace.
    """
    deferred = {signal.SIGINT, *others}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, deferred)
    missed: list[int] = []
    usual = _take_over(deferred, lambda number, _frame: missed.append(number))
    try:
        yield
    finally:
        for each, handler in usual.items():
            signal.signal(each, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in missed:
            signal.raise_signal(number)


@contextmanager
def noted() -> Iterator[list[int]]:
    """Note a Ctrl-C and a SIGTERM, for code that no exception may leave; obey them afterwards.

    A callback from C is such code: what is raised at its first line is printed, and forgotten.
    """
    heard: list[int] = []
    obeyed = [s for s in (signal.SIGINT, signal.SIGTERM) if callable(signal.getsignal(s))]
    usual = _take_over(obeyed, lambda number, _frame: heard.append(number))
    try:
        yield heard
    finally:
        for each, handler in usual.items():
            signal.signal(each, handler)
        for number in heard:
            signal.raise_signal(number)


def _take_over(
    signals: Iterable[signal.Signals], handler: Callable[[int, object], None]
) -> dict[int, Any]:
    """Hear signals instead of their handlers, which are returned.

    A mask is a thread's own: another one, such as those of numpy's BLAS, hears what is sent to the
    process, and Python then runs the handler in the main thread all the same.
    """
    if current_thread() is not main_thread():
        return {}
    known = [each for each in signals if signal.getsignal(each) is not None]
    return {each: signal.signal(each, handler) for each in known}


def _start(
    command: Sequence[str], cwd: Path | None, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    return _open(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def _open(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401
    """Start a command: a list of words, no shell."""
    try:
        return subprocess.Popen(command, **options)  # noqa: S603 - a list of words, no shell
    except FileNotFoundError as error:
        raise _missing(command[0], error) from error
    except OSError as error:
        raise ToolchainError(
            f"cannot be executed: {error.strerror}",
            where=command[0],
            hint="its file must be executable and built for this machine",
        ) from error


def _missing(program: str, error: FileNotFoundError) -> ToolchainError:
    if error.filename != program:
        return ToolchainError(f"no such folder to run in: {error.filename}", where=program)
    return ToolchainError("no such program", where=program, hint="is it installed?")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a command's process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the command's process group, and collect the command itself."""
    _kill(process)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe and not pipe.closed:
            pipe.close()
