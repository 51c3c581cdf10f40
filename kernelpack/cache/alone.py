"""One process at a time in a folder of the cache."""

from contextlib import AbstractContextManager
from pathlib import Path

from filelock import FileLock


def alone(folder: Path) -> AbstractContextManager[object]:
    """Waits until no other process is in the folder, which must exist."""
    return FileLock(folder / "lock")
