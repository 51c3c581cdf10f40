"""A folder of a compiler's own for the files it reads and writes; gone afterwards."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kernelpack.errors import ToolchainError


@contextmanager
def scratch() -> Iterator[Path]:
    """An empty folder.

    Raises:
        ToolchainError: it, or a file in it, cannot be made, read or written: most often the disk
            of temporary files is full.

    """
    try:
        with tempfile.TemporaryDirectory(prefix="kernelpack-") as name:
            yield Path(name)
    except OSError as error:
        raise ToolchainError(
            f"temporary files cannot be used ({error.strerror or error})",
            where=str(error.filename or ""),
            hint="free some space there, or name another folder in TMPDIR",
        ) from error
