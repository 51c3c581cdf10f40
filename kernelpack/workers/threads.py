"""One thread a process: where there is a process a core, more threads wait for each other."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

_THREADS = "OMP_NUM_THREADS"
"""The variable that every BLAS of numpy reads when it is loaded."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Let a process that starts meanwhile multiply in one thread."""
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_THREADS]
        if before is not None:
            os.environ[_THREADS] = before
