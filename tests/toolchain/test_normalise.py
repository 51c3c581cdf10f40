"""PTX without traces of the machine that made it."""

import pytest

from kernelpack.toolchain.lines import paths_of
from kernelpack.toolchain.normalise import normalise
from tests.toolchain.samples import sample

PATHS = paths_of(sample("sm_90a"), ["/build/dir"], [])


@pytest.mark.parametrize("rest", ["", ", 1764288000, 5172"])
def test_files_are_names_alone(rest: str) -> None:
    """Folders, times and sizes of this machine do not reach the PTX's digest."""
    line = f'\t.file\t1 "/build/dir/sample/kernel.cu.j2"{rest}\n'
    assert normalise(line, PATHS) == '\t.file\t1 "sample/kernel.cu.j2"\n'


def listed(name: str, separator: str) -> str:
    return ".b8 " + separator.join(str(byte) for byte in f"{name}\0".encode())


@pytest.mark.parametrize("separator", [",", "\n.b8 ", "\n\t.b8 "])
def test_internal_names_have_a_hash_of_zeros(separator: str) -> None:
    """nvcc makes the hash from the folder it is in, whichever way the bytes are listed."""
    text = listed("_ZN42_INTERNAL_c69df122_12_kernel_cu_j2_sample1fEv", separator)
    expected = listed("_ZN42_INTERNAL_00000000_12_kernel_cu_j2_sample1fEv", separator)
    assert normalise(text, PATHS) == expected


def test_other_names_stay() -> None:
    """A name that only begins alike is not touched."""
    text = listed("_INTERNAL_c69df12_f", ",")
    assert normalise(text, PATHS) == text
