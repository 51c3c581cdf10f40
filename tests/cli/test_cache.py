"""`kernelpack cache`."""

import json
import os
import time

import pytest

from kernelpack.cache.store import Store


@pytest.fixture
def cache(tmp_path):
    """An object of today, and one of long ago."""
    store = Store(tmp_path / "cache")
    for key in ("a" * 64, "b" * 64):
        store.put(key, b"object")
    then = time.time() - 40 * 24 * 3600
    os.utime(tmp_path / "cache" / "objects" / "aa" / ("a" * 64), (then, then))
    return tmp_path / "cache"


def test_what_it_holds(kernelpack, cache):
    """A line for each part, and the whole; nothing is removed."""
    said = kernelpack("cache")
    assert said.out.splitlines()[1].split()[:2] == ["objects", "2"]
    assert said.err.startswith(f"{cache}: 2 files, ")


@pytest.mark.parametrize(("days", "left"), [("30", 1), ("50", 2), ("0", 0)])
def test_prune(kernelpack, cache, days, left):
    """Objects not used for so many days go; the output lists them."""
    said = kernelpack("cache", "--prune", days)
    assert said.err.startswith(f"removed {2 - left} file")
    assert len([path for path in (cache / "objects").rglob("*") if path.is_file()]) == left


def test_json(kernelpack, cache):
    """The same for programs; what was removed is null where nothing was to be."""
    told = json.loads(kernelpack("cache", "--json").out)
    assert (told["folder"], told["removed"]) == (str(cache), None)
    assert told["parts"]["objects"]["files"] == 2
    assert json.loads(kernelpack("cache", "--prune", 30, "--json").out)["removed"]["files"] == 1


@pytest.mark.parametrize("days", ["-1", "old"])
def test_days_that_are_none(kernelpack, days):
    """An age is a number of days."""
    assert kernelpack("cache", "--prune", days).code == 2


def test_no_cache(kernelpack, tmp_path):
    """A cache that is not there holds nothing, and is not made."""
    assert kernelpack("cache", "--prune", 0).code == 0
    assert not (tmp_path / "cache").exists()
