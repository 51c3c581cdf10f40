"""`kernelpack verify --on gpu` on a GPU that is pretended."""

import json
from functools import partial
from importlib import import_module

import pytest

from kernelpack.device.verify import verify
from kernelpack.kernels.registry import KERNELS
from tests.device import twice
from tests.device.test_verify import here
from tests.verify import small


@pytest.fixture
def right(tmp_path):
    """A bundle without its PTX, as a wheel has it."""
    path = small.bundle(tmp_path / "x.kpk")
    path.with_suffix(".ptx.kpk").unlink()
    return path


@pytest.fixture
def gpu(monkeypatch):
    """Put a pretended GPU under `verify`, in this process."""
    monkeypatch.setitem(KERNELS, "twice", small.DEFINITION)

    def use(spoil=None):
        run = partial(verify, run=here, connect=twice.connecting(spoil))
        monkeypatch.setattr(import_module("kernelpack.cli.on_gpu"), "verify", run)

    return use


def test_right(kernelpack, gpu, right):
    """A right bundle: exit 0; device, driver and the sum on stdout; the record beside it."""
    gpu()
    said = kernelpack("verify", right, "--on", "gpu")
    assert said.code == 0
    assert said.out.startswith(
        "x.kpk on device 0 (NVIDIA B200, compute capability 10.0), driver of CUDA 13.0\n"
    )
    assert "2 of 2 variants right in all of theirs" in said.out
    assert f"wrote {right.with_name('x.verified.nvidia-b200.json')}" in said.err


def test_wrong(kernelpack, gpu, right):
    """Memory written around an output: exit 1, and the array is named."""
    gpu(twice.after)
    said = kernelpack("verify", right, "--on", "gpu")
    assert said.code == 1
    assert "written-outside: 4 runs of 1 variant" in said.out
    assert "memory around `y` was written" in said.out


def test_options(kernelpack, gpu, right):
    """A choice and a number of repeats; as JSON the record is printed."""
    gpu()
    words = ("-k", "tile=64", "--repeats", "2", "--device", "0", "--json")
    said = kernelpack("verify", right, "--on", "gpu", *words)
    (record,) = json.loads(said.out)
    assert (record["right"], record["repeats"], len(record["entries"])) == (True, 2, 1)


def test_no_gpu(kernelpack, right):
    """A machine without a driver: exit 1, and what to do without one."""
    said = kernelpack("verify", right, "--on", "gpu")
    assert said.code == 1
    assert "libcuda" in said.err


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("gpu", ["--full"]),
        ("gpu", ["--schedule", "eager"]),
        ("gpu", ["--level", "strict"]),
        ("emulator", ["--repeats", "2"]),
        ("emulator", ["--time-limit", "9"]),
    ],
    ids=str,
)
def test_of_the_other_place(kernelpack, right, place, words):
    """An option of the other place is refused, not passed over."""
    said = kernelpack("verify", right, "--on", place, *words)
    assert said.code == 2
    assert f"{words[0]} is not for `--on {place}`" in said.err
