"""Finding a toolchain by name."""

import time

import pytest

from kernelpack.errors import ToolchainError
from kernelpack.toolchain.locate import NAMES, find


@pytest.mark.parametrize(
    ("name", "front_end", "message"),
    [
        ("cuda-13.5", "nvrtc", "unknown toolchain `cuda-13.5` .*\nhint: did you mean `cuda-13.4`"),
        ("hip", "nvrtc", r"unknown toolchain `hip` \(known: cuda-13\.4, cuda-12\.9, system\)$"),
        ("cuda-13.4", "nvcrt", "unknown front end `nvcrt` .*\nhint: did you mean `nvrtc`"),
        ("cuda-12.9", "nvcc", "the wheels of cuda-12.9 hold no nvcc program"),
        ("system", "nvrtc", "no CUDA toolkit is found for `system`"),
    ],
)
def test_what_cannot_be_found_is_said(name: str, front_end: str, message: str) -> None:
    """A name that is not there is an error that says what is."""
    with pytest.raises(ToolchainError, match=message):
        find(name, front_end)


def test_the_default_is_the_first() -> None:
    """A user who names nothing gets CUDA 13.4."""
    assert NAMES[0] == "cuda-13.4"


@pytest.mark.toolchain
@pytest.mark.parametrize("name", ["cuda-13.4", "cuda-12.9"])
def test_installed_wheels_make_a_toolchain(name: str) -> None:
    """Every file that a found toolchain names is there."""
    found = find(name)
    paths = [found.nvrtc_library, found.nvcc, found.ptxas, *found.include_dirs]
    assert [str(path) for path in paths if path and not path.exists()] == []


@pytest.mark.toolchain
def test_finding_is_quick() -> None:
    """A rebuild that does nothing can afford to hold thousands of files to their record."""
    start = time.perf_counter()
    find()
    assert time.perf_counter() - start < 0.3
