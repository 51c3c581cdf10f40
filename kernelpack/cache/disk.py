"""The disk and the clock, as the store needs them.

`Disk` is what the store calls; tests hand it one that answers as NFS and full disks do.
"""

import os
import time
from pathlib import Path


class Disk:
    """Plain calls on files; each raises the OSError that the system gave."""

    def read(self, path: Path) -> bytes:
        """The whole file."""
        return path.read_bytes()

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
