"""A store that asks a remote one for what it lacks, and hands on what it is given.

Workers know the store on the disk alone; the process that builds asks the remote before it has
anything compiled, and reports it afterwards.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kernelpack.cache.remote import Remote
from kernelpack.cache.store import Store
from kernelpack.errors import CacheError


@contextmanager
def open_store(root: Path, url: str = "", *, read_only: bool = False) -> Iterator[Store]:
    """The store in a folder, with a remote behind it if a URL is given.

    Raises:
        KernelpackError: nothing can open such a URL.

    """
    if not url:
        yield Store(root)
        return
    with Remote(url, read_only=read_only) as remote:
        yield SharedStore(root, remote)


class SharedStore(Store):
    """A store with a remote behind it; notes and locks are this machine's alone."""

    def __init__(self, root: Path, remote: Remote) -> None:
        super().__init__(root)
        self._remote = remote

    @property
    def trouble(self) -> str:
        """Why the remote is no longer used; empty while it works."""
        return self._remote.trouble

    def get(self, key: str) -> bytes | None:
        """An object's bytes, from here or from afar; None if neither holds it whole."""
        held = super().get(key)
        if held is not None:
            return held
        data = self._remote.get(key)
        if data is not None:
            with suppress(CacheError):  # a disk that only serves costs the next build a request
                super().put(key, data)
        return data

    def put(self, key: str, data: bytes) -> bytes:
        """Publish an object here and afar."""
        stored = super().put(key, data)
        self._remote.put(key, stored)
        return stored

    def offer(self, key: str, data: bytes) -> None:
        """Publish an object afar, and here if it is not here yet."""
        if super().get(key) is None:
            super().put(key, data)
        self._remote.put(key, data)
