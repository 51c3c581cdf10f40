"""The library that runs in the user's programs: only what was made here is loaded."""

import os
import stat

import pytest

from kernelpack.emulate import standin
from kernelpack.errors import ToolchainError

LIBRARY = b"a library"


def leave_link(folder):
    library = folder / standin.LIBRARY
    library.rename(folder / "elsewhere")
    library.symlink_to("elsewhere")


def lead_elsewhere(folder):
    (folder / standin.NAMES[1]).unlink()
    (folder / standin.NAMES[1]).symlink_to("/lib/libc.so.6")


DAMAGE = {
    "a name is gone": lambda folder: (folder / standin.NAMES[1]).unlink(),
    "a name leads elsewhere": lead_elsewhere,
    "another library beside it": lambda folder: (folder / "libc.so.6").touch(),
    "cut": lambda folder: (folder / standin.LIBRARY).write_bytes(LIBRARY[:4]),
    "changed": lambda folder: (folder / standin.LIBRARY).write_bytes(b"another one"),
    "gone": lambda folder: (folder / standin.LIBRARY).unlink(),
    "a link": leave_link,
    "open to a group": lambda folder: (folder / standin.LIBRARY).chmod(0o775),
    "in an open folder": lambda folder: folder.chmod(0o777),
    "without its digest": lambda folder: (folder / standin.DIGEST).unlink(),
}


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A stand-in, made without a compiler under an open umask, and how often one is made."""
    count = []

    def compile_one(folder, _includes):
        count.append(folder)
        (folder / standin.LIBRARY).write_bytes(LIBRARY)
        for name in standin.NAMES:
            (folder / name).symlink_to(standin.LIBRARY)

    monkeypatch.setattr(standin, "_compile", compile_one)
    before = os.umask(0)
    try:
        yield standin.build(tmp_path, []), count
    finally:
        os.umask(before)


def test_closed_to_others(made):
    """Under any umask nobody else may write to it."""
    folder, _ = made
    modes = [path.stat().st_mode for path in (folder, *folder.iterdir())]
    assert [mode for mode in modes if mode & (stat.S_IWGRP | stat.S_IWOTH)] == []


def test_kept(made, tmp_path):
    """It is made once."""
    folder, count = made
    assert (standin.build(tmp_path, []), len(count)) == (folder, 1)


@pytest.mark.parametrize("damage", DAMAGE)
def test_made_again(made, tmp_path, damage):
    """A bad one is made again, and then it is whole."""
    folder, count = made
    DAMAGE[damage](folder)
    assert standin.build(tmp_path, []) == folder
    assert len(count) == 2
    assert (folder / standin.LIBRARY).read_bytes() == LIBRARY


@pytest.mark.parametrize("damage", DAMAGE)
def test_not_started(made, damage):
    """A program is not started with a bad one: it would run without the emulator."""
    folder, _ = made
    assert standin.check(folder) is None
    DAMAGE[damage](folder)
    with pytest.raises(ToolchainError, match="is not the stand-in that was made"):
        standin.check(folder)


def test_of_another_user(made, tmp_path, monkeypatch):
    """Another user has a folder of its own; what that user put into ours is not used."""
    folder, _ = made
    user = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)
    folder.rename(folder.with_name(folder.name.rpartition("-")[0] + f"-{user}"))
    with pytest.raises(ToolchainError, match=r"-\d+: is in the stand-in's place\nhint: remove it"):
        standin.build(tmp_path, [])


def test_a_cache_that_cannot_be_written(tmp_path):
    """It is named, with the variable that names another one."""
    (tmp_path / "file").touch()
    with pytest.raises(ToolchainError, match="cannot be kept here: Not a directory") as caught:
        standin.build(tmp_path / "file", [])
    assert "KERNELPACK_CACHE_DIR" in caught.value.hint
