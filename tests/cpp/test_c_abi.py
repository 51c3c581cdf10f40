"""The C interface: a program in C does what one in C++ does."""

import subprocess

import pytest

from tests.cpp.compiler import HERE, INCLUDE, ask, compile_program, written
from tests.fakes.keys import make_keys
from tests.fakes.variants import variant
from tests.host import need

NO_ROOM = (
    f"no room 3 {variant(arch='sm_100a').id}|no cluster of 2 CTAs, of 128 threads and 100000 bytes "
    "of shared memory each, fits on the device|a MIG slice or a green context may have too few "
    "multiprocessors of one GPC"
)
MISSING, GIVE = "/no/such.kpk", "give the path of a `.kpk` file"


def compiled(source, programs):
    """A program in C, compiled as C, with the interface linked in."""
    need("gcc")
    made = programs / f"{source.stem}.o"
    command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "-c"]
    subprocess.run([*command, source, "-o", made], check=True)
    interface = INCLUDE / "kernelpack" / "kernelpack.cpp"
    return compile_program(
        interface, made.with_suffix(""), "-fsanitize=address,undefined", libraries=[str(made)]
    )


@pytest.fixture(scope="module")
def told(programs, libcuda, tmp_path_factory):
    """What c_abi.c prints, by its first word; launches in order."""
    program = compiled(HERE / "c_abi.c", programs)
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
        NO_ROOM,
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
        ("tuned", 1, "none.json|cannot be read: No such file or directory|`kernelpack tune`"),
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


@pytest.fixture(scope="module")
def misused(programs, libcuda, tmp_path_factory):
    """The result of each call of c_misuse.c: its status and message."""
    bundle = written(tmp_path_factory.mktemp("misuse") / "x.kpk", [variant()])
    lines = ask(compiled(HERE / "c_misuse.c", programs), libcuda, bundle)
    return [line.replace(str(bundle), "BUNDLE") for line in lines]


@pytest.mark.parametrize(
    "call",
    [
        "a path that is NULL",
        "a key that is NULL",
        "a count of no keys",
        "open to nowhere",
        "device of none",
        "no device",
        "preload none",
        "unload none",
        "select from none",
        "select nothing",
        "select to nowhere",
        "workspace of none",
        "workspace to nowhere",
        "pack from none",
        "pack none",
        "pack nothing",
        "pack no arguments",
        "pack to nowhere",
        "rebind none",
        "rebind nothing",
        "start none",
        "no kernel",
        "no sizes",
        "a size without a name",
        "packed without a name",
        "no addresses",
        "an address without a name",
        "a cut problem",
        "cut arguments",
        "no numbers",
        "set none",
        "set nothing",
    ],
)
def test_what_lacks_is_said(misused, call):
    """A NULL, an unknown name and a struct that is cut are KP_USAGE, and no crash."""
    assert any(line.startswith(f"{call} 9 ") for line in misused)


@pytest.mark.parametrize(
    "line",
    [
        "devices 0",
        "id [] 0",
        "m selected below 0 3 `m`|must be at least 0, not -5",
        "m packed below 0 3 `m`|must be at least 0, not -5",
        "m selected twice 3 `m`|is given twice",
        "m packed twice 3 `m`|is given twice",
        "a nowhere 3 `a`|0x0 is not an address of device memory",
        "no groups, nowhere 0 |",
        "pack 0 |",
        "older arguments 0 |",
        "set unknown 3 lora_shrink_qkv|no number `eps`",
        "a moved nowhere 3 `a`|0x0 is not an address of device memory",
    ],
)
def test_what_cannot_be(misused, line):
    """Sizes that contradict each other, arrays that lie nowhere."""
    assert line in misused


@pytest.mark.parametrize("call", ["another type", "another k"])
def test_a_problem_that_the_variant_does_not_serve(misused, call):
    """A variant is checked against its problem when it is packed too, not only when chosen."""
    (line,) = [line for line in misused if line.startswith(call)]
    assert line.startswith(f"{call} 4 BUNDLE on device 0 (NVIDIA")
    assert "|no variant of lora_shrink_qkv serves m=100, n=16, k=7" in line
