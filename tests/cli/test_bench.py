"""`kernelpack bench` on a pretended GPU, where a test sets each variant's time."""

import json
from importlib import import_module

import pytest

from kernelpack.device import timing
from kernelpack.kernels.registry import KERNELS
from kernelpack.runtime.driver import Driver
from tests.device.clocked import Clocked, by_entry
from tests.device.test_apart import here
from tests.verify import small


@pytest.fixture(autouse=True)
def _gpu(monkeypatch):
    """The small kernel: its variant of tile 32, which selection takes, is the slower one."""
    monkeypatch.setitem(KERNELS, "twice", small.DEFINITION)
    monkeypatch.setattr(timing, "COPIED_BYTES", (1 << 12,))
    cuda = Clocked(by_entry(twice_32=8.0, twice_64=4.0))
    module = import_module("kernelpack.cli.bench")
    monkeypatch.setattr(module, "connect", lambda: Driver(cuda))
    monkeypatch.setattr(module, "apart", here)


@pytest.fixture
def bundle(tmp_path):
    return small.bundle(tmp_path / "x.kpk")


def rows(said):
    return json.loads(said.out)["variants"]


def test_chosen(kernelpack, bundle):
    """Without a choice the variant that selection takes; its time, spread and part of the floor."""
    said = kernelpack("bench", "twice", "n=500", "--bundle", bundle)
    assert said.code == 0
    assert "NVIDIA B200, compute capability 10.0), driver of CUDA 13.0" in said.out
    assert "1.00 us: 0.00 MB at 0.00 TB/s" in said.out
    line = "     8.00 us  spread  0.0%   12.5% of the floor  twice[arch=sm_100a,tile=32] (chosen)"
    assert said.out.splitlines()[-1] == line


def test_all(kernelpack, bundle):
    """Every variant that may serve, the fastest first."""
    said = kernelpack("bench", "twice", "n=500", "--bundle", bundle, "--all", "--json")
    found = [(row["id"], row["microseconds"], row["chosen"]) for row in rows(said)]
    assert found == [
        ("twice[arch=sm_100a,tile=64]", 4.0, False),
        ("twice[arch=sm_100a,tile=32]", 8.0, True),
    ]


def test_keep(kernelpack, bundle):
    """`-k` times what it keeps of those that may serve."""
    said = kernelpack("bench", "twice", "--bundle", bundle, "-k", "tile=64", "--json")
    assert [row["id"] for row in rows(said)] == ["twice[arch=sm_100a,tile=64]"]


def test_against(kernelpack, bundle, tmp_path):
    """Two bundles take turns; each line says whose it is."""
    other = small.written(tmp_path / "y.kpk", [(small.variant(64), small.ptx())])
    said = kernelpack("bench", "twice", "--bundle", bundle, "--against", other)
    assert [line.split("floor  ")[1] for line in said.out.splitlines()[-2:]] == [
        "y.kpk: twice[arch=sm_100a,tile=64] (chosen)",
        "x.kpk: twice[arch=sm_100a,tile=32] (chosen)",
    ]


def test_json(kernelpack, bundle):
    """The same for programs, with what it was measured on."""
    said = kernelpack("bench", "twice", "n=500", "--bundle", bundle, "--json")
    found = json.loads(said.out)
    assert (found["device"], found["problem"], found["argument_bytes"]) == (
        "NVIDIA B200",
        "n_500",
        4000,
    )
    assert (found["floor_microseconds"], rows(said)[0]["percent_of_floor"]) == (1.0, 12.5)


def test_served_by_none(kernelpack, bundle):
    """A problem that no variant serves is refused with the reasons."""
    said = kernelpack("bench", "twice", "n=2000", "--bundle", bundle, "--all")
    assert said.code == 1
    assert "n is too large" in said.err


def test_no_such_device(kernelpack, bundle):
    """A missing GPU is reported."""
    said = kernelpack("bench", "twice", "--bundle", bundle, "--device", "2")
    assert said.code == 1
    assert "there is no GPU 2" in said.err


def test_tuned(kernelpack, bundle, tmp_path, monkeypatch):
    """With times that were measured, what they choose is what is timed."""
    cuda = Clocked(by_entry(twice_32=8.0, twice_64=4.0))
    tune = import_module("kernelpack.cli.tune")
    monkeypatch.setattr(tune, "connect", lambda: Driver(cuda))
    monkeypatch.setattr(tune, "apart", here)
    output = tmp_path / "tuned.json"
    assert kernelpack("tune", bundle, "twice", "n=500", "-o", output).code == 0
    words = ("n=500", "--bundle", bundle, "--tuned", output, "--json")
    (row,) = rows(kernelpack("bench", "twice", *words))
    assert (row["id"], row["chosen"]) == ("twice[arch=sm_100a,tile=64]", True)


def test_counted(kernelpack, bundle):
    """On the emulator: instructions, bytes and multiplications, and no time."""
    said = kernelpack("bench", "twice", "n=40", "--bundle", bundle, "--on", "emulator", "--json")
    assert json.loads(said.out) == {
        "device": "CPU emulator of sm_100a, 148 multiprocessors",
        "problem": "n_40",
        "variant": "twice[arch=sm_100a,tile=32]",
        "ctas": 2,
        "warp_instructions": 28,
        "by_unit": {"integer": 12, "memory": 10, "control": 4, "float": 2},
        "bytes_moved": {"threads read global": 160, "threads write global": 160},
        "operations": {},
        "multiplications_of_tensor_cores": 0,
        "argument_bytes": 320,
    }


def test_counted_in_words(kernelpack, bundle):
    """The same for people; a default of the emulator's own."""
    said = kernelpack("bench", "twice", "--bundle", bundle, "--on", "emulator")
    assert "by unit                          integer 6, memory 5, control 2, float 1" in said.out
    assert "operations                       none" in said.out


@pytest.mark.parametrize(
    ("place", "words"),
    [("emulator", ["--all"]), ("emulator", ["-k", "tile"]), ("gpu", ["--arch", "sm_90a"])],
    ids=str,
)
def test_of_the_other_place(kernelpack, bundle, place, words):
    """An option of the other place is refused, not passed over."""
    said = kernelpack("bench", "twice", "--bundle", bundle, "--on", place, *words)
    assert said.code == 2
    assert f"{words[0]} is not for `--on {place}`" in said.err


def test_too_large_for_the_emulator(kernelpack, bundle, monkeypatch):
    """It is refused before an array is made."""
    monkeypatch.setattr("kernelpack.verify.room.available_bytes", lambda: 1)
    said = kernelpack("bench", "twice", "n=40", "--bundle", bundle, "--on", "emulator")
    assert (said.code, said.out) == (1, "")
    assert "this machine has 0 free" in said.err
