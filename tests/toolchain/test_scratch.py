"""The folder of a compiler."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelpack.errors import CompileError, ToolchainError
from kernelpack.toolchain.scratch import scratch


def test_is_removed() -> None:
    """The folder is there and empty, and is gone afterwards with all that is in it."""
    with scratch() as folder:
        assert list(folder.iterdir()) == []
        (folder / "x").write_text("x")
    assert not folder.exists()


def test_full() -> None:
    """The error of a full disk names the file that did not fit, and where else they could go."""
    full = OSError(errno.ENOSPC, "No space left on device", "/tmp/kernelpack-x/kernel.ptx")
    with pytest.raises(ToolchainError, match=r"kernel\.ptx: .*No space(.|\n)*TMPDIR"), scratch():
        raise full


@pytest.mark.parametrize("ended", [None, CompileError("failed to preprocess")])
def test_full_and_not_told(monkeypatch: pytest.MonkeyPatch, ended: Exception | None) -> None:
    """A disk that is full at the end is reported, whether or not a compiler noticed or failed."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_blocks=4, f_bavail=0))
    with pytest.raises(ToolchainError, match="No space left"), scratch(), ending(ended):
        pass


@contextmanager
def ending(error: Exception | None) -> Iterator[None]:
    """A compiler that ends with an error, or with none."""
    yield
    if error:
        raise error


def test_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder that cannot be made is the same kind of error."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no"))
    with pytest.raises(ToolchainError, match="No such file"), scratch():
        pass
