"""Objects that machines share over a network, through fsspec: S3, GCS, SSH, HTTP, a folder.

An object is the file `URL/<key>`, framed as on the disk (see frame.py): what is not what was
written under its key, or only half there, counts as absent. A remote is a help, never a need: one
that fails, or does not answer in time, is left alone from then on, and `trouble` says why.
"""

import multiprocessing
from importlib import import_module
from multiprocessing.pool import AsyncResult, ThreadPool
from types import TracebackType
from typing import Self, TypeVar

from kernelpack.cache.frame import frame, unframe
from kernelpack.errors import KernelpackError, install_extra

T = TypeVar("T")

AT_ONCE = 16
"""Requests at a time: a build asks for hundreds of small objects, and each waits on the network."""

PATIENCE_S = 30.0
"""How long one request may take."""


class Remote:
    """A place with objects by key. Threads may share it; leaving its context ends all requests.

    Args:
        url: what fsspec opens, such as `s3://bucket/folder`.
        read_only: never write.

    Attributes:
        trouble: why it is no longer used; empty while it works.

    Raises:
        KernelpackError: fsspec, or its part for this kind of URL, is not installed.

    """

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self.trouble = ""
        self._url, self._read_only = url, read_only
        self._threads = ThreadPool(AT_ONCE)  # daemons: one that hangs holds up nobody's exit
        self._uploads: list[AsyncResult[None]] = []
        self._folder = self._answer(self._threads.apply_async(_Folder, (url,)))

    def get(self, key: str) -> bytes | None:
        """An object's bytes; None if the remote does not hold it whole."""
        if self._folder is None or self.trouble:
            return None
        framed = self._answer(self._threads.apply_async(self._folder.read, (key,)))
        return None if framed is None else unframe(key, framed)

    def put(self, key: str, data: bytes) -> None:
        """Begin to write an object; leaving the context waits for its end."""
        if self._folder is None or self.trouble or self._read_only:
            return
        request = (key, frame(key, data))
        self._uploads.append(self._threads.apply_async(self._folder.write, request))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Wait for what is being written, unless there was an error; then stop."""
        while self._uploads and not (error or self.trouble):
            self._answer(self._uploads.pop(0))
        self._threads.terminate()

    def _answer(self, request: "AsyncResult[T]") -> T | None:
        """The result of a request; if it fails, None, and the remote is given up."""
        try:
            return request.get(PATIENCE_S)
        except KernelpackError:  # a wrong request, of the very first
            self._threads.terminate()
            raise
        except multiprocessing.TimeoutError:
            self._give_up(f"no answer in {PATIENCE_S:g} s")
        except Exception as error:  # noqa: BLE001 - the client of each service has its own errors
            self._give_up(f"{type(error).__name__}: {error}")
        return None

    def _give_up(self, why: str) -> None:
        self.trouble = self.trouble or f"{self._url}: no longer used: {why}"


class _Folder:
    """The files below a URL; every error is that of the service's client."""

    def __init__(self, url: str) -> None:
        try:
            self._files, self._root = import_module("fsspec.core").url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise KernelpackError(
                f"the remote cache cannot be opened: {error}",
                where=url,
                hint=f"{install_extra('remote')}, and fsspec's part for such a URL",
            ) from error

    def read(self, key: str) -> bytes | None:
        """A file; None if there is none."""
        try:
            data: bytes = self._files.cat_file(self._path(key))
        except FileNotFoundError:
            return None
        return data

    def write(self, key: str, data: bytes) -> None:
        """Write a file over what is there: whoever reads it half written finds that out."""
        try:
            self._files.pipe_file(self._path(key), data)
        except FileNotFoundError:  # a kind of place with folders, and this is its first file
            self._files.makedirs(self._root, exist_ok=True)
            self._files.pipe_file(self._path(key), data)

    def _path(self, key: str) -> str:
        return f"{self._root.rstrip('/')}/{key}"
