"""stdin, stdout and stderr as this process was given them: closed, full, or narrow."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kernelpack.errors import KernelpackError


def settle() -> None:
    """Make both streams usable, before anything is written or opened.

    A stream that is closed (`>&-`) leads nowhere from here on; otherwise the next file to be opened
    would take its number. Characters that a stream's encoding lacks become backslash escapes.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest that is free
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115 - until the end
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115 - until the end
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


@contextmanager
def stdout_is_ours() -> Iterator[None]:
    """The output of programs that we start goes to stderr: stdout is for data."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def finish() -> None:
    """Write what stdout still holds.

    Raises:
        BrokenPipeError: its reader has left.
        KernelpackError: it cannot be written, as on a full disk.

    """
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise KernelpackError(str(error.strerror), where="stdout") from error


def drop() -> None:
    """Forget what stdout still holds: it cannot be written, and nobody would read it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
