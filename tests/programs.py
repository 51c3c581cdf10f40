"""Programs that tests start and end: nothing of them outlives the test, whatever it found."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any


def hear_interrupts() -> None:
    """A shell that runs the tests in the background has its children ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def started(
    command: Sequence[str | os.PathLike[str]], **options: Any
) -> Iterator["subprocess.Popen[str]"]:
    """A program in a session of its own, which is killed with all that it started at the end."""
    with subprocess.Popen(
        command, text=True, start_new_session=True, preexec_fn=hear_interrupts, **options
    ) as program:
        try:
            yield program
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)
