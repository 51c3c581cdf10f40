"""The bytes of a wheel: what pip checks, and nothing that differs between machines."""

from base64 import urlsafe_b64decode
from hashlib import sha256
from io import BytesIO
from zipfile import ZIP_STORED, ZipFile

import pytest

from kernelpack.wheel.archive import archive

FILES = {"x/kernels.kpk": b"bundle", "x-1.dist-info/METADATA": b"Name: x\n"}


@pytest.fixture
def wheel():
    return ZipFile(BytesIO(archive(FILES, "x-1.dist-info")))


def test_files(wheel):
    """Every file is in it, in order; RECORD comes last."""
    assert [*FILES, "x-1.dist-info/RECORD"] == wheel.namelist()


def test_record(wheel):
    """RECORD has the digest and the size of every file but itself."""
    *lines, own, _ = wheel.read("x-1.dist-info/RECORD").decode().split("\n")
    path, digest, size = lines[0].split(",")
    raw = urlsafe_b64decode(digest.removeprefix("sha256=") + "=")
    expected = ("x/kernels.kpk", sha256(b"bundle").digest(), "6", "x-1.dist-info/RECORD,,")
    assert expected == (path, raw, size, own)


def test_reproducible():
    """The same files give the same bytes; a digest that another machine computed."""
    expected = "f86f87489c5c2561ebdf1a7c579916784671878b2e71867ee548dc633c728fec"
    assert sha256(archive(FILES, "x-1.dist-info")).hexdigest() == expected


def test_members(wheel):
    """No time, no owner's bits, nothing compressed."""
    found = {(m.date_time[0], m.compress_type, m.external_attr >> 16) for m in wheel.infolist()}
    assert found == {(1980, ZIP_STORED, 0o100644)}
