"""The wheel: the package, with its templates and manifests as data, typed, and light."""

import json
import re
import subprocess
import sys
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

import pytest

from kernelpack import __version__

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
LIST = "from kernelpack.cli.main import main; main(['list', '--json'])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-c", BUILD, str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel):
    return set(ZipFile(wheel).namelist())


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with the wheel's files and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("site")
    ZipFile(wheel).extractall(folder)
    return folder


def under(folder, pattern):
    return {str(path.relative_to(ROOT)) for path in (ROOT / folder).rglob(pattern)}


@pytest.mark.parametrize(
    ("folder", "pattern"),
    [
        ("templates", "*.j2"),
        ("templates", "*.cuh"),
        ("manifests", "*.yaml"),
        ("examples/kernels", "*.yaml"),
        ("examples/kernels", "*.j2"),
        ("examples/kernels", "*.py"),
    ],
)
def test_holds_the_sources(names, folder, pattern):
    """Every template, header and manifest is in the wheel."""
    sources = under(folder, pattern)
    assert sources
    assert {f"kernelpack/data/{path}" for path in sources} - names == set()


def test_holds_the_package(names):
    """Every module is in it, with the mark that says it is typed."""
    assert under("kernelpack", "*.py") - names == set()
    assert "kernelpack/py.typed" in names


def test_holds_nothing_else(names):
    """No tests, no documents, no caches."""
    tops = {name.split("/")[0] for name in names}
    assert tops == {"kernelpack", f"kernelpack-{__version__}.dist-info"}
    assert [name for name in names if "__pycache__" in name] == []


def test_light_by_default(wheel):
    """The builder's packages are asked for by extras alone."""
    with ZipFile(wheel) as file:
        text = file.read(f"kernelpack-{__version__}.dist-info/METADATA").decode()
    required = message_from_string(text).get_all("Requires-Dist")
    plain = {re.split(r"[<>=]", line)[0] for line in required if "extra ==" not in line}
    assert {"jinja2", "pydantic", "ruamel-yaml", "cuda-toolkit"} & plain == set()
    assert {"numpy", "click", "rich", "zstandard", "filelock", "platformdirs"} - plain == set()


def test_holds_the_licence(names, wheel):
    """The text of the licence that its metadata name comes with it."""
    (path,) = (name for name in names if name.endswith("licenses/LICENSE"))
    assert ZipFile(wheel).read(path) == (ROOT / "LICENSE").read_bytes()


def test_command(wheel):
    """`kernelpack` is installed as a command."""
    with ZipFile(wheel) as file:
        text = file.read(f"kernelpack-{__version__}.dist-info/entry_points.txt").decode()
    assert "kernelpack = kernelpack.__main__:main" in text


def test_builds_from_its_own_data(installed, tmp_path):
    """Far from any checkout, the installed package finds its manifests and expands them."""
    environment = {"PYTHONPATH": str(installed), "HOME": str(tmp_path)}
    command = [sys.executable, "-c", LIST]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert json.loads(done.stdout)["variants"]
