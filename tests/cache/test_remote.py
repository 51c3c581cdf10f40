"""A cache over a network: what arrives is checked, and whatever fails is left alone."""

import sys
import threading
import time

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from kernelpack.cache import remote
from kernelpack.cache.frame import frame
from kernelpack.cache.remote import Remote
from kernelpack.errors import KernelpackError

KEY, OTHER = "ab" + 62 * "0", "cd" + 62 * "0"
URL = "memory://cache"


@pytest.fixture(autouse=True)
def files():
    """The files of the memory that stands for a network, by path."""
    MemoryFileSystem.store.clear()
    return MemoryFileSystem()


@pytest.fixture
def filled(files):
    with Remote(URL) as far:
        far.put(KEY, b"data")


@pytest.mark.parametrize("url", [URL, "file://{folder}/deep/cache"])
def test_put_then_get(tmp_path, url):
    """What one machine put another one gets; folders are made where there is such a thing."""
    with Remote(url.format(folder=tmp_path)) as far:
        far.put(KEY, b"data")
    with Remote(url.format(folder=tmp_path)) as far:
        assert (far.get(KEY), far.get(OTHER), far.trouble) == (b"data", None, "")


@pytest.mark.parametrize(
    "framed",
    [b"", frame(KEY, b"data")[:-1], frame(KEY, b"date")[:-1] + b"a", frame(OTHER, b"data")],
)
def test_damage_is_absence(files, framed):
    """An object that is half there, changed, or of another key is refused."""
    files.pipe_file(f"/cache/{KEY}", framed)
    with Remote(URL) as far:
        assert (far.get(KEY), far.trouble) == (None, "")


def test_read_only(files):
    """A reader writes nothing."""
    with Remote(URL, read_only=True) as far:
        far.put(KEY, b"data")
    assert not files.exists("/cache")


def test_failure_is_told_once(filled, monkeypatch):
    """The first failure is kept, and nothing more is asked."""
    asked = []

    def refuse(_self, path, **_):
        asked.append(path)
        raise PermissionError(f"403: attempt {len(asked)}")

    monkeypatch.setattr(MemoryFileSystem, "cat_file", refuse)
    with Remote(URL) as far:
        assert [far.get(KEY), far.get(KEY)] == [None, None]
    assert far.trouble == f"{URL}: no longer used: PermissionError: 403: attempt 1"
    assert len(asked) == 1


def test_failed_upload_is_told(monkeypatch):
    """An upload fails in the background; whoever leaves learns of it."""

    def refuse(*_args, **_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", refuse)
    with Remote(URL) as far:
        far.put(KEY, b"data")
    assert "No space left on device" in far.trouble


def test_silence_is_failure(filled, monkeypatch):
    """A service that does not answer holds a build up once, and only for so long."""
    release = threading.Event()
    monkeypatch.setattr(remote, "PATIENCE_S", 0.1)
    monkeypatch.setattr(MemoryFileSystem, "cat_file", lambda *_, **__: release.wait(60))
    start = time.monotonic()
    with Remote(URL) as far:
        assert far.get(KEY) is None
    assert "no answer in 0.1 s" in far.trouble
    assert time.monotonic() - start < 10
    release.set()


def test_an_error_waits_for_no_upload(monkeypatch):
    """Ctrl-C ends a build though something is being written."""
    release = threading.Event()
    monkeypatch.setattr(MemoryFileSystem, "pipe_file", lambda *_, **__: release.wait(60))
    start = time.monotonic()
    far = Remote(URL)
    far.put(KEY, b"data")
    far.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert time.monotonic() - start < 10
    release.set()


@pytest.mark.parametrize("url", ["nothing://there", "s3://bucket/folder"])
def test_what_cannot_be_opened_is_an_error(url, monkeypatch):
    """A URL that no installed part of fsspec opens is a wrong request, not a failing service."""
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(KernelpackError, match=rf"^{url}: the remote cache cannot be opened"):
        Remote(url)


def test_fsspec_is_missing(monkeypatch):
    """Without the extra, the error says what to install."""
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(KernelpackError, match=r"pip install '\.\[remote\]'"):
        Remote(URL)
