"""Files are written whole or not at all."""

from pathlib import Path

import pytest

from kernelpack import files
from kernelpack.errors import KernelpackError
from kernelpack.files import publish, publish_all


def test_a_missing_folder(tmp_path):
    """A path in no folder is refused by name."""
    with pytest.raises(KernelpackError, match="cannot be written: No such file"):
        publish(tmp_path / "no" / "x.kpk", b"")


def test_a_failed_write_leaves_nothing(tmp_path, monkeypatch):
    """A full disk leaves the old file as it was, and no other."""
    path = tmp_path / "x.kpk"
    path.write_bytes(b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(KernelpackError, match="cannot be written: No space left"):
        publish(path, b"new")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"x.kpk": b"old"}


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    """Ctrl-C while a file is published leaves no temporary file."""

    def interrupt(*_: object) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        publish(tmp_path / "x.kpk", b"new")
    assert list(tmp_path.iterdir()) == []


def test_files_that_belong_together_are_not_torn(tmp_path):
    """Where one of two cannot be written, the other one is as it was."""
    first = tmp_path / "first"
    first.write_bytes(b"old")
    with pytest.raises(KernelpackError, match="cannot be written"):
        publish_all([(first, b"new"), (tmp_path / "missing" / "second", b"new")])
    assert first.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [first]
