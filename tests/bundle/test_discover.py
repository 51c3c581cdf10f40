"""Installed bundles are found by their entry point; nothing of a package is run."""

import sys

import pytest

from kernelpack.bundle.discover import find
from kernelpack.errors import BundleError


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A folder on the path that `install` puts packages into."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def install(site, package, files=(), value=""):
    """A wheel of kernels as pip leaves it; its module raises when it is imported."""
    folder = site / package
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemExit('imported')\n")
    for name in files:
        (folder / name).write_bytes(b"")
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    points = f"[kernelpack.bundles]\n{package} = {value or package}\n"
    (info / "entry_points.txt").write_text(points)
    return folder


def test_none():
    """Without a wheel of kernels there are none."""
    assert find() == ()


def test_several(site):
    """The bundles of every package are found, sorted, without their PTX twins."""
    one = install(site, "kernels_sm90", ["lora.kpk", "lora.ptx.kpk", "mla.kpk"])
    two = install(site, "kernels_sm100", ["lora.kpk", "notes.txt"])
    expected = sorted([one / "lora.kpk", one / "mla.kpk", two / "lora.kpk"])
    assert expected == list(find())


@pytest.mark.parametrize("left", ["-umpy-1.0.dist-info", "~umpy-2.0.dist-info", "-.dist-info"])
@pytest.mark.parametrize("backport", [False, True])
def test_beside_what_pip_left(site, left, backport, monkeypatch):
    """Folders that an interrupted pip leaves change nothing, nor with the backport's finder."""
    folder = install(site, "kernels_sm90", ["x.kpk"])
    if backport:
        finder = pytest.importorskip("importlib_metadata").MetadataPathFinder
        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder()])
    (site / left).mkdir()
    assert find() == (folder / "x.kpk",)


def test_nothing_is_imported(site):
    """The package is not imported."""
    install(site, "kernels_sm90", ["x.kpk"])
    find()
    assert "kernels_sm90" not in sys.modules


@pytest.mark.parametrize("value", ["", "absent_package", "os.path", "kernels_sm90.part", "os"])
def test_a_package_without_a_bundle(site, value):
    """A package that announces a bundle it does not hold is named."""
    install(site, "kernels_sm90", [], value)
    with pytest.raises(BundleError, match="announces a bundle and holds none") as caught:
        find()
    assert caught.value.where == "entry point `kernels_sm90` of kernelpack.bundles"
