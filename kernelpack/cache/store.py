"""A content-addressed store on a disk that processes, and machines over NFS, may share.

An object is a file named by its key; it is written once and never changed. A note is a small record
under a name, replaced as a whole. Both are framed (see frame.py): an object whose bytes are not
what was written is set aside and counts as absent.

    objects/ab/ab12…   the objects         notes/…        the notes
    locks/…            one file a key      temporary/…    what is being written
    quarantine/…       damaged objects, kept for whoever wants to know

Publishing is: write a temporary file, fsync, link it to its name. Whoever finds the name taken has
lost a race for the same bytes, which is success. Modification times decide nothing here but the age
of an abandoned temporary file.
"""

import errno
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

from filelock import FileLock

from kernelpack.cache.disk import Disk, NoFileError
from kernelpack.cache.frame import frame, unframe
from kernelpack.errors import CacheError

PATIENCE_S = 5.0
"""How long a file that must be there may be invisible: NFS clients cache a negative stat."""

ABANDONED_S = 24 * 3600.0
"""The age at which a temporary file has lost its writer."""

_TAKEN = {errno.EEXIST, errno.EBUSY, errno.ENOTEMPTY}
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_INVISIBLE = {errno.ENOENT, errno.ESTALE}
_NOT_OURS = {errno.EACCES, errno.EPERM, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT}


T = TypeVar("T")


class ServesOnlyError(CacheError):
    """The folder is another user's, or on a disk that is not to be written: it can only be read."""


class ContentError(CacheError):
    """An object is whole, and not what its key stands for."""


class Store:
    """Objects by key and notes by name under one folder, which is created when first written.

    Keys are lower-case hex digests; names of notes are file names.
    """

    def __init__(self, root: Path, disk: Disk | None = None) -> None:
        self.root = root
        self._disk = disk or Disk()

    @property
    def trouble(self) -> str:
        """Why a remote behind it is no longer used; empty, for this store has none."""
        return ""

    def get(self, key: str) -> bytes | None:
        """An object's bytes; None if the store does not hold it whole.

        Raises:
            CacheError: the file is there and cannot be read.

        """
        path = self._path(key)
        try:
            framed = self._disk.read(path)
        except NoFileError:
            self._set_aside(path, b"")
            return None
        except OSError as error:
            if error.errno == errno.ENOENT:
                if path.is_symlink():  # to nowhere: the name is taken, and holds nothing
                    self._set_aside(path, b"")
                return None
            if error.errno != errno.ESTALE:
                raise _named(error, path) from error
            framed = self._read_patiently(path)
        return self._whole(key, path, framed)

    def known(self, key: str, decode: Callable[[bytes], T]) -> T | None:
        """An object's bytes; None if the store does not have it.

        One of the right digest that `decode` refuses by a ContentError was written by another
        version, or by somebody else: it is set aside as a damaged one is.

        Raises:
            CacheError: the file is there and cannot be read.

        """
        data = self.get(key)
        if data is None:
            return None
        try:
            return decode(data)
        except ContentError:
            self._set_aside(self._path(key), data)
            return None

    def put(self, key: str, data: bytes) -> bytes:
        """Publish an object; returns its bytes as stored, the winner's where another was first.

        Raises:
            CacheError: the disk is full or cannot be written, or the object does not become
                visible within `PATIENCE_S`; nothing half-written is left.

        """
        path = self._path(key)
        self._publish(path, frame(key, data))
        stored = self._whole(key, path, self._read_patiently(path))
        if stored is None:  # the winner's file was damaged and is set aside: the name is free
            self._publish(path, frame(key, data))
        return data if stored is None else stored

    def offer(self, key: str, data: bytes) -> None:
        """Publish an object that may well be here already.

        Raises:
            CacheError: as of `put`.

        """
        if self.get(key) is None:
            self.put(key, data)

    @contextmanager
    def lock(self, key: str) -> Iterator[None]:
        """Lock a key for this process alone; it is freed when the holder dies.

        Raises:
            CacheError: the lock's file cannot be made or locked.

        """
        path = self.root / "locks" / key
        lock = FileLock(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire(poll_interval=0.02)
        except OSError as error:
            raise _named(error, path) from error
        try:
            yield
        finally:
            lock.release()

    def make_once(self, key: str, make: Callable[[], bytes]) -> bytes:
        """An object's bytes, made by exactly one of all processes that ask at the same time.

        Where `make` raises, its error is this caller's alone: the next one tries for itself.
        """
        held = self.get(key)
        if held is not None:
            return held
        with self.lock(key):
            held = self.get(key)
            return self.put(key, make()) if held is None else held

    def recall(self, name: str) -> bytes | None:
        """A note's bytes; None if there is none."""
        path = self.root / "notes" / name
        try:
            return unframe(name, self._disk.read(path))
        except (FileNotFoundError, NoFileError):
            return None
        except OSError as error:
            raise _named(error, path) from error

    def note(self, name: str, data: bytes) -> None:
        """Replace a note; of two writers the last one stays."""
        path = self.root / "notes" / name
        with self._temporary(path, frame(name, data)) as temporary:
            self._disk.rename(temporary, path)

    def prepare(self) -> None:
        """Make sure that the folder can be written, before much work depends on it.

        Temporary files whose writers died long ago are removed.

        Raises:
            ServesOnlyError: it is not ours to write.
            CacheError: it cannot be written.

        """
        self._sweep()
        with self._temporary(self.root / "objects" / "probe", b""):
            pass

    def _sweep(self) -> None:
        for path in (self.root / "temporary").glob("*"):
            with suppress(OSError):  # another sweep was faster, or the file is not ours to remove
                if time.time() - path.stat().st_mtime > ABANDONED_S:
                    self._disk.remove(path)

    def _path(self, key: str) -> Path:
        return self.root / "objects" / key[:2] / key

    def _publish(self, path: Path, framed: bytes) -> None:
        with self._temporary(path, framed) as temporary:
            try:
                self._disk.link(temporary, path)
            except OSError as error:
                if error.errno in _NO_LINKS | _INVISIBLE:  # or an NFS client lost the call
                    self._disk.rename(temporary, path)
                elif error.errno not in _TAKEN:
                    raise

    @contextmanager
    def _temporary(self, path: Path, framed: bytes) -> Iterator[Path]:
        """A complete file on the way to `path`; gone afterwards, whatever happened."""
        temporary = self.root / "temporary" / f"{path.name[:16]}.{secrets.token_hex(8)}"
        for folder in (temporary.parent, path.parent):
            _make(folder)
        try:
            try:
                self._disk.write(temporary, framed)
                yield temporary
            finally:
                self._disk.remove(temporary)
        except OSError as error:
            raise _named(error, path) from error

    def _read_patiently(self, path: Path) -> bytes:
        """Read a file that was published, however late this machine learns of it."""
        deadline = self._disk.now() + PATIENCE_S
        pause = 0.01
        while True:
            try:
                return self._disk.read(path)
            except OSError as error:
                if error.errno not in _INVISIBLE or self._disk.now() >= deadline:
                    raise _named(error, path) from error
            self._disk.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _whole(self, key: str, path: Path, framed: bytes) -> bytes | None:
        data = unframe(key, framed)
        if data is None:
            self._set_aside(path, framed)
        return data

    def _set_aside(self, path: Path, framed: bytes) -> None:
        aside = self.root / "quarantine" / f"{path.name}.{sha256(framed).hexdigest()[:8]}"
        try:
            aside.parent.mkdir(parents=True, exist_ok=True)
            self._disk.rename(path, aside)
        except FileNotFoundError:
            return  # another reader was faster
        except OSError as error:
            if error.errno not in _NOT_OURS:  # else it stays, and counts as absent all the same
                raise _named(error, path) from error


def _make(folder: Path) -> None:
    """Make a folder and those above it, where they are not there.

    Raises:
        CacheError: the disk does not let us.

    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno not in _INVISIBLE:
            raise _named(error, folder) from error
        raise CacheError(
            f"the cache's folder cannot be made ({error.strerror})",
            where=str(folder),
            hint="name a folder that can be written in KERNELPACK_CACHE_DIR",
        ) from error


def _named(error: OSError, path: Path) -> CacheError:
    """An error of the disk as one that says what to do."""
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return CacheError(
            f"the cache's disk is full ({reason})",
            where=str(path),
            hint="free some space, or name another folder in KERNELPACK_CACHE_DIR",
        )
    if error.errno in _INVISIBLE:
        return CacheError(
            f"the cache lost a file that was just published ({reason}, {PATIENCE_S:g} s long)",
            where=str(path),
            hint="a shared disk is not consistent: name a local folder in KERNELPACK_CACHE_DIR",
        )
    kind = ServesOnlyError if error.errno in _NOT_OURS else CacheError
    return kind(
        f"the cache cannot be used ({reason})",
        where=str(path),
        hint="name a folder that can be written in KERNELPACK_CACHE_DIR",
    )
