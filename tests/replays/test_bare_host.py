"""A host of the plainest kind: no home, nowhere to write, no network, no driver, no GPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelpack.bundle.reader import twin_of
from kernelpack.bundle.writer import write_ptx
from kernelpack.spec.artifact import Ptx
from tests.fakes.bundles import provenance, write_bundle
from tests.fakes.variants import variant

ROOT = Path(__file__).parents[2]

GUARD = """
import os, sys
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
FORBIDDEN = {"os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate"}
def watch(event, arguments):
    is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES
    if is_write and arguments[0] != os.devnull:
        raise PermissionError(30, f"read-only: {arguments[0]}")
    if event in FORBIDDEN or event.startswith(("socket.connect", "socket.bind", "socket.getaddr")):
        raise PermissionError(30, f"{event} {arguments}")
sys.dont_write_bytecode = True
sys.addaudithook(watch)
"""
"""Root may write anywhere, so the interpreter stops whoever tries, and reports it."""

NO_CUDA = """
class NoCuda:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "cuda": raise ImportError(f"{name} was asked for")
sys.meta_path.insert(0, NoCuda())
"""

LAUNCH = """
from kernelpack.load.load import load
from kernelpack.runtime.driver import Driver
from tests.fakes.driver import FakeCuda
from tests.fakes.variants import variant
v = variant()
cuda = FakeCuda(signatures={v.entry: v.slots})
library = load(sys.argv[1], driver=Driver(cuda))
sizes = {"m": 100, "n": 16, "k": 72, "g": 4, "n_active": 3, "a_dtype": 9, "out_dtype": 9}
addresses = dict.fromkeys(("c", "a", "b", "a_offsets", "expert_ids"), 0x10000)
library.pack(library.select(v.kernel, sizes, 0), sizes, addresses, 0)(0)
print(len(cuda.launches))
"""

LOAD = """
import kernelpack
from kernelpack.errors import DriverError
try:
    kernelpack.load(sys.argv[1])
except DriverError as error:
    print(error)
"""

FORK = """
import kernelpack
kernelpack.load, kernelpack.ops
if child := os.fork():
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

MAIN = "from kernelpack.cli.main import main; main(sys.argv[1:])"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A bundle and its PTX, which nobody may write to."""
    path = write_bundle(tmp_path_factory.mktemp("bundle") / "x.kpk", [variant()])
    write_ptx([Ptx(text=f"ptx of {variant().id}")], twin_of(path), provenance())
    return path


def python(code, *words):
    """Run code as a service manager would: no home, a folder for temporary files that is not."""
    environment = {"PATH": os.defpath, "TMPDIR": "/nonexistent", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", code, *map(str, words)]
    plain = {"env": environment, "cwd": "/", "capture_output": True, "text": True}
    return subprocess.run(command, check=False, **plain)


def test_the_guard_guards():
    """Whoever writes is stopped: otherwise the tests below would show nothing."""
    assert "read-only: x" in python(f"{GUARD}open('x', 'w')").stderr


def test_nothing_is_written_or_sent(bundle):
    """Importing, opening, choosing, loading and launching need nothing but to read."""
    done = python(GUARD + LAUNCH, bundle)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


@pytest.mark.parametrize("words", [["info"], ["ls"], ["info", "--sbom"], ["check"]], ids=" ".join)
def test_commands_write_nothing_and_ask_for_no_driver(bundle, words):
    """What looks at a bundle runs where there is neither a place to write nor CUDA."""
    done = python(GUARD + NO_CUDA + MAIN, words[0], bundle, *words[1:])
    assert "Traceback" not in done.stderr
    assert variant().id in done.stdout or "entries" in done.stdout


@pytest.mark.parametrize("words", [["list"], ["--help"], ["--version"]], ids=" ".join)
def test_commands_without_a_bundle(words):
    """So does what looks at manifests."""
    done = python(GUARD + NO_CUDA + MAIN, *words)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


def test_commands_that_write_ask_for_no_driver(bundle, tmp_path):
    """A bundle is taken apart and wrapped where there is no CUDA."""
    words = [("extract", bundle, "-o", tmp_path / "x"), ("wheel", bundle, "-o", tmp_path / "d")]
    assert [python(f"import sys\n{NO_CUDA}{MAIN}", *each).returncode for each in words] == [0, 0]


def test_load_without_libcuda(bundle):
    """Loading is refused by name: what is missing, and what to install."""
    done = python(GUARD + NO_CUDA + LOAD, bundle)
    assert done.returncode == 0
    assert "hint: " in done.stdout


def test_fork_after_import():
    """A process that has only imported may fork; nothing of a driver is in it."""
    assert python(f"{GUARD}{NO_CUDA}{FORK}").returncode == 0
