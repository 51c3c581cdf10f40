"""`kernelpack wheel`."""

import json

from tests.verify import small

WHEEL = "kernelpack_cubins_sm90-0.1.0-py3-none-any.whl"


def test_wheel(kernelpack, bundle, tmp_path):
    """The folder is made; paths are the output, what is in them is talk."""
    said = kernelpack("wheel", bundle, "-o", tmp_path / "new" / "dist")
    assert (said.code, said.out) == (0, f"{tmp_path}/new/dist/{WHEEL}\n")
    assert said.err.startswith(f"packing 2 entries\n{WHEEL}: 2 entries, ")


def test_project_and_version(kernelpack, bundle, tmp_path):
    """Names begin with the project."""
    said = kernelpack("wheel", bundle, "-o", tmp_path, "--project", "acme", "--version", "3")
    assert said.out == f"{tmp_path}/acme_cubins_sm90-3-py3-none-any.whl\n"


def test_kernels_of_ones_own(kernelpack, tmp_path):
    """Their wheels are not called as kernelpack's, which they would replace."""
    path = small.written(tmp_path / "x.kpk", [(small.variant(), small.ptx())])
    said = kernelpack("wheel", path, "-o", tmp_path / "dist")
    assert said.code == 1
    assert "`twice` is not one of kernelpack's kernels" in said.err
    assert "--project twice" in said.err
    assert kernelpack("wheel", path, "-o", tmp_path / "dist", "--project", "twice").code == 0


def test_a_name_that_is_none(kernelpack, bundle, tmp_path):
    """Nothing is written."""
    said = kernelpack("wheel", bundle, "-o", tmp_path / "dist", "--project", "../acme")
    assert said.code == 1
    assert "`../acme-cubins-sm90` is not a valid wheel name" in said.err
    assert not (tmp_path / "dist").exists()


def test_json(kernelpack, bundle, tmp_path):
    """The same for programs."""
    said = kernelpack("wheel", bundle, "-o", tmp_path / "dist", "--json")
    (made,) = json.loads(said.out)
    assert made["wheel"] == f"{tmp_path}/dist/{WHEEL}"
    assert made["bytes"] == (tmp_path / "dist" / WHEEL).stat().st_size
    assert made["entries"] == 2
