"""A kernel's parameters are called what the manifest calls them, in its order."""

from dataclasses import replace

import pytest

from kernelpack.build.signature import check_signature
from kernelpack.errors import RenderError
from kernelpack.spec.artifact import Source
from kernelpack.spec.params import PointerParam
from tests.fakes.variants import variant

VARIANT = replace(variant(), params=tuple(PointerParam(name=n, argument="a") for n in ("x", "y")))


def source(text):
    return Source(
        variant_id=VARIANT.id,
        entry=VARIANT.entry,
        name="t.cu.j2",
        text=text.replace("KERNEL", VARIANT.entry),
        headers=(),
    )


@pytest.mark.parametrize(
    "text",
    [
        "__global__ void KERNEL(float* x, float* y) {}",
        "// calls KERNEL(y, x)\n__global__ void __launch_bounds__(32)\nKERNEL (int x,\n int y) {}",
        "__global__ void KERNEL(const Pair<int, A<3>> x, int y[4]) {}",
        "__global__ void KERNEL(const float *__restrict__ x, /* not y, */ int& y) {}",
        '__global__ void KERNEL(float* x,\n#line 3 "m.j2"\nfloat* y) {}',
        "__global__ void KERNEL(alignas(16) Map x, float* y) { f(y, x); }",
    ],
)
def test_same(text):
    """The names count, not the types, comments and lines around them."""
    assert check_signature(VARIANT, source(text)) is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("float* y, float* x", "parameter 1 is `y`, and `x` in the manifest"),
        ("float* x, float* z", "parameter 2 is `z`, and `y` in the manifest"),
        ("float* x", "parameter 2 is missing, and `y` in the manifest"),
        ("", "parameter 1 is missing, and `x` in the manifest"),
        ("float* x, float* y, int z", "parameter 3 is `z`, and missing in the manifest"),
    ],
)
def test_differ(parameters, message):
    """Parameters that change places, or are too few or too many, are refused by both names."""
    text = f"\n__global__ void KERNEL({parameters}) {{}}"
    with pytest.raises(RenderError, match=message) as error:
        check_signature(VARIANT, source(text))
    assert (error.value.where, "they are (x, y)" in error.value.hint) == ("t.cu.j2:2", True)


def test_no_kernel():
    """A source without the kernel is refused, and says how it is declared."""
    with pytest.raises(RenderError, match=r"there is no kernel(.|\n)*variant\.entry"):
        check_signature(VARIANT, source("__global__ void other(float* x, float* y) {}"))
