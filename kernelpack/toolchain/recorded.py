"""Whether the files of a wheel are those that its RECORD names, byte for byte.

A key of the cache holds the digests of RECORD, so a compiler that was replaced by other bytes of
the same length must not pass for the one that was recorded. To hash a toolchain of 500 MB takes a
second: what was hashed is remembered, by each file's inode, size and both of its times.
"""

import hashlib
import json
import os
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from kernelpack.cache.location import default_root
from kernelpack.errors import CacheError
from kernelpack.spec.artifact import digest
from kernelpack.toolchain.wheels import Wheel

Stamp = list[int]
Seen = Mapping[str, tuple[Stamp, str]]
"""By path: the file's stamp when it was hashed, and its digest as RECORD writes it."""


def memory() -> Path | None:
    """Where digests are remembered: the user's own cache; None for one who has no home."""
    try:
        return default_root() / "wheels"
    except CacheError:
        return None


def other_than_recorded(wheel: Wheel) -> Path | None:
    """The first file whose bytes are not those of the record; None where all are. All are there."""
    folder = memory()
    kept = folder and folder / f"{digest(f'{wheel.root} {wheel.name} {wheel.version}')}.json"
    before = _read(kept) if kept else {}
    seen = {path: _look(wheel.root / path, sha, before.get(path)) for path, sha, _ in wheel.record}
    if kept and seen != before:
        _write(kept, seen)
    bad = (wheel.root / path for path, sha, _ in wheel.record if seen[path][1] != sha)
    return next(bad, None)


def _look(file: Path, recorded: str, before: tuple[Stamp, str] | None) -> tuple[Stamp, str]:
    """The stamp and digest of a file, which is read only where it changed since."""
    status = file.stat()
    stamp = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    algorithm = recorded.partition("=")[0]
    if before and before[0] == stamp and before[1].startswith(f"{algorithm}="):
        return stamp, before[1]
    with file.open("rb") as opened:
        told = hashlib.file_digest(opened, algorithm).digest()
    return stamp, f"{algorithm}={urlsafe_b64encode(told).rstrip(b'=').decode()}"


def _read(kept: Path) -> Seen:
    """The last state; nothing where that cannot be read."""
    try:
        found = json.loads(kept.read_text(encoding="utf-8"))
        return {path: (list(map(int, stamp)), str(sha)) for path, (stamp, sha) in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(kept: Path, seen: Seen) -> None:
    """Remember; where that cannot be done everything is hashed again next time."""
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile("w", dir=kept.parent, delete=False) as file:
            json.dump(seen, file)
        os.replace(file.name, kept)  # noqa: PTH105 - a name, not a Path
