"""The C interface: a program in C does what one in C++ does."""

import subprocess

import pytest

from tests.cpp.compiler import HERE, INCLUDE, ask, compile_program, written
from tests.fakes.keys import make_keys
from tests.fakes.variants import variant

MISSING, GIVE = "/no/such.kpk", "give the path of a `.kpk` file"


@pytest.fixture(scope="module")
def program(programs):
    """c_abi.c, compiled as C, with the interface linked in."""
    compiled = programs / "c_abi.o"
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "-c"]
    subprocess.run([*command, HERE / "c_abi.c", "-o", compiled], check=True)
    source = INCLUDE / "kernelpack" / "kernelpack.cpp"
    return compile_program(
        source, programs / "c_abi", "-fsanitize=address,undefined", libraries=[str(compiled)]
    )


@pytest.fixture(scope="module")
def told(program, libcuda, tmp_path_factory):
    """What the program prints, by its first word; launches in order."""
    folder = tmp_path_factory.mktemp("c")
    bundles = (
        written(folder / f"{arch}.kpk", [variant(arch=arch)]) for arch in ("sm_90a", "sm_100a")
    )
    return ask(program, libcuda, *bundles, make_keys(folder)[1])


@pytest.mark.parametrize(
    "line",
    [
        f"no file 1 {MISSING}|cannot be read: No such file or directory|{GIVE}",
        "no paths 9 |paths and a place for the library are needed|see kernelpack.h",
        "open 0",
        "2 devices; NVIDIA B200 10.0, 148",
        "1 loaded",
        "select 0",
        variant().id,
        "0 bytes",
        "pack 0",
        "rebind 0",
        "misaligned 3 `a`|must be aligned to 16 bytes, not 0x60008|",
        "no size 9",
        "unload 0",
    ],
)
def test_a_program_in_c(told, line):
    """Each call says what it came to."""
    assert line in told


@pytest.mark.parametrize(
    ("call", "status", "words"),
    [
        ("trust", 1, "sm_90a.kpk|is not signed|`kernelpack sign` signs one; without `trust`"),
        ("capture", 7, "`stream`|first use of lora_shrink_qkv["),
    ],
)
def test_refusals(told, call, status, words):
    """Bundles that are not signed as asked; a first use on a stream that is captured."""
    (line,) = [line for line in told if line.startswith(f"{call} ")]
    assert line.startswith(f"{call} {status} ")
    assert words in line


def test_an_unknown_kernel(told):
    """An error has the texts of C++'s."""
    (line,) = [line for line in told if line.startswith("unknown ")]
    assert line.startswith("unknown 4 ")
    assert line.endswith("|the bundle holds no kernel `other`|it holds: lora_shrink_qkv")


def test_launches(told):
    """Two launches, the second with the argument that was moved."""
    first, second = [line.split() for line in told if line.startswith("launch ")]
    changed = [
        place for place, pair in enumerate(zip(first, second, strict=True)) if len({*pair}) > 1
    ]
    assert changed == [9]
