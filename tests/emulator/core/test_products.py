"""Products of matrices in the core are those of `models.mma`, bit for bit."""

import ctypes
from ctypes import c_int, c_void_p

import numpy as np
import pytest

from kernelpack.emulator.core import compiled, library
from kernelpack.emulator.models import mma
from kernelpack.errors import ToolchainError
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import LAYOUTS, decode

SOURCE = "tests/emulator/core/products.cpp"
SHAPES = ((128, 96, 16), (16, 8, 16), (64, 256, 16), (16, 64, 32), (128, 16, 32), (128, 104, 64))
DTYPES = {"bf16": DType.BF16, "fp16": DType.FP16, "e4m3": DType.E4M3, "e5m2": DType.E5M2}
HOPPER_FP8 = mma.Summation(fraction_bits=13, output_bits=13)


@pytest.fixture(scope="module")
def core(request, tmp_path_factory):
    """The doors of `products.cpp`."""
    made = tmp_path_factory.mktemp("products") / "products.so"
    try:
        words = compiled.compiler()
    except ToolchainError as error:
        pytest.skip(str(error))
    source = request.config.rootpath / SOURCE
    flags = *compiled._FLAGS, "-fvisibility=default", "-shared"
    compiled.run_compiler([*words, *flags, str(source), "-o", str(made)], made.parent)
    found = ctypes.CDLL(str(made))
    found.product.argtypes = *[c_void_p] * 3, *[c_int] * 6
    return found


@pytest.fixture
def asked(core):
    """How often Python is asked for a product."""
    times = []

    def multiply(a, b):
        times.append(1)
        return mma.product(a, b)

    whom = library._PRODUCT(library._asker(multiply))
    core.ask(whom)
    yield times
    core.ask(library._PRODUCT())


def numbers(draw, dtype, shape, values):
    """Random numbers of a type: any codes that are finite, or as the name says."""
    codes = draw.integers(0, 1 << dtype.bits, shape)
    found = decode(dtype, codes)
    if values != "special":
        found = np.where(np.isfinite(found), found, np.float32(1))
    if values in ("normal", "zeros"):
        step = LAYOUTS[dtype].mantissa
        found = np.round(draw.normal(size=shape) * 2**step) / 2.0**step
    if values == "zeros":
        found *= draw.random(shape) < 0.3
    if values == "special":
        keep = draw.random(shape) < 0.01
        found = np.where(keep, found, np.float32(0.5))
    return found.astype(np.float32)


def core_alone(core, operands, *, least=0):
    """D of the core, as words; None where it doubts."""
    a, b = operands.a.astype(np.float64), np.ascontiguousarray(operands.b.T.astype(np.float64))
    shape = len(operands.a), len(operands.b), operands.a.shape[1]
    d = np.zeros(shape[:2], np.float32) if operands.c is None else operands.c.copy()
    doubts = core.product(
        a.ctypes.data, b.ctypes.data, d.ctypes.data, *shape, LAYOUTS[operands.a_type].mantissa,
        operands.c is not None, least,
    )  # fmt: skip
    return None if doubts else d.view(np.uint32)


def both(core, operands, *, least=0):
    """The same, and D of Python."""
    how, rule = (mma.exact, HOPPER_FP8) if least else (mma.fast, mma.Summation())
    return core_alone(core, operands, least=least), how(operands, rule).view(np.uint32)


def operands_of(draw, dtype, shape, values, *, accumulates=True):
    """Operands of a product."""
    m, n, k = shape
    a, b = numbers(draw, dtype, (m, k), values), numbers(draw, dtype, (n, k), values)
    c = None
    if accumulates:
        c = (a @ b.T * draw.normal(size=(m, n))).astype(np.float32)
    return mma.Operands(a=a, b=b, c=c, a_type=dtype, b_type=dtype)


@pytest.mark.parametrize("accumulates", [False, True], ids=["D = AB", "D += AB"])
@pytest.mark.parametrize("values", ["normal", "zeros", "any codes"])
@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products(core, asked, shape, dtype, values, accumulates):
    """Also where exponents are so far apart that the order of additions matters."""
    draw = np.random.default_rng([*shape, dtype])
    with np.errstate(all="ignore"):
        operands = operands_of(draw, dtype, shape, values, accumulates=accumulates)
        ours, theirs = both(core, operands)
    assert ours is not None
    assert (ours != theirs).sum() == 0
    assert not asked or values == "any codes"


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_not_finite(core, asked, shape, dtype):
    """NaN is the one that Python gives, or a doubt; infinities are right."""
    draw = np.random.default_rng([*shape, dtype])
    with np.errstate(all="ignore"):
        operands = operands_of(draw, dtype, shape, "special", accumulates=False)
        ours, theirs = both(core, operands)
    assert ours is None or (ours != theirs).sum() == 0


@pytest.mark.parametrize("accumulates", [False, True], ids=["D = AB", "D += AB"])
@pytest.mark.parametrize("values", ["normal", "any codes"])
@pytest.mark.parametrize("where", ["rows", "columns", "both"])
@pytest.mark.parametrize("what", [np.nan, np.inf], ids=["NaN", "inf"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_and_columns_that_are_not_finite(core, asked, shape, what, where, values, accumulates):
    """Padding may be NaN: what lies beside it is as right as without it, and no doubt."""
    draw = np.random.default_rng([*shape, len(where)])
    with np.errstate(all="ignore"):
        operands = operands_of(draw, DType.BF16, shape, values, accumulates=accumulates)
        if accumulates:
            operands.c[~np.isfinite(operands.c)] = 1
        if where != "columns":
            operands.a[draw.random(shape[0]) < 0.3, :3] = what
        if where != "rows":
            operands.b[draw.random(shape[1]) < 0.3, 1] = what
        ours, theirs = both(core, operands)
    assert ours is not None
    assert (ours != theirs).sum() == 0


def test_a_nan_that_meets_another_is_a_doubt(core, asked):
    """Which of the two a GPU gives is its own affair."""
    a, b = np.ones((16, 16), np.float32), np.ones((8, 16), np.float32)
    a[3, 0] = np.nan
    other = np.zeros((16, 8), np.float32)
    for row, column, doubts in ((2, 5, False), (3, 5, True)):
        c = other.copy()
        c.view(np.uint32)[row, column] = 0x7FC12345
        operands = mma.Operands(a=a, b=b, c=c, a_type=DType.BF16, b_type=DType.BF16)
        assert (both(core, operands)[0] is None) is doubts
    a[3, 0], b[5, 0] = 1, np.nan
    operands = mma.Operands(a=a, b=b, c=c, a_type=DType.BF16, b_type=DType.BF16)
    assert both(core, operands)[0] is None


def test_an_order_that_matters_is_asked_for(core, asked):
    """Where the small ones are lost, or make the large one another number of fp32."""
    a, b = np.zeros((16, 16), np.float32), np.ones((8, 16), np.float32)
    a[3, :4] = 2.0**60, 2.0**36, 2.0**6, 2.0**6
    operands = mma.Operands(a=a, b=b, c=None, a_type=DType.BF16, b_type=DType.BF16)
    ours, theirs = both(core, operands)
    assert (ours == theirs).all()
    assert asked


@pytest.mark.parametrize("what", [MemoryError, KeyboardInterrupt])
def test_a_product_that_cannot_be_made_is_a_doubt(core, what):
    """What Python raises there does not pass for a product of zeros."""

    def multiply(a, b):
        raise what

    whom = library._PRODUCT(library._asker(multiply))
    core.ask(whom)
    a, b = np.zeros((16, 16), np.float32), np.ones((8, 16), np.float32)
    a[3, :4] = 2.0**60, 2.0**36, 2.0**6, 2.0**6
    operands = mma.Operands(a=a, b=b, c=None, a_type=DType.BF16, b_type=DType.BF16)
    assert both(core, operands)[0] is None
    core.ask(library._PRODUCT())


def test_a_product_of_nans_warns_nobody(core, asked):
    """Whoever made errors of numpy's warnings has the product all the same."""
    a, b = np.zeros((16, 16), np.float32), np.ones((8, 16), np.float32)
    a[3, :4] = 2.0**60, 2.0**36, 2.0**6, 2.0**6
    a[5, :2] = np.inf, -np.inf
    operands = mma.Operands(a=a, b=b, c=None, a_type=DType.BF16, b_type=DType.BF16)
    with np.errstate(all="ignore"):
        theirs = both(core, operands)[1]
    with np.errstate(all="raise"):
        ours = core_alone(core, operands)
    assert asked
    assert (ours == theirs).all()


def test_nobody_to_ask_is_a_doubt(core):
    """The core gives no number of which it is not sure."""
    a, b = np.zeros((16, 16), np.float32), np.ones((8, 16), np.float32)
    a[3, :4] = 2.0**60, 2.0**36, 2.0**6, 2.0**6
    operands = mma.Operands(a=a, b=b, c=None, a_type=DType.BF16, b_type=DType.BF16)
    assert both(core, operands)[0] is None


@pytest.mark.parametrize("accumulates", [False, True], ids=["D = AB", "D += AB"])
@pytest.mark.parametrize("values", ["normal", "zeros", "any codes", "special"])
@pytest.mark.parametrize("dtype", [DType.E4M3, DType.E5M2], ids=["e4m3", "e5m2"])
@pytest.mark.parametrize("n", [8, 64, 256])
def test_sums_of_13_bits(core, n, dtype, values, accumulates):
    """What Hopper makes of fp8 is exact in every run, NaN too."""
    draw = np.random.default_rng([n, dtype])
    with np.errstate(all="ignore"):
        operands = operands_of(draw, dtype, (16, n, 32), values, accumulates=accumulates)
        ours, theirs = both(core, operands, least=LAYOUTS[dtype].smallest_exponent)
    assert (ours != theirs).sum() == 0


def test_signs_of_zeros_of_13_bits(core):
    """Whatever is cut to nothing, or is nothing, is +0 or -0 as numpy has it."""
    a, b = -np.ones((16, 32), np.float32), np.full((8, 32), 2.0**-9, np.float32)
    for c in (-0.0, 0.0, 2.0**60, -(2.0**-140)):
        start = np.full((16, 8), c, np.float32)
        operands = mma.Operands(a=a, b=b, c=start, a_type=DType.E4M3, b_type=DType.E4M3)
        ours, theirs = both(core, operands, least=-6)
        assert (ours == theirs).all()
        nothing = mma.Operands(a=a * 0, b=b, c=start, a_type=DType.E4M3, b_type=DType.E4M3)
        ours, theirs = both(core, nothing, least=-6)
        assert (ours == theirs).all()
