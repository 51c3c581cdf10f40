"""Files that are not bundles: the error says what each is, and what to do."""

import os

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import BundleError

LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize(
    ("head", "what", "hint"),
    [
        (LFS, "Git LFS pointer", "git lfs pull"),
        (b"PK\x03\x04" + bytes(100), "ZIP archive or a wheel", "install the wheel"),
        (b"\x7fELF\x02\x01\x01" + bytes(100), "ELF file", "`.kpk`"),
        (b'{"kernels": []}', "JSON", "`.kpk`"),
        (b"  \n[1, 2]", "JSON", "`.kpk`"),
        (b"<!DOCTYPE html>", "HTML", "error page"),
        (b"\x1f\x8b\x08", "gzip", "decompress"),
        (b"\x28\xb5\x2f\xfd", "zstd", "decompress"),
        (b"// PTX\n.version 9.0", "source text", "`.kpk`"),
        (b"kernel: lora_shrink_qkv\n", "manifest", "kernelpack build"),
        (b"\x89KPK\n\x1a\n" + bytes(600), "transferred as text", "binary"),
        (b"KPK\r\n\x1a\n" + bytes(600), "without its first byte", "binary"),
        (b"", "empty file", "make it again"),
        (bytes(4096), "zeros", "make it again"),
        (b"\xff\xfe hello", "not a bundle", "kernelpack build"),
    ],
)
def test_another_file(tmp_path, head, what, hint):
    """A file of another kind is named by its kind, with what to do."""
    path = tmp_path / "x.kpk"
    path.write_bytes(head)
    with pytest.raises(BundleError, match=what) as caught:
        open_bundle(path)
    assert caught.value.where == str(path)
    assert hint in caught.value.hint


def test_no_file(tmp_path):
    """A missing file is named."""
    with pytest.raises(BundleError, match=r"absent\.kpk: cannot be read: No such file"):
        open_bundle(tmp_path / "absent.kpk")


def test_a_folder(tmp_path):
    """A folder is refused."""
    with pytest.raises(BundleError, match="not a regular file"):
        open_bundle(tmp_path)


def test_a_pipe(tmp_path):
    """A pipe is refused at once, not waited for."""
    os.mkfifo(tmp_path / "x.kpk")
    with pytest.raises(BundleError, match="not a regular file"):
        open_bundle(tmp_path / "x.kpk")


def test_a_path_that_cannot_be(tmp_path):
    """A path with a null byte is refused."""
    with pytest.raises(BundleError, match="cannot be read"):
        open_bundle(tmp_path / "a\0b")
