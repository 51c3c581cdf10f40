"""Headers that a kernel cannot include: the error says what stands for them."""

import pytest

from kernelpack.build.hints import NONE, STANDS_FOR, hinted
from kernelpack.errors import CompileError
from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Source
from kernelpack.toolchain.locate import find
from kernelpack.toolchain.nvrtc import compile_in_process
from tests.kept import compiled

KERNEL = 'extern "C" __global__ void f() {}\n'


def source(*lines):
    text = "".join(f"{line}\n" for line in lines) + KERNEL
    return Source(variant_id="v", entry="f", name="t.cu.j2", text=text, headers=())


@pytest.mark.parametrize(
    ("what", "hint"),
    [
        ('cannot open source file "cstdint"', "#include <cuda/std/cstdint>"),
        ('cannot open source file "stdint.h"', "#include <cuda/std/cstdint>"),
        ('cannot open source file "cstdio"', "printf needs no header in a kernel"),
    ],
)
def test_a_hint_comes_first(what, hint):
    """What would be right comes before the place."""
    found = hinted(CompileError(what, where="t.cu.j2:1", hint="while compiling v"))
    first, second = found.hint.splitlines()
    assert hint in first
    assert (second, found.what, found.where) == ("while compiling v", what, "t.cu.j2:1")


def test_others_are_as_they_are():
    """An error that nothing is known of is not changed."""
    error = CompileError('cannot open source file "mine.h"', where="t.cu.j2:1")
    assert hinted(error) is error


@pytest.mark.toolchain
def test_what_stands_for_them_is_there():
    """Every header that is named compiles in a kernel."""
    headers = [f"#include <{name}>" for name in sorted(set(STANDS_FOR.values()))]
    assert compiled(source(*headers, "#include <cuda_fp8.h>"), "sm_90a")


@pytest.mark.toolchain
@pytest.mark.parametrize("name", ["cstdint", "math.h", "cub/cub.cuh", "cuda.h"])
def test_they_cannot_be_included(name):
    """The compiler refuses them, in the words that are looked for."""
    with pytest.raises(CompileError) as caught:
        compile_in_process(source(f"#include <{name}>"), find(), Arch("sm_90a"))
    assert hinted(caught.value).hint != caught.value.hint


def test_each_is_told_once():
    """Nothing stands for a header that is done without."""
    assert set(STANDS_FOR) & set(NONE) == set()
