"""The nvcc front end, with a fake runner."""

from pathlib import Path

import pytest

from kernelpack.errors import CompileError, ToolchainError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Ptx
from kernelpack.toolchain import nvcc
from kernelpack.toolchain.toolchain import Toolchain
from tests.fakes.runner import FakeRunner
from tests.toolchain.samples import SHARED, sample
from tests.toolchain.tools import TOOLS


@pytest.fixture(autouse=True)
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host compiler is installed."""
    monkeypatch.setattr(nvcc, "host_compiler", lambda: Path("/usr/bin/g++"))


def compile_with(
    monkeypatch: pytest.MonkeyPatch, runner: FakeRunner, tools: Toolchain = TOOLS
) -> Ptx:
    monkeypatch.setattr(nvcc, "run", runner)
    return nvcc.compile_with_nvcc(sample("sm_90a"), tools, Arch("sm_90a"))


def good(**answer: object) -> FakeRunner:
    return FakeRunner(writes={"kernel.ptx": b"// ptx"}, **answer)  # type: ignore[arg-type]


def test_source_and_headers_stand_in_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiler sees the template's own paths, and headers under `include/`."""
    runner = good()
    compile_with(monkeypatch, runner)
    files = runner.calls[0].files
    assert (sorted(files), files["include/sample/shared.cuh"]) == (
        ["include/sample/shared.cuh", "sample/kernel.cu.j2"],
        SHARED,
    )


@pytest.mark.parametrize(
    "word", ["-arch=compute_90a", "-ccbin=/usr/bin/g++", "-std=c++17", "--ptx", "-lineinfo"]
)
def test_the_command_says(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """Target, host compiler and flags are words of the command."""
    runner = good()
    compile_with(monkeypatch, runner)
    assert word in runner.calls[0].command


def test_paths_in_its_ptx_are_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """A toolkit's header that nvcc names through `bin/..` has the toolkit's name."""
    line = b'\t.file\t1 "/site/cu13/bin/../include/cuda_bf16.hpp"\n'
    ptx = compile_with(monkeypatch, FakeRunner(writes={"kernel.ptx": line}))
    assert ptx.text == '\t.file\t1 "toolkit/cuda_bf16.hpp"\n'


def test_an_error_stands_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """nvcc's message becomes an error at the template's line."""
    runner = FakeRunner(returncode=1, stderr='sample/part.j2(31): error: identifier "x" is u\n')
    with pytest.raises(CompileError, match=r'^sample/part\.j2:31: identifier "x" is u'):
        compile_with(monkeypatch, runner)


def test_a_failure_without_a_message_shows_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be placed is shown as it is, with the variant."""
    runner = FakeRunner(returncode=1, stderr="nvcc fatal   : Unsupported gpu\n")
    with pytest.raises(CompileError, match=r"^sample\[arch=any\]: nvcc fatal   : Unsupported gpu"):
        compile_with(monkeypatch, runner)


def test_a_killed_compiler_is_no_fault_of_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal is an error of the toolchain, so the build may try again."""
    with pytest.raises(ToolchainError, match="nvcc was killed by SIGKILL"):
        compile_with(monkeypatch, FakeRunner(returncode=-9))


def test_the_host_compiler_names_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its version is the first line it prints; one that prints nothing is refused."""
    monkeypatch.setattr(nvcc, "run", FakeRunner(stdout="g++ (Debian) 12.2.0\nmore"))
    nvcc.host_version.cache_clear()
    assert nvcc.host_version() == "g++ (Debian) 12.2.0"
    nvcc.host_version.cache_clear()
    monkeypatch.setattr(nvcc, "run", FakeRunner(returncode=1))
    with pytest.raises(ToolchainError, match="does not say its version"):
        nvcc.host_version()


def test_without_a_host_compiler_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this front end needs a g++, and its absence has a name and a way out."""
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nowhere")
    nvcc.host_compiler.cache_clear()
    with pytest.raises(
        ToolchainError, match=r"needs a host g\+\+.*\nhint: .*use the front end nvr"
    ):
        nvcc.host_compiler()
