"""Kernels are found where packages announce them, kernelpack's own as any others."""

import subprocess
import sys
import tomllib

import pytest

from kernelpack.errors import OracleError
from kernelpack.kernels.registry import KERNELS, Kernels
from tests.kept import ROOT

DEFINITION = """
from dataclasses import replace
from kernelpack.kernels.lora_shrink_qkv.definition import LORA_SHRINK_QKV
TWICE = replace(LORA_SHRINK_QKV, stem="twice")
LATER = replace(TWICE, stem="later")
"""


@pytest.fixture
def announce(tmp_path, monkeypatch):
    """Install a package that announces kernels: stem → what is at its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def install(package, **kernels):
        (tmp_path / f"{package}.py").write_text(DEFINITION)
        info = tmp_path / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "".join(f"{stem} = {value}\n" for stem, value in kernels.items())
        (info / "entry_points.txt").write_text(f"[kernelpack.kernels]\n{lines}")

    yield install
    for name in ("first", "second"):
        sys.modules.pop(name, None)


def test_ours_are_those_of_the_manifests():
    """Each kernel that ships says what it computes."""
    stems = sorted(path.stem for path in (ROOT / "manifests").glob("*.yaml"))
    assert stems == list(KERNELS)


def test_ours_are_announced_by_the_project():
    """kernelpack's own kernels are in its project file, as those of any package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(project["entry-points"]["kernelpack.kernels"]) == list(KERNELS)


def test_one_of_another_package(announce):
    """What a package announces is beside ours."""
    announce("first", twice="first:TWICE")
    assert Kernels()["twice"].stem == "twice"
    assert "lora_shrink_qkv" in Kernels()


def test_of_package(announce):
    """Those of one package are kept apart from those of others."""
    announce("first", twice="first:TWICE")
    assert list(Kernels().of_package("first")) == ["twice"]
    assert "twice" not in Kernels().of_package()


def test_nothing_is_imported_before_it_is_asked_for(announce):
    """A package that announces a kernel is imported for that one alone."""
    announce("first", twice="first:TWICE")
    found = Kernels()
    assert ("twice" in found, "first" in sys.modules) == (True, False)


def test_two_of_one_stem(announce):
    """Two packages of one stem are both named, when that kernel is asked for."""
    announce("first", twice="first:TWICE")
    announce("second", twice="second:TWICE")
    assert Kernels()["lora_shrink_qkv"]
    with pytest.raises(OracleError, match="announce one kernel `twice`") as caught:
        Kernels()["twice"]
    assert {"first", "second"} <= set(caught.value.what.split())


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("absent:TWICE", "is not there: No module named 'absent'"),
        ("first:ABSENT", "is not there: module 'first' has no attribute 'ABSENT'"),
        ("first:LATER", "is not a definition of `twice`"),
        ("first:replace", "is not a definition of `twice`"),
    ],
)
def test_what_is_announced_is_not_there(announce, value, what):
    """The error says who announced what."""
    announce("first", twice=value)
    with pytest.raises(OracleError) as caught:
        Kernels()["twice"]
    assert (caught.value.what, caught.value.where) == (what, f"`{value}`, announced by first")


@pytest.mark.parametrize("raises", ["1 / 0", "raise SystemExit(0)"])
def test_what_is_announced_raises(announce, tmp_path, raises):
    """The error says whose module it is; and none ends the program."""
    announce("first", twice="first:TWICE")
    (tmp_path / "first.py").write_text(raises)
    with pytest.raises(OracleError, match="cannot be imported: ") as caught:
        Kernels()["twice"]
    assert caught.value.where == "`first:TWICE`, announced by first"


def test_version_is_of_what_is_imported(announce, tmp_path):
    """What is kept of a run depends on the modules beside the one that is announced."""
    announce("first", twice="first:TWICE")
    (tmp_path / "second.py").write_text("")
    (tmp_path / "first.py").write_text(f"import second\n{DEFINITION}")
    before = Kernels()["twice"].version
    (tmp_path / "second.py").write_text("CHANGED = True\n")
    assert Kernels()["twice"].version != before


def test_find_loads_one_kernel():
    """Asking for one kernel imports no other."""
    code = (
        "import sys; from kernelpack.kernels.registry import find; find('lora_shrink_qkv');"
        "print(*[n for n in sys.modules if n.startswith('kernelpack.kernels.nvfp4')])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=ROOT)
    assert done.stdout.strip() == b""
