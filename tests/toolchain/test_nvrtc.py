"""NVRTC, called in a process."""

import ctypes
from pathlib import Path

import pytest

from kernelpack.errors import CompileError, ToolchainError
from kernelpack.spec.artifact import Ptx
from kernelpack.toolchain import nvrtc
from tests.toolchain.conftest import Compile
from tests.toolchain.samples import sample, source

TOOLCHAINS = ["cuda-13.4", "cuda-12.9"]


class FakeLibrary:
    """An NVRTC that says it is 13.4."""

    def nvrtcVersion(self, major: object, minor: object) -> int:  # noqa: N802 - NVRTC's name
        major._obj.value, minor._obj.value = 13, 4  # type: ignore[attr-defined]
        return 0


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The libraries this process serves: none yet, and every load succeeds."""
    monkeypatch.setattr(nvrtc, "_served", [])
    monkeypatch.setattr(ctypes, "CDLL", lambda _: FakeLibrary())
    nvrtc._load.cache_clear()
    return nvrtc._served


def test_a_process_serves_one_library(served: list[Path]) -> None:
    """A second NVRTC would share symbols with the first, so it is refused by name."""
    served.append(Path("/site/libnvrtc.so.12"))
    with pytest.raises(ToolchainError, match=r"so\.13: this process already serves /site/.*so\.12"):
        nvrtc._load(Path("/site/libnvrtc.so.13"), "13.4")


def test_the_library_must_be_of_its_release(served: list[Path]) -> None:
    """A library that says another version than its wheel is refused."""
    with pytest.raises(ToolchainError, match=r"the library is NVRTC 13\.4, not 13\.3"):
        nvrtc._load(Path("/site/libnvrtc.so.13"), "13.3")


def test_a_library_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loader's reason and the path are in the error."""
    monkeypatch.setattr(nvrtc, "_served", [])  # whatever tests before have loaded
    nvrtc._load.cache_clear()
    with pytest.raises(ToolchainError, match=r"^/no/libnvrtc\.so\.13: cannot be loaded"):
        nvrtc._load(Path("/no/libnvrtc.so.13"), "13.4")


def compile_error(compile_in_worker: Compile, toolchain: str, extra: str) -> CompileError:
    with pytest.raises(CompileError) as caught:
        compile_in_worker(toolchain, "nvrtc", "sm_90a", sample("sm_90a", extra=extra))
    return caught.value


@pytest.mark.toolchain
@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_errors_stand_at_the_templates_line(compile_in_worker: Compile, toolchain: str) -> None:
    """Each error has its place under `templates/`, and the source line it is about."""
    error = compile_error(compile_in_worker, toolchain, "\n    out[0] = one;\n    two(3);\n")
    assert str(error).splitlines()[:-1] == [
        'sample/part.j2:31: identifier "one" is undefined',
        "      out[0] = one;",
        "               ^",
        'sample/part.j2:32: identifier "two" is undefined',
        "      two(3);",
        "      ^",
    ]


@pytest.mark.toolchain
def test_a_missing_header_is_named(compile_in_worker: Compile) -> None:
    """A header that the source does not carry is an error at its `#include`."""
    with pytest.raises(CompileError, match=r'^a\.j2:7: .*"sample/none\.cuh"'):
        compile_in_worker(
            "cuda-13.4", "nvrtc", "sm_90a", source('#line 7 "a.j2"\n#include <sample/none.cuh>\n')
        )


@pytest.mark.toolchain
def test_a_warning_is_a_refusal(compile_in_worker: Compile) -> None:
    """A warning that nobody would see stops the build."""
    error = compile_error(compile_in_worker, "cuda-13.4", "    unsigned big = -1.5f;\n")
    assert error.where == "sample/part.j2:30"


@pytest.mark.toolchain
def test_unused_constants_are_fine(compile_in_worker: Compile) -> None:
    """A template declares all its constants; a variant need not use each."""
    extra = "    constexpr int UNUSED = 3;\n    if (UNUSED > 4) return;\n"
    ptx = compile_in_worker("cuda-13.4", "nvrtc", "sm_90a", sample("sm_90a", extra=extra))
    assert isinstance(ptx, Ptx)
