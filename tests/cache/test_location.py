"""The default cache is the user's."""

import os

import pytest

from kernelpack.cache.location import default_root
from kernelpack.errors import CacheError


def test_default_is_the_users_folder():
    """Without a word from anyone the cache lies in the user's cache folder."""
    assert default_root().name == "kernelpack"


def test_a_user_without_a_home(monkeypatch):
    """A user that the system does not know, and no HOME: the error says what to set."""
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54_321)
    with pytest.raises(CacheError, match="there is no home folder") as caught:
        default_root()
    assert "KERNELPACK_CACHE_DIR" in caught.value.hint
