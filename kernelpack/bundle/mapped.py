"""The one place that opens a bundle file: a regular file, mapped for reading."""

import mmap
import os
import stat
from pathlib import Path

from kernelpack.bundle.format import MAGIC
from kernelpack.bundle.mistaken import HEAD_BYTES, mistaken
from kernelpack.errors import BundleError


def map_file(path: Path) -> memoryview:
    """The bytes of a file that starts as a bundle does.

    Raises:
        BundleError: there is no such file, it cannot be read, or it is something else.

    """
    try:
        data = _map(path)
    except (OSError, ValueError) as error:
        what = f"cannot be read: {getattr(error, 'strerror', None) or error}"
        raise BundleError(what, where=str(path), hint="give the path of a `.kpk` file") from error
    if data[: len(MAGIC)] != MAGIC:
        what, hint = mistaken(bytes(data[:HEAD_BYTES]))
        raise BundleError(what, where=str(path), hint=hint)
    return data


def _map(path: Path) -> memoryview:
    """The map outlives its descriptor and ends with the last view of it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BundleError("not a regular file", where=str(path), hint="give a `.kpk` file")
        if not status.st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(descriptor, status.st_size, access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)
