"""The wheel of the sources of kernels of one's own: what each computes, announced by its stem."""

from dataclasses import replace
from io import BytesIO
from zipfile import ZipFile

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.bundle.writer import write
from kernelpack.errors import BundleError, OracleError
from kernelpack.kernels.folder import Folder
from kernelpack.kernels.registry import Kernels
from kernelpack.spec.artifact import digest
from kernelpack.wheel.wheel import wheels
from tests.fakes.bundles import provenance
from tests.kernels.own import own
from tests.verify import small

NAME = "mine_kernels-2.0-py3-none-any.whl"


@pytest.fixture
def folder(tmp_path):
    return Folder(own(tmp_path))


def made(folder, path, stem="twice"):
    """The wheel of a folder, and of a bundle that was built from it as it is."""
    found = {
        f"manifests/{stem}.yaml": digest(folder.manifest.read_bytes()),
        f"templates/{stem}/{stem}.cu.j2": digest(folder.template.read_bytes()),
    }
    told = replace(provenance("13.4"), sources=found)
    variant = replace(small.variant(), kernel=stem)
    write([small.entry(variant, small.ptx())], path, told)
    return path


def wheel(path, *folders):
    """The last wheel of a bundle."""
    *_, last = wheels(open_bundle(path), "mine", "2.0", kernels=folders)
    return last


def test_files(folder, tmp_path):
    """The three files of a kernel lie in a package, and are announced."""
    found = wheel(made(folder, tmp_path / "x.kpk"), folder)
    names = {"twice.yaml", "twice.cu.j2", "twice.py", "__init__.py"}
    with ZipFile(BytesIO(found.data)) as file:
        held = {name for name in file.namelist() if name.startswith("mine_kernels/twice/")}
        points = file.read("mine_kernels-2.0.dist-info/entry_points.txt").decode()
    assert (found.filename, held) == (NAME, {f"mine_kernels/twice/{name}" for name in names})
    assert points == "[kernelpack.kernels]\ntwice = mine_kernels.twice.twice\n"


def test_equal_folders_give_equal_bytes(folder, tmp_path):
    """As with every wheel."""
    path = made(folder, tmp_path / "x.kpk")
    assert wheel(path, folder).data == wheel(path, folder).data


def test_what_is_installed_is_found(folder, tmp_path, monkeypatch):
    """The oracle is imported from the wheel's files, and its folder is a kernel's."""
    site = tmp_path / "site"
    ZipFile(BytesIO(wheel(made(folder, tmp_path / "x.kpk"), folder).data)).extractall(site)
    monkeypatch.syspath_prepend(site)
    found = Kernels()
    twice = found["twice"]
    assert twice.origin == str(site / "mine_kernels" / "twice" / "twice.py")
    assert twice.version == digest(folder.oracle.read_bytes())
    assert found.place("twice").folder.manifest.read_bytes() == folder.manifest.read_bytes()


def test_another_kernel(folder, tmp_path):
    """A kernel that the bundle has not is refused."""
    other = Folder(own(tmp_path, stem="twise"))
    with pytest.raises(BundleError, match="holds no `twise`") as caught:
        wheel(made(folder, tmp_path / "x.kpk"), other)
    assert caught.value.hint == "did you mean `twice`?"


@pytest.mark.parametrize("part", ["manifest", "template"])
def test_sources_that_changed(folder, tmp_path, part):
    """Sources that are not the bundle's are refused."""
    path = made(folder, tmp_path / "x.kpk")
    source = getattr(folder, part)
    source.write_text(source.read_text() + "\n")
    with pytest.raises(BundleError, match=r"is not what .* was built from") as caught:
        wheel(path, folder)
    assert caught.value.where == str(source)


def test_no_oracle(folder, tmp_path):
    """Without an oracle there is nothing to verify by."""
    path = made(folder, tmp_path / "x.kpk")
    folder.oracle.unlink()
    with pytest.raises(OracleError, match="there is no oracle"):
        wheel(path, folder)
