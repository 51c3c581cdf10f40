"""`kernelpack tune` on a GPU that is pretended."""

import json
from importlib import import_module

import pytest

from kernelpack.device.apart import LostError
from kernelpack.kernels.registry import KERNELS
from kernelpack.load.overlay import read_overlay
from kernelpack.runtime.driver import Driver
from tests.device.clocked import Clocked, by_entry
from tests.device.test_apart import here
from tests.verify import small


@pytest.fixture(autouse=True)
def _gpu(monkeypatch):
    """The variant of tile 32, which selection takes, takes twice as long as that of tile 64."""
    monkeypatch.setitem(KERNELS, "twice", small.DEFINITION)
    cuda = Clocked(by_entry(twice_32=8.0, twice_64=4.0))
    module = import_module("kernelpack.cli.tune")
    monkeypatch.setattr(module, "connect", lambda: Driver(cuda))
    monkeypatch.setattr(module, "apart", here)


@pytest.fixture
def bundle(tmp_path):
    return small.bundle(tmp_path / "x.kpk")


def problems(path):
    (kernel,) = read_overlay(path).kernels
    return [problem.sizes["n"] for problem in kernel.problems]


def test_one(kernelpack, bundle):
    """A problem: both choices, their times, the gain; the overlay lies beside the bundle."""
    said = kernelpack("tune", bundle, "twice", "n=40")
    assert said.code == 0
    line, total = said.out.splitlines()
    assert line == (
        "     8.00 ->      4.00 us  x2.000  n=40: twice[arch=sm_100a,tile=64] instead of "
        "twice[arch=sm_100a,tile=32]"
    )
    assert total == "1 problem, 1 with another choice; x2.000 in the geometric mean"
    path = bundle.with_name("x.tuned.nvidia-b200.json")
    assert f"wrote {path}" in said.err
    assert problems(path) == [40]


def test_shapes(kernelpack, bundle, tmp_path):
    """A file of problems, each once, and sizes too; the option says where the overlay goes."""
    shapes, output = tmp_path / "shapes.txt", tmp_path / "o.json"
    shapes.write_text("# few\nn=5\n\nn=40  # some\nn=5\n")
    assert kernelpack("tune", bundle, "twice", "--shapes", shapes, "-o", output).code == 0
    assert problems(output) == [5, 40]
    assert kernelpack("tune", bundle, "twice", "n=64", "--shapes", shapes, "-o", output).code == 0
    assert problems(output) == [5, 40, 64]


def test_json(kernelpack, bundle):
    """The same for programs."""
    (found,) = json.loads(kernelpack("tune", bundle, "twice", "n=40", "--json").out)
    assert (found["sizes"], found["gain"], found["measured_now"]) == ({"n": 40}, 2.0, True)
    assert found["tuned"] == "twice[arch=sm_100a,tile=64]"


@pytest.mark.parametrize(
    ("text", "words"),
    [("n=5\nn\n", "shapes.txt:2: `n` is not a size"), ("# none\n", "holds no problem")],
    ids=["no size", "empty"],
)
def test_wrong_shapes(kernelpack, bundle, tmp_path, text, words):
    """The error of a line that is not a problem has its number."""
    (tmp_path / "shapes.txt").write_text(text)
    said = kernelpack("tune", bundle, "twice", "--shapes", tmp_path / "shapes.txt")
    assert said.code == 1
    assert words in said.err


def test_no_shapes(kernelpack, bundle, tmp_path):
    """The error of a missing file of problems has its path."""
    said = kernelpack("tune", bundle, "twice", "--shapes", tmp_path / "none.txt")
    assert said.code == 1
    assert f"{tmp_path / 'none.txt'}: No such file" in said.err


def test_a_kernel_is_lost(kernelpack, bundle, monkeypatch):
    """It is reported with what ended it, the others are measured, and the exit code is 1."""
    lost = "twice[arch=sm_100a,tile=32]"

    def dying(work, without, limit_s):
        if lost not in without:
            raise LostError("its process was killed by SIGABRT", where=lost)
        return here(work, without, limit_s)

    monkeypatch.setattr(import_module("kernelpack.cli.tune"), "apart", dying)
    said = kernelpack("tune", bundle, "twice", "n=40")
    assert said.code == 1
    assert f"error: {lost}: its process was killed by SIGABRT" in said.err
    assert "lost ->      4.00 us  x1.000  n=40" in said.out
