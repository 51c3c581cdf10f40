"""What a cache holds, and what of it goes."""

import os
import time

import pytest

from kernelpack.cache.prune import PARTS, Held, held, prune
from kernelpack.cache.store import ABANDONED_S, Store
from kernelpack.errors import CacheError

DAY = 24 * 3600.0
OLD, NEW = "a" * 64, "b" * 64


@pytest.fixture
def cache(tmp_path):
    """Two objects, one of them used long ago, a note, a lock, and an object that was damaged."""
    store = Store(tmp_path)
    for key in (OLD, NEW):
        store.put(key, b"object")
        with store.lock(key):
            pass
    store.note("last", b"note")
    store.put("c" * 64, b"object")
    (tmp_path / "objects" / "cc" / ("c" * 64)).write_bytes(b"damaged")
    store.get("c" * 64)
    age(tmp_path / "objects" / "aa" / OLD, 40 * DAY)
    return tmp_path


def age(path, seconds):
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_what_is_held(cache):
    """Every part is counted, also one that is empty or not there."""
    found = held(cache)
    assert list(found) == list(PARTS)
    assert [found[part].files for part in ("objects", "notes", "locks", "standin")] == [2, 1, 2, 0]
    assert found["quarantine"] == Held(1, len(b"damaged"))


def test_what_is_old_goes(cache):
    """What nobody used for so long is removed, and what was damaged, whatever its age."""
    removed = prune(cache, 30 * DAY, time.time())
    store = Store(cache)
    assert removed.files == 2
    assert (store.get(OLD), store.get(NEW)) == (None, b"object")
    assert held(cache)["quarantine"] == Held()


def test_all_goes(cache):
    """An age of nothing leaves nothing, no folder either, and the cache works as before."""
    prune(cache, 0, time.time() + 1)
    assert sum(held(cache).values(), Held()) == Held()
    assert not list((cache / "objects").iterdir())
    assert Store(cache).put(OLD, b"again") == b"again"


@pytest.mark.parametrize(("seconds", "stays"), [(60, True), (ABANDONED_S + 60, False)])
def test_what_is_being_written_stays(cache, seconds, stays):
    """A temporary file has a writer until it is a day old."""
    file = cache / "temporary" / "half"
    file.write_bytes(b"half")
    age(file, seconds)
    prune(cache, 0, time.time())
    assert file.exists() == stays


def test_links_are_not_followed(cache, tmp_path_factory):
    """A link in a cache goes; what it leads to is somebody's, and stays."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "precious").write_bytes(b"precious")
    (cache / "verified").symlink_to(elsewhere)
    (cache / "objects" / "link").symlink_to(elsewhere)
    prune(cache, 0, time.time() + 1)
    assert (elsewhere / "precious").read_bytes() == b"precious"
    assert not (cache / "objects" / "link").is_symlink()


def test_a_cache_that_is_not_there(tmp_path):
    """Of nothing nothing is removed, and no folder is made."""
    assert prune(tmp_path / "none", 0, time.time()) == Held()
    assert not (tmp_path / "none").exists()


def test_a_cache_of_another_user(cache, monkeypatch):
    """What cannot be removed is named; the rest goes."""
    path = cache / "objects" / "bb" / NEW

    def refuse(self):
        raise PermissionError(13, "Permission denied", str(path)) if self == path else None

    unlink = type(path).unlink
    monkeypatch.setattr(
        type(path), "unlink", lambda self: refuse(self) if self == path else unlink(self)
    )
    with pytest.raises(
        CacheError, match=r"cannot be removed \(Permission denied\), and 0 more"
    ) as e:
        prune(cache, 0, time.time() + 1)
    assert e.value.where == str(path)
    assert held(cache)["objects"].files == 1
