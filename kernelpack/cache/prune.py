"""The contents of a cache, part by part, and what of it may go.

Nothing here is lost: what is removed is made again when it is asked for. Whoever reads a file that
goes at the same moment has it to the end, or finds that it is absent.
"""

import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kernelpack.cache.store import ABANDONED_S
from kernelpack.errors import CacheError

PARTS = {
    "objects": "what was compiled, disassembled and emulated",
    "notes": "what builds remember of the last one",
    "verified": "bundles that `verify` made of manifests",
    "emulator": "the emulator's engine, compiled: always in the user's own folder",
    "standin": "the libraries that `emulate` runs programs with",
    "wheels": "digests of the compilers' files",
    "locks": "who makes what at the moment",
    "temporary": "what is being written",
    "quarantine": "what was damaged",
}
"""The folders of a cache, and what each is for."""

_ALWAYS = ("quarantine",)  # of no use to a build, whatever its age


@dataclass(frozen=True, slots=True)
class Held:
    """Some files: how many, and their bytes."""

    files: int = 0
    bytes: int = 0

    def __add__(self, other: "Held") -> "Held":
        return Held(self.files + other.files, self.bytes + other.bytes)


def held(root: Path) -> dict[str, Held]:
    """The contents of each part of a cache; of missing parts too."""
    return {part: sum((size for _, size in _files(root / part)), Held()) for part in PARTS}


def prune(root: Path, older_s: float, now: float) -> Held:
    """Remove what nobody has used for some time, and everything that was damaged.

    A file was used when it was last read or written, as far as the disk notes that: one that is
    mounted without times of access knows of writing alone.

    Args:
        root: the cache's folder.
        older_s: seconds; 0 removes all but what is being written.
        now: the time, as the disk counts it.

    Raises:
        CacheError: the disk does not let us remove a file; names the first.

    """
    removed, refused = Held(), list[OSError]()
    for part in PARTS:
        least = 0.0 if part in _ALWAYS else older_s
        if part == "temporary":
            least = max(least, ABANDONED_S)
        for path, size in _files(root / part):
            try:
                if now - _used(path) >= least:
                    path.unlink()
                    removed += size
            except FileNotFoundError:
                continue  # another one was faster
            except OSError as error:
                refused.append(error)
        _remove_empty(root / part)
    if refused:
        first = refused[0]
        what = f"cannot be removed ({first.strerror}), and {len(refused) - 1} more"
        raise CacheError(what, where=str(first.filename), hint="is it another user's cache?")
    return removed


def _used(path: Path) -> float:
    found = path.lstat()
    return max(found.st_atime, found.st_mtime)


def _files(folder: Path) -> Iterator[tuple[Path, Held]]:
    """Every file below a folder, links as what they are; none where it is not there, or is one."""
    if folder.is_symlink():
        return
    with suppress(FileNotFoundError, NotADirectoryError):
        for path in list(folder.iterdir()):
            with suppress(FileNotFoundError):
                found = path.lstat()
                if stat.S_ISDIR(found.st_mode):
                    yield from _files(path)
                else:
                    yield path, Held(1, found.st_size)


def _remove_empty(folder: Path) -> None:
    """Folders in which nothing is left; one that is being filled stays."""
    if folder.is_symlink():
        return
    with suppress(OSError):
        for path in list(folder.iterdir()):
            if path.is_dir():
                _remove_empty(path)
                with suppress(OSError):
                    path.rmdir()
