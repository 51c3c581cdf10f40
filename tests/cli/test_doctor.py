"""`kernelpack doctor`, with and without a GPU."""

import json
import sys
from importlib import import_module

import pytest

from kernelpack.cli.doctor import targets_of
from kernelpack.emulator.core import compiled
from kernelpack.errors import DriverError, ToolchainError
from kernelpack.runtime.driver import Driver
from kernelpack.spec.arch import TARGETS
from tests.fakes.driver import FakeCuda, FakeDevice

NOTHING = FakeDevice(name="NVIDIA T4", capability=(7, 5), sm_count=40)


@pytest.fixture
def machine(monkeypatch):
    """Pretend a machine with these GPUs; with no driver if None."""

    def pretend(*devices):
        def connect():
            if devices == (None,):
                raise DriverError("libcuda was not found")
            return Driver(FakeCuda(devices=devices))

        monkeypatch.setattr(import_module("kernelpack.cli.doctor"), "connect", connect)

    return pretend


def facts(kernelpack):
    return json.loads(kernelpack("doctor", "--json").out)


@pytest.mark.parametrize(
    ("devices", "code"),
    [([None], 1), ([], 1), ([NOTHING], 1), ([FakeDevice()], 0), ([NOTHING, FakeDevice()], 0)],
)
def test_gpu(kernelpack, machine, devices, code):
    """`--gpu` is a question for scripts: silent, 0 only where a GPU runs a target."""
    machine(*devices)
    said = kernelpack("doctor", "--gpu")
    assert (said.code, said.out, said.err) == (code, "", "")


def test_no_driver(kernelpack, machine):
    """A machine with no driver is well: the driver's line says why there is none."""
    machine(None)
    said = kernelpack("doctor")
    assert said.code == 0
    assert "none (libcuda was not found)" in said.out


@pytest.mark.parametrize(
    ("kept", "words", "said"),
    [
        (True, ("c++", "-O3"), "compiled; by c++ -O3"),
        (False, ("c++",), "not compiled yet, takes a minute at its first use; by c++"),
        (False, None, "no: there is no C++ compiler"),
    ],
)
def test_the_engine_of_the_emulator(kernelpack, machine, monkeypatch, kept, words, said):
    """Whether it is there; if not, whether it can be made."""

    def compiler():
        if words is None:
            raise ToolchainError("there is no C++ compiler")
        return words

    machine(None)
    monkeypatch.setattr(compiled, "compiler", compiler)
    monkeypatch.setattr(compiled, "is_kept", lambda _: kept)
    assert facts(kernelpack)["emulator"] == said


def test_gpus(kernelpack, machine):
    """Each GPU is listed with what it runs."""
    machine(FakeDevice(), NOTHING)
    told = facts(kernelpack)
    assert told["driver"] == "driver of CUDA 13.0"
    assert told["GPU 0"] == "device 0 (NVIDIA H100, compute capability 9.0); runs sm_90a"
    assert told["GPU 1"].endswith("runs nothing")


@pytest.mark.toolchain
def test_toolchains(kernelpack, machine):
    """The default toolchain is found, with what it builds and its compilers' versions."""
    machine(None)
    told = facts(kernelpack)
    assert told["cuda-13.4 (nvrtc)"].startswith(f"builds {', '.join(TARGETS)}; nvcc 13")


def test_no_builder(kernelpack, machine, monkeypatch):
    """Without the builder each toolchain's line says how to get it."""
    machine(None)
    monkeypatch.setitem(sys.modules, "kernelpack.toolchain.locate", None)
    assert "pip install '.[build]'" in facts(kernelpack)["cuda-13.4 (nvrtc)"]


@pytest.mark.parametrize("name", ["KERNELPACK_CACHE_DIR", "KERNELPACK_BUNDLE", "CUDA_HOME"])
def test_variables(kernelpack, machine, monkeypatch, tmp_path, name):
    """Every variable that changes anything is listed with its value."""
    machine(None)
    monkeypatch.setenv(name, str(tmp_path / "there"))
    assert facts(kernelpack)[name] == str(tmp_path / "there")


def test_variables_that_are_not_set(kernelpack, machine, monkeypatch):
    """One that is not set is listed as well."""
    machine(None)
    assert facts(kernelpack)["KERNELPACK_BUNDLE"] == "none"


@pytest.mark.parametrize(
    ("capability", "expected"),
    [
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a, sm_100f"),
        ((10, 3), "sm_103a, sm_100f"),
        ((8, 0), ""),
    ],
)
def test_targets_of(capability, expected):
    """A device runs the targets whose family has its capability."""
    assert targets_of(capability) == expected
