"""A folder of a compiler's own for the files it reads and writes; gone afterwards.

On a full disk ptxas 13.4 exits with 0 and leaves a file cut short, and nvcc blames the host
compiler; so whether there was room is asked, whatever a compiler said.
"""

import errno
import os
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
            try:
                yield Path(name)
            finally:
                _check_room(name)
    except OSError as error:
        raise ToolchainError(
            f"temporary files cannot be used ({error.strerror or error})",
            where=str(error.filename or ""),
            hint="free some space there, or name another folder in TMPDIR",
        ) from error


def _check_room(folder: str) -> None:
    disk = os.statvfs(folder)
    if disk.f_blocks and not disk.f_bavail:  # some file systems count no blocks at all
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder)
