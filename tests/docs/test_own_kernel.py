"""The guide to a kernel of one's own runs: three files, every command, Python, C++."""

from importlib import import_module

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.cli.main import main
from kernelpack.formats.dtype import DType
from kernelpack.runtime.driver import Driver
from tests.cpp.compiler import compile_program
from tests.docs.pages import ROOT, blocks, commands
from tests.host import need
from tests.kept import FOLDER
from tests.ops.bench import Bench

PAGE = "docs/guides/own-kernel.md"
EXAMPLE = ROOT / "examples" / "kernels" / "rms_norm"
pytestmark = [pytest.mark.toolchain, pytest.mark.slow]


def files():
    """The three files of the page, by name."""
    oracle, *_ = blocks(PAGE, "python")
    (manifest,), (template,) = blocks(PAGE, "yaml"), blocks(PAGE, "cuda")
    return {"rms_norm.yaml": manifest, "rms_norm.cu.j2": template, "rms_norm.py": oracle}


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with the kernel's folder in it, and nothing else."""
    root = tmp_path_factory.mktemp("own")
    (root / "rms_norm").mkdir()
    for name, text in files().items():
        (root / "rms_norm" / name).write_text(text)
    return root


@pytest.fixture(scope="module")
def said(here):
    """What each command comes to, run one after another."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        patch.setenv("KERNELPACK_CACHE_DIR", str(FOLDER))
        return {words[0]: exit_code(words) for words in commands(PAGE)}


def exit_code(words):
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return left.value.code


@pytest.mark.parametrize("name", ["rms_norm.yaml", "rms_norm.cu.j2", "rms_norm.py"])
def test_the_files_are_the_examples(name):
    """What the page shows is what `kernelpack new --like rms_norm` writes."""
    assert files()[name] == (EXAMPLE / name).read_text()


@pytest.mark.parametrize("verb", [words[0] for words in commands(PAGE)])
def test_commands(said, verb):
    """Every command does what it is there for."""
    assert said[verb] == 0


def test_wheels(said, here):
    """There is a wheel of machine code and one of PTX for each target, and one of the sources."""
    names = {path.name.partition("-1.0-")[0] for path in (here / "dist").iterdir()}
    parts = ("cubins_sm100", "cubins_sm90", "ptx_sm100", "ptx_sm90", "kernels")
    assert names == {f"rms_norm_{part}" for part in parts}


def test_python(said, here, tmp_path, monkeypatch):
    """The page's Python computes on the emulator, and launches the same on a GPU, twice."""
    bench = Bench(tmp_path)
    monkeypatch.setattr(
        import_module("kernelpack.load.load"), "connect", lambda: Driver(bench.cuda)
    )
    variants = open_bundle(here / "rms_norm.kpk").variants()
    bench.cuda.signatures.update({v.entry: v.slots for v in variants})
    monkeypatch.chdir(here)
    x, w = (bench.array(shape, DType.BF16) for shape in ((2, 1024), (1024,)))
    names = {"x": x, "w": w, "stream": bench.cuda.new_stream()}
    _, *code = blocks(PAGE, "python")
    exec("\n".join(code), names)
    launched = [(launch.entry, launch.grid) for launch in bench.cuda.launches]
    assert launched == 2 * [("rms_norm_bf16_1024", (2, 1, 1))]


def test_cpp(said, here, capfd, monkeypatch):
    """The page's program loads the bundle and computes the same on the emulator."""
    need("g++")
    monkeypatch.setenv("KERNELPACK_CACHE_DIR", str(FOLDER))
    (code,) = blocks(PAGE, "cpp")
    source = here / "server.cpp"
    source.write_text(code)
    program = compile_program(source, here / "server")
    assert exit_code(["emulate", program, here / "rms_norm.kpk"]) == 0
    assert capfd.readouterr().out == "y[0] is 2\n"
