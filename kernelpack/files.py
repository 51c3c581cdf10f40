"""Files written whole or not at all: bundles, reports, pictures, wheels.

A temporary file beside the path is flushed to the medium and renamed over the old one, which stays
valid for those who have it open. The cache has a writer of its own, for what networks do to files.
"""

import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path

from kernelpack.errors import KernelpackError


def publish(path: Path, data: bytes) -> None:
    """Put a file at `path`, whole or not at all.

    Raises:
        KernelpackError: the system refused; says why.

    """
    publish_all([(path, data)])


def publish_all(files: Iterable[tuple[Path, bytes]]) -> tuple[Path, ...]:
    """Put files that belong together; none is replaced before all are on the disk.

    Returns:
        Their paths.

    Raises:
        KernelpackError: the system refused; says which file, and why.

    """
    staged: dict[Path, Path] = {}
    path = Path()
    try:
        for path, data in files:
            _stage(path, data, staged)
        for path, temporary in staged.items():
            temporary.replace(path)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        hint = "give a path in a writable folder with room for it"
        raise KernelpackError(what, where=str(path), hint=hint) from error
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)
    return tuple(staged)


def _stage(path: Path, data: bytes, staged: dict[Path, Path]) -> None:
    """Write beside `path`, under its old mode, or that of a new file."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    staged[path] = temporary
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if path.is_file():
        temporary.chmod(stat.S_IMODE(path.stat().st_mode))
