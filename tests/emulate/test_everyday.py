"""Ordinary CUDA programs print on the emulator what they print on a GPU.

The texts beside the programs are what an H200 gave (driver 580.159.04, runtime 13.4, 2026-11-28),
where each was compiled as a program of its own:

    nvcc -O2 -gencode arch=compute_90,code=[compute_90,sm_90] -cudart none X.cu -lcudart

Here one program has them all, for nvcc is what takes time.
"""

import subprocess
from pathlib import Path

import pytest

from kernelpack.emulate.devices import find as find_device
from kernelpack.emulate.emulate import emulate
from kernelpack.emulate.options import Options
from kernelpack.toolchain.locate import find
from tests.host import need

pytestmark = pytest.mark.toolchain

FOLDER = Path(__file__).parent / "everyday"
PROGRAMS = sorted(path.stem for path in FOLDER.glob("*.txt"))
FLAGS = (
    *("-std=c++17", "-O2", "-gencode=arch=compute_90,code=compute_90"),
    *("--compress-mode=none", "-cudart=none", "-lineinfo"),
)


@pytest.fixture(scope="module")
def everyday(libraries, tmp_path_factory):
    """The program that has them all."""
    need("g++")
    made = tmp_path_factory.mktemp("everyday") / "everyday"
    link = [f"-L{libraries}", "-lcudart", "-lcuda"]
    command = [find().nvcc, *FLAGS, FOLDER / "everyday.cu", *link, "-o", made]
    subprocess.run(command, check=True)
    return made


def test_every_program_is_in_the_one_that_has_them_all():
    """A program that is added is listed, and has its text."""
    sources = {path.stem for path in FOLDER.glob("*.cu")} - {"everyday"}
    listed = set((FOLDER / "everyday.cu").read_text().split("DO(")[1:])
    assert (sources, {word.split(")")[0] for word in listed}) == (set(PROGRAMS), set(PROGRAMS))


@pytest.mark.parametrize("program", PROGRAMS)
def test_prints_what_a_gpu_printed(everyday, libraries, capfd, program):
    """Numbers to the bit, errors by their names; and nothing is found in a right program."""
    told = []
    device = find_device("h100")
    report = emulate([str(everyday), program], libraries, Options(device=device), told.append)
    assert capfd.readouterr().out == (FOLDER / f"{program}.txt").read_text()
    assert [line for line in told if "race" in line or "deadlock" in line] == []
    assert report.returncode == 0
