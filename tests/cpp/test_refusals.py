"""What Python refuses C++ refuses, and C, in the same words: the calls of tests/refusals.py."""

import pytest

from kernelpack.errors import KernelpackError
from tests.cpp.compiler import HERE, SANITIZE, ask, compile_program, said
from tests.cpp.test_c_abi import compiled
from tests.load.test_library import call as python
from tests.refusals import ADDRESSES, KERNEL, REFUSALS, SIZES


@pytest.fixture(scope="module")
def cpp(programs, libcuda):
    """A call as launch.cpp makes it: the lines that it answers."""
    program = compile_program(HERE / "launch.cpp", programs / "launch", *SANITIZE)

    def call(bundle, key, kernel, *given):
        trust = ["-", key] if key else []
        order = "\t".join(["start", kernel, "0", "0x10", *map(words, given)])
        return ask(program, libcuda, bundle, *trust, lines=[order])

    return call


@pytest.fixture(scope="module")
def c(programs, libcuda):
    """The same as a program in C makes it."""
    program = compiled(HERE / "c_refusals.c", programs)

    def call(bundle, key, kernel, *given):
        fields = [str(bundle), str(key or "-"), kernel, *map(words, given)]
        return ask(program, libcuda, lines=["\t".join(fields)])

    return call


def words(given):
    return " ".join(f"{name}={value}" for name, value in given.items())


@pytest.mark.parametrize("name", REFUSALS)
def test_one_verdict(cpp, c, tmp_path, name):
    """All three refuse, for the same reason and in the same words."""
    row = REFUSALS[name]
    given = *row.given(), row.numbers
    call = row.bundle(tmp_path), row.trust(tmp_path), row.kernel, *given
    with pytest.raises(KernelpackError) as caught:
        python(*call)
    error = caught.value
    assert row.says in str(error)
    (refused,) = (line for line in cpp(*call) if line.startswith("error "))
    assert (said(error), [f"{row.status} {said(error).removeprefix('error ')}"]) == (
        refused,
        c(*call),
    )


def test_what_is_served(cpp, c, tmp_path):
    """A call that differs in nothing is served by all three."""
    row = REFUSALS["a guard"]
    call = row.bundle(tmp_path), None, KERNEL, SIZES, ADDRESSES, {}
    assert cpp(*call)[-2].startswith("launch ")
    assert c(*call) == ["0 "]
