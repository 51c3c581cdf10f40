"""The disk and the clock, as the store needs them.

`Disk` is what the store calls; tests hand it one that answers as NFS and full disks do.
"""

import errno
import os
import time
from pathlib import Path
from stat import S_ISREG

_PIECE = 1 << 24


class NoFileError(OSError):
    """A folder, a FIFO, a device: it is there, and it is not a file."""


class Disk:
    """Plain calls on files; each raises the OSError that the system gave."""

    def read(self, path: Path) -> bytes:
        """The whole file; NoFileError where it is not a regular file, which may wait for ever."""
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not S_ISREG(os.fstat(opened).st_mode):
                raise NoFileError(errno.EINVAL, "it is not a file", str(path))
            return b"".join(iter(lambda: os.read(opened, _PIECE), b""))
        finally:
            os.close(opened)

    def write(self, path: Path, data: bytes) -> None:
        """Create a file and return when its bytes are on the medium."""
        with path.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name; the name must be new."""
        os.link(source, target)

    def rename(self, source: Path, target: Path) -> None:
        """Move a file over whatever has the new name."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a name, if it is there."""
        path.unlink(missing_ok=True)

    def now(self) -> float:
        """Seconds on a clock that never goes back."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)
