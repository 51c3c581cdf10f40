"""A store with a remote behind it."""

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from kernelpack.cache.shared import open_store
from kernelpack.cache.store import Store

KEY = "ab" + 62 * "0"
URL = "memory://cache"


@pytest.fixture(autouse=True)
def files():
    """The files of the memory that stands for a network."""
    MemoryFileSystem.store.clear()
    return MemoryFileSystem()


def test_without_a_url(tmp_path):
    """Without a remote it is the plain store."""
    with open_store(tmp_path) as store:
        assert (type(store), store.trouble) == (Store, "")


def test_what_one_puts_another_has(tmp_path):
    """An object comes from afar once, and lies here from then on."""
    with open_store(tmp_path / "a", URL) as store:
        assert store.put(KEY, b"data") == b"data"
    with open_store(tmp_path / "b", URL) as store:
        assert store.get(KEY) == b"data"
    assert Store(tmp_path / "b").get(KEY) == b"data"


def test_neither_has_it(tmp_path):
    """What neither holds is absent."""
    with open_store(tmp_path, URL) as store:
        assert store.get(KEY) is None


def test_offer_reaches_both(tmp_path, files):
    """What is here already is handed on all the same."""
    Store(tmp_path).put(KEY, b"data")
    with open_store(tmp_path, URL) as store:
        store.offer(KEY, b"data")
    assert files.exists(f"/cache/{KEY}")


def test_a_disk_that_only_serves(tmp_path):
    """Where nothing can be written here, the remote serves all the same."""
    with open_store(tmp_path / "a", URL) as store:
        store.put(KEY, b"data")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "temporary").write_text("in the way of a folder")
    with open_store(tmp_path / "b", URL) as store:
        assert store.get(KEY) == b"data"
