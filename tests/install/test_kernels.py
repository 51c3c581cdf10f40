"""`pip install` of kernelpack and of wheels of kernels: `load()` finds what is installed."""

import json
import subprocess
import sys
from sysconfig import get_path

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.wheel.wheel import wheels
from tests.install.test_wheel import BUILD, ROOT
from tests.wheel.conftest import make_bundle

pytestmark = pytest.mark.slow

LOAD = """
import json, sys
import kernelpack
from kernelpack.load.load import open_without_driver
bundle = open_without_driver()
texts = [bundle.holding(v.id).ptx(bundle.holding(v.id).find(v.id).ptx_digest).text
         for v in bundle.variants()]
print(json.dumps({
    "from": kernelpack.__file__,
    "targets": sorted({str(v.arch) for v in bundle.variants()}),
    "ptx": len(texts),
    "imported": [name for name in sys.modules if "cubins" in name],
}))
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    """A folder with the wheel of this checkout and those of a bundle of two families."""
    folder = tmp_path_factory.mktemp("index")
    command = [sys.executable, "-c", BUILD, str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    for wheel in wheels(open_bundle(make_bundle(tmp_path_factory.mktemp("bundle")))):
        (folder / wheel.filename).write_bytes(wheel.data)
    return folder


@pytest.fixture
def python(index, tmp_path):
    """Install wheels into an environment of their own, by name; then run code there.

    What kernelpack needs of others is borrowed from this interpreter: nothing is downloaded.
    """
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (site,) = home.glob("lib/python3.*/site-packages")
    pip = [sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "-q"]
    alone = ["--no-index", "--no-deps", "--find-links", index]

    def run(code, *names):
        subprocess.run([*pip, *alone, *names], check=True, capture_output=True)
        (site / "borrowed.pth").write_text(get_path("purelib"))
        command = [home / "bin" / "python", "-I", "-c", code]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
        return done.stdout.decode()

    return run


@pytest.mark.parametrize(
    ("families", "targets"), [(["sm100"], ["sm_100a"]), (["sm90", "sm100"], ["sm_100a", "sm_90a"])]
)
def test_installed_kernels_are_found(python, families, targets):
    """Those of one wheel, or of several together, with their PTX; nothing of them is imported."""
    names = [f"kernelpack-{kind}-{family}" for kind in ("cubins", "ptx") for family in families]
    told = json.loads(python(LOAD, "kernelpack", *names))
    assert "venv" in told["from"]
    assert (targets, 4 * len(targets), []) == (told["targets"], told["ptx"], told["imported"])
