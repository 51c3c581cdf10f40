"""A kernel's parameters are called what the manifest calls them, in its order."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from kernelpack.build.signature import check_signature, check_threads
from kernelpack.errors import BudgetError, RenderError
from kernelpack.formats.dtype import DType
from kernelpack.spec.artifact import Ptx, Source
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.params import NumberParam, PointerParam, ScalarParam
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
        "__global__ void KERNEL(uint16_t* x, Element* y) {}",
        "// calls KERNEL(y, x)\n__global__ void __launch_bounds__(32)\nKERNEL (int x,\n int y) {}",
        "__global__ void KERNEL(const Pair<int, A<3>> x, int y[4]) {}",
        "__global__ void KERNEL(const short *__restrict__ x, /* not y, */ int& y) {}",
        '__global__ void KERNEL(__half* x,\n#line 3 "m.j2"\nvoid* y) {}',
        "__global__ void KERNEL(alignas(16) Map x, const nv_bfloat16* y) { f(y, x); }",
    ],
)
def test_same(text):
    """Names count, and the size of an element where it is known; not comments and lines."""
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


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            "const float* x",
            "`a` is bf16 in the manifest, of 2 bytes, and `float` in the kernel, of",
        ),
        ("unsigned int *__restrict__ x", "and `unsigned int` in the kernel, of 4"),
        ("const unsigned char* x", "and `unsigned char` in the kernel, of 1"),
        ("double const* x", "and `double` in the kernel, of 8"),
    ],
)
def test_elements_of_another_size(declared, message):
    """A pointer counts elements of the size that the argument has."""
    text = f"__global__ void KERNEL({declared}, short* y) {{}}"
    with pytest.raises(RenderError, match=message):
        check_signature(VARIANT, source(text))


OF_VALUES = replace(
    VARIANT,
    params=(
        ScalarParam(name="rows", dtype=DType.U32, value=parse("m")),
        NumberParam(name="eps", dtype=DType.FP32, number="eps"),
        NumberParam(name="scale", dtype=DType.BF16, number="scale"),
    ),
)


@pytest.mark.parametrize(
    "parameters",
    [
        "unsigned rows, float eps, __nv_bfloat16 scale",
        "const uint32_t rows, const float eps, const nv_bfloat16 scale",
        "unsigned int rows, float const eps, Element scale",
        "std::uint32_t rows, kp::Real eps, const Element scale",
    ],
)
def test_values(parameters):
    """A value is of the manifest's type, where the kernel's is known."""
    text = f"__global__ void KERNEL({parameters}) {{}}"
    assert check_signature(OF_VALUES, source(text)) is None


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("unsigned rows, double eps, E scale", "`eps` is fp32 in the manifest, and `double` in"),
        ("unsigned rows, int eps, E scale", "`eps` is fp32 in the manifest, and `int` in"),
        ("unsigned rows, float eps, __half scale", "`scale` is bf16 in the manifest, and `__half`"),
        ("float rows, float eps, E scale", "`rows` is u32 in the manifest, and `float` in"),
        ("const uint64_t rows, float eps, E scale", "`rows` is u32 in the manifest, and `uint64_"),
        ("int rows, float eps, E scale", "`rows` is u32 in the manifest, and `int` in"),
        ("std::int32_t rows, float eps, E scale", "and `int32_t` in the kernel"),
        ("unsigned short rows, float eps, E scale", "and `unsigned short` in the kernel"),
    ],
)
def test_values_of_another_type(parameters, message):
    """A value that the kernel would read as another one is refused by both types."""
    text = f"__global__ void KERNEL({parameters}) {{}}"
    with pytest.raises(RenderError, match=message):
        check_signature(OF_VALUES, source(text))


@pytest.mark.parametrize(
    ("dtype", "word", "is_right"),
    [
        (DType.I32, "int", True),
        (DType.I32, "unsigned", False),
        (DType.I64, "long long", True),
        (DType.U64, "long long", False),
        (DType.U8, "char", True),  # whose sign is the compiler's
        (DType.I8, "char", True),
        (DType.U8, "signed char", False),
    ],
)
def test_signs(dtype, word, is_right):
    """From half of its range on an unsigned value would be read as a negative one."""
    rows = ScalarParam(name="rows", dtype=dtype, value=constant(1))
    made = replace(OF_VALUES, params=(rows, *OF_VALUES.params[1:]))
    text = f"__global__ void KERNEL({word} rows, float eps, E scale) {{}}"
    with nullcontext() if is_right else pytest.raises(RenderError, match=f"and `{word}` in"):
        check_signature(made, source(text))


def compiled(directives):
    other = ".visible .entry other()\n.maxntid 1, 1, 1\n{ ret; }\n"
    return Ptx(text=f"{other}.visible .entry {VARIANT.entry}(.param .u64 x)\n{directives}\n{{}}")


def blocked(*sides):
    launch = replace(VARIANT.launch, block=tuple(parse(side) for side in sides))
    return replace(VARIANT, launch=launch)


@pytest.mark.parametrize(
    ("directives", "block"),
    [
        (".maxntid 128, 1, 1", ("128", "1", "1")),
        (".maxntid 128", ("64", "2", "1")),
        (".reqntid 64, 2, 1", ("64", "2", "1")),
        ("", ("1024", "1", "1")),
        (".maxntid 128, 1, 1", ("m", "1", "1")),
    ],
)
def test_threads(directives, block):
    """As many as the kernel was compiled for, or fewer; those of a problem's size are not known."""
    assert check_threads(blocked(*block), compiled(directives)) is None


@pytest.mark.parametrize(
    ("directives", "block", "message"),
    [
        (".maxntid 128, 1, 1", ("256", "1", "1"), "has 256 threads, and `__launch_bounds__` 128"),
        (".maxntid 64, 2", ("64", "2", "2"), "has 256 threads, and `__launch_bounds__` 128"),
        (".reqntid 64, 2, 1", ("128", "1", "1"), r"is \[128, 1, 1\], and the kernel was compiled"),
    ],
)
def test_threads_that_a_driver_refuses(directives, block, message):
    """A block that the kernel was not compiled for is refused by both numbers."""
    with pytest.raises(BudgetError, match=message) as error:
        check_threads(blocked(*block), compiled(directives))
    assert error.value.where == VARIANT.id
