"""Wheels as pip leaves them behind."""

from pathlib import Path

import pytest

from kernelpack.errors import ToolchainError
from kernelpack.toolchain.releases import RELEASES
from kernelpack.toolchain.wheels import Wheel, read_wheel
from tests.toolchain.site import install_wheel

RELEASE = RELEASES["cuda-13.4"]


def read(site: Path) -> Wheel:
    return read_wheel("nvvm", "nvidia-nvvm", RELEASE, [str(site)])


def test_the_record_is_of_what_a_compiler_reads(tmp_path: Path) -> None:
    """Metadata and Python files are not part of a toolchain."""
    files = {"nvidia/__init__.py": "", "nvidia/cu13/nvvm/bin/cicc": "cicc"}
    install_wheel(tmp_path, "nvidia-nvvm", "13.4.92", files)
    assert [path for path, _, _ in read(tmp_path).record] == ["nvidia/cu13/nvvm/bin/cicc"]


def test_the_digest_does_not_know_the_version(tmp_path: Path) -> None:
    """The same files under another number are the same part."""
    install_wheel(tmp_path / "one", "nvidia-nvvm", "13.4.92", {"cicc": "cicc"})
    install_wheel(tmp_path / "two", "nvidia-nvvm", "13.4.93", {"cicc": "cicc"})
    assert read(tmp_path / "one").digest == read(tmp_path / "two").digest


def test_the_file_that_told_the_version_is_there(tmp_path: Path) -> None:
    """An error may point at the metadata."""
    install_wheel(tmp_path, "nvidia-nvvm", "13.4.92", {})
    assert "Version: 13.4.92" in read(tmp_path).metadata.read_text()


def test_a_wheel_without_a_record_is_named(tmp_path: Path) -> None:
    """Without the record of its files a wheel cannot be checked."""
    install_wheel(tmp_path, "nvidia-nvvm", "13.4.59", {})
    (tmp_path / "nvidia_nvvm-13.4.59.dist-info" / "RECORD").unlink()
    with pytest.raises(ToolchainError, match="nvidia-nvvm has no RECORD of its files"):
        read(tmp_path)
