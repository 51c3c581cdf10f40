"""Functions for workers to run: importable by name, with what they do in their argument."""

import gc
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelpack.errors import CompileError, ToolchainError


def double(number: int) -> int:
    return 2 * number


def variable(name: str) -> str | None:
    return os.environ.get(name)


def search_for_cycles_after(_: object) -> int:
    return gc.get_threshold()[0]


def same(item: object) -> object:
    """What is already as it should be."""
    return item


def refuse_odd(number: int) -> int:
    if number % 2:
        raise CompileError(f"{number} is odd", where="here")
    return number


def divide_by(number: int) -> float:
    return 1 / number


def hears_interrupts(_: object) -> bool:
    """Whether the fork server that this worker came from would hear a Ctrl-C."""
    return signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def die(log: Path) -> str:
    """Be killed, each time."""
    _note(log)
    os.kill(os.getpid(), signal.SIGKILL)
    return "never"


def die_once(task: tuple[Path, bool]) -> list[str]:
    """Be killed the first time, if asked; how many ran at the end of each life is logged."""
    log, dies = task
    with _running(log):
        time.sleep(0.1)
        if dies and not (log / "died").exists():
            (log / "died").touch()
            for path in log.glob("running.*"):
                path.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return sorted(path.name for path in log.glob("running.*"))


def lose_compiler_once(log: Path) -> str:
    """Report once that the compiler was killed, as `toolchain` does."""
    if not (log / "lost").exists():
        (log / "lost").touch()
        raise ToolchainError("ptxas was killed by SIGKILL")
    return "compiled"


def count_running(log: Path) -> int:
    """How many of these run at the same time."""
    with _running(log):
        time.sleep(0.1)
        return len(list(log.glob("running.*")))


def scratch(_: int) -> str:
    return tempfile.gettempdir()


def linger(log: Path) -> None:
    """Leave a temporary folder behind unless unwound, with a child that runs for a minute."""
    with tempfile.TemporaryDirectory(), subprocess.Popen(["sleep", "60"]) as child:
        try:
            (log / f"worker.{os.getpid()}").touch()
            time.sleep(60)
        finally:
            child.kill()


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for something that another process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@contextmanager
def _running(log: Path) -> Iterator[None]:
    """A file that is there while this runs."""
    file = log / f"running.{os.getpid()}"
    file.touch()
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def _note(log: Path) -> None:
    (log / f"call.{os.getpid()}").touch()
