"""A toolkit in a folder that the caller names."""

from pathlib import Path

import pytest

from kernelpack.errors import ToolchainError
from kernelpack.toolchain import system
from kernelpack.toolchain.locate import find
from tests.fakes.runner import FakeRunner

SAYS = "Cuda compilation tools, release 13.1, V13.1.80\n"


@pytest.fixture
def toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files of CUDA 13.1."""
    files = {
        "bin/ptxas": "ptxas",
        "bin/nvcc": "nvcc",
        "nvvm/bin/cicc": "cicc",
        "lib64/libnvrtc.so.13": "nvrtc",
        "include/cuda_runtime_api.h": "#define CUDART_VERSION  13010",
        "include/cccl/cuda/std/cstdint": "// cccl",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setattr(system, "run", FakeRunner(stdout=SAYS))
    system._digest.cache_clear()
    return tmp_path


def test_the_release_is_what_ptxas_says(toolkit: Path) -> None:
    """A system toolkit has its own version."""
    assert find("system", root=toolkit).version == (13, 1)


def test_headers_of_cccl_come_after_the_toolkits(toolkit: Path) -> None:
    """CUDA 13 keeps CCCL in a folder of its own."""
    assert find("system", root=toolkit).include_dirs == (
        toolkit / "include",
        toolkit / "include" / "cccl",
    )


@pytest.mark.parametrize(("machine", "name"), [("x86_64", "x86_64"), ("aarch64", "sbsa")])
def test_the_layout_of_conda(
    toolkit: Path, monkeypatch: pytest.MonkeyPatch, machine: str, name: str
) -> None:
    """conda keeps headers and NVRTC below `targets`, and other packages' beside the programs."""
    below = toolkit / "targets" / f"{name}-linux"
    below.mkdir(parents=True)
    (toolkit / "include").rename(below / "include")
    (toolkit / "lib64").rename(below / "lib")
    monkeypatch.setattr(system, "machine", lambda: machine)
    found = find("system", root=toolkit)
    assert found.include_dirs[0] == below / "include"
    assert found.nvrtc_library == below / "lib" / "libnvrtc.so.13"


def test_headers_of_another_release_are_refused(toolkit: Path) -> None:
    """ptxas and the runtime headers must be of one release."""
    (toolkit / "include/cuda_runtime_api.h").write_text("#define CUDART_VERSION  12080")
    with pytest.raises(ToolchainError, match=r"the headers are of CUDA 12\.8, ptxas is 13\.1\.80"):
        find("system", root=toolkit)


@pytest.mark.parametrize(
    ("path", "front_end", "message"),
    [
        ("bin/ptxas", "nvrtc", "no bin/ptxas there"),
        ("bin/nvcc", "nvcc", "no bin/nvcc there"),
        ("lib64/libnvrtc.so.13", "nvrtc", "no lib64/libnvrtc.so there\nhint: `--front-end nvcc`"),
        ("include/cuda_runtime_api.h", "nvrtc", "no include/cuda_runtime_api.h there"),
    ],
)
def test_a_missing_part_is_named(toolkit: Path, path: str, front_end: str, message: str) -> None:
    """The error says what is missing in which folder."""
    (toolkit / path).unlink()
    with pytest.raises(ToolchainError, match=f"^{toolkit}: {message}"):
        find("system", front_end, root=toolkit)


def test_a_silent_ptxas_is_named(toolkit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that does not say its version is not ptxas."""
    monkeypatch.setattr(system, "run", FakeRunner(stdout="hello"))
    with pytest.raises(ToolchainError, match="bin/ptxas: ptxas does not say its version"):
        find("system", root=toolkit)


@pytest.mark.parametrize(
    ("path", "front_end", "same"),
    [
        ("include/cccl/cuda/std/cstdint", "nvrtc", False),
        ("lib64/libnvrtc.so.13", "nvrtc", False),
        ("nvvm/bin/cicc", "nvrtc", True),
        ("nvvm/bin/cicc", "nvcc", False),
        ("lib64/libnvrtc.so.13", "nvcc", True),
    ],
)
def test_the_digest_is_of_what_the_front_end_uses(
    toolkit: Path, path: str, front_end: str, same: bool
) -> None:
    """Another content of a part changes the digest for the front end that reads it."""
    before = find("system", front_end, root=toolkit).digest
    (toolkit / path).write_text("changed")
    system._digest.cache_clear()
    assert (find("system", front_end, root=toolkit).digest == before) == same
