"""What pip reads of a wheel."""

from email import message_from_bytes

import pytest

from kernelpack.errors import KernelpackError
from kernelpack.wheel.metadata import Metadata

BASE = {"summary": "kernels", "requires": "kernelpack>=0.1.0,<0.2"}


def made(name="kernelpack-cubins-sm100", version="0.1.0", **fields):
    return Metadata(name=name, version=version, **BASE, **fields)


def test_names():
    """The file's name is that of the project, version and tag."""
    expected = "kernelpack_cubins_sm100-0.1.0-py3-none-any.whl"
    assert (made().filename, made().info) == (expected, "kernelpack_cubins_sm100-0.1.0.dist-info")


def test_fields():
    """Name, version, what it asks for, and the licence as an expression of SPDX."""
    text = made(licence="Apache-2.0").files()[f"{made().info}/METADATA"]
    fields = message_from_bytes(text)
    expected = ("kernelpack-cubins-sm100", "0.1.0", "kernelpack>=0.1.0,<0.2", "Apache-2.0")
    keys = ("Name", "Version", "Requires-Dist", "License-Expression")
    assert expected == tuple(fields[key] for key in keys)


@pytest.mark.parametrize(("licence", "version"), [("", "2.1"), ("Apache-2.0", "2.4")])
def test_metadata_version(licence, version):
    """The expression of a licence is a field of metadata 2.4; without it older pips read it too."""
    text = made(licence=licence).files()[f"{made().info}/METADATA"]
    assert message_from_bytes(text)["Metadata-Version"] == version


def test_entry_point():
    """The package of bundles is announced."""
    expected = b"[kernelpack.bundles]\nkernelpack_cubins_sm100 = kernelpack_cubins_sm100\n"
    files = made(announces="kernelpack_cubins_sm100").files()
    assert files[f"{made().info}/entry_points.txt"] == expected


def test_no_entry_point():
    """A wheel that announces nothing has no such file."""
    assert f"{made().info}/entry_points.txt" not in made().files()


@pytest.mark.parametrize("name", ["", "Kernels", "a_b", "a--b", "-a", "a/../b", "a\n"])
def test_a_name_that_is_none(name):
    """A project is named as PEP 503 normalises names; nothing leads out of the folder."""
    with pytest.raises(KernelpackError, match="is not a valid wheel name"):
        made(name=name)


@pytest.mark.parametrize("version", ["", "1.", "v1", "1-2", "1/2", "1\n", "one"])
def test_a_version_that_is_none(version):
    """Versions are those of PEP 440."""
    with pytest.raises(KernelpackError, match="no version of a wheel"):
        made(version=version)


@pytest.mark.parametrize("version", ["1", "0.1.0", "1.2rc1", "1.2.post3", "1.2.dev0", "1.2+cu13.4"])
def test_a_version(version):
    """Releases, candidates, corrections and local versions."""
    assert made(version=version).stem.endswith(version)
