"""The folder of a compiler."""

import errno
import tempfile
from pathlib import Path

import pytest

from kernelpack.errors import ToolchainError
from kernelpack.toolchain.scratch import scratch


def test_is_removed() -> None:
    """The folder is there and empty, and is gone afterwards with all that is in it."""
    with scratch() as folder:
        assert list(folder.iterdir()) == []
        (folder / "x").write_text("x")
    assert not folder.exists()


def test_full() -> None:
    """A disk without room is told by the file that did not fit, and where else they could go."""
    full = OSError(errno.ENOSPC, "No space left on device", "/tmp/kernelpack-x/kernel.ptx")
    with pytest.raises(ToolchainError, match=r"kernel\.ptx: .*No space(.|\n)*TMPDIR"), scratch():
        raise full


def test_nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder that cannot be made is the same kind of error."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no"))
    with pytest.raises(ToolchainError, match="No such file"), scratch():
        pass
