"""Programs that load bundles by the C++ loader or the C interface, with no GPU."""

import shutil
from dataclasses import replace

import pytest

from kernelpack.bundle.reader import twin_of
from kernelpack.bundle.writer import write, write_ptx
from kernelpack.cli.main import main
from tests.cpp.compiler import INCLUDE, compile_program
from tests.emulate.images import elf
from tests.fakes.bundles import provenance
from tests.kept import FOLDER, ROOT
from tests.verify import small

pytestmark = pytest.mark.toolchain

EXAMPLE = ROOT / "examples" / "cpp_server"
HERE = ROOT / "tests" / "emulate"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """bundles.cpp."""
    made = tmp_path_factory.mktemp("program") / "program"
    interface = str(INCLUDE / "kernelpack" / "kernelpack.cpp")
    return compile_program(HERE / "bundles.cpp", made, f"-I{EXAMPLE}", libraries=[interface])


@pytest.fixture
def emulated(libraries, capfd, monkeypatch):
    """Run `kernelpack emulate WORD ...`: the exit code, stdout and stderr."""
    monkeypatch.setenv("KERNELPACK_CACHE_DIR", str(FOLDER))

    def run(*words):
        with pytest.raises(SystemExit) as left:
            main(["emulate", *map(str, words)])
        return left.value.code, *capfd.readouterr()

    return run


@pytest.fixture
def bundle(tmp_path):
    """The kernel `twice` for a B200, its machine code an ELF file, and its PTX beside it."""
    return written(tmp_path / "x.kpk", "one")


def written(path, code):
    made = replace(small.entry(small.variant(), small.ptx()), image=elf({code: b"code"}))
    write([made], path, provenance("13.4"))
    write_ptx([small.ptx()], twin_of(path), provenance("13.4"))
    return path


@pytest.mark.parametrize("way", ["loader", "c"])
def test_both_ways_in(emulated, program, bundle, way):
    """A program whose argument is a bundle runs by the PTX beside it, with no option."""
    code, printed, told = emulated(program, bundle, way)
    assert (code, printed) == (0, "2 78\n")
    assert "1 launch, " in told
    assert "0 findings and 0 errors" in told


def test_no_twin(emulated, program, bundle):
    """It is missed before the program starts."""
    twin_of(bundle).unlink()
    code, printed, told = emulated(program, bundle, "loader")
    assert (code, printed) == (1, "")
    assert f"{twin_of(bundle)}: the PTX of this bundle is missing" in told


def test_another_target(emulated, program, bundle):
    """The error names the right option."""
    code, printed, told = emulated("--device", "h100", program, bundle, "loader")
    assert (code, printed) == (1, "")
    assert f"{bundle}: built for sm_100a, and the device is an Emulated H100" in told
    assert "hint: --device b200" in told


def test_machine_code_of_another_bundle(emulated, program, bundle, tmp_path):
    """A bundle that the program opens by a name that no argument has must be named."""
    other = written(tmp_path / "other.kpk", "two")
    hidden = tmp_path / "hidden"
    shutil.copy(other, hidden)
    code, printed, told = emulated("--bundle", bundle, program, hidden, "loader")
    assert (code, "NOT_SUPPORTED (801)" in printed) == (1, True)
    assert f"machine code that is not of {bundle}" in told
    assert emulated("--bundle", other, program, hidden, "loader")[:2] == (0, "2 78\n")


@pytest.mark.slow
def test_the_example_server(emulated, tmp_path, monkeypatch):
    """Two threads serve a request each, and every number is right."""
    server = compile_program(EXAMPLE / "server.cpp", tmp_path / "server", "-O2")
    monkeypatch.setenv("KERNELPACK_CACHE_DIR", str(FOLDER))
    path = tmp_path / "kernels.kpk"
    manifest = ROOT / "manifests" / "mla_decode_project.yaml"
    with pytest.raises(SystemExit) as left:
        main(["build", "-t", "sm_90a", "-o", str(path), str(manifest)])
    assert left.value.code == 0
    code, printed, told = emulated("--device", "h100", server, path, 0, 1, 2)
    assert code == 0
    assert "2 requests served by 2 threads" in printed
    assert "elements checked, 0 requests wrong" in printed
    assert "2 launches, " in told
