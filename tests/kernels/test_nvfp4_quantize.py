"""The NVFP4 quantiser: the oracle against plain arithmetic, its edges, the rules of a problem."""

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpack.errors import KernelpackError, ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.formats.grouped_scales import deinterleave
from kernelpack.formats.packing import unpack
from kernelpack.kernels.nvfp4_quantize.cases import cases, small, telling
from kernelpack.kernels.nvfp4_quantize.definition import NVFP4_QUANTIZE
from kernelpack.kernels.nvfp4_quantize.problem import EMULATED, Case, Problem, case_of, inputs
from kernelpack.kernels.nvfp4_quantize.reference import quantise
from kernelpack.kernels.nvfp4_quantize.values import VALUES

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
E4M3 = np.arange(0x7F, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float64)
GROUPED = Case(
    name="t", k=96, tokens=(5, 0, 130, 3), ids=(1, 0, -1, 2), e=3, spare_blocks=1, seed=4
)
GOOD = Problem(t=130, k=96, scale_blocks=2)
INF, NAN = np.inf, np.nan


def block(*first, dtype=np.float32):
    """A row of one block: what is given, then zeros."""
    return np.array([[*first, *[0] * (16 - len(first))]], dtype)


def quantised(x, tensor_scale=1.0):
    """The codes of the first block's elements, and its scale."""
    codes, scales = quantise(x, np.full(x.shape[0], tensor_scale, np.float32))
    return unpack(codes, 4)[0].tolist(), int(scales[0, 0])


def nearest(grid, number):
    """The index of the nearest entry; of two, the even one; beyond the end, the last."""
    distance = np.abs(grid - min(number, grid[-1]))
    (first, *others) = np.flatnonzero(distance == distance.min())
    return next((int(i) for i in (first, *others) if i % 2 == 0), int(first))


def by_hand(x, tensor_scale):
    """One block by the formula, a number at a time; every operation is fp32's."""
    fp32 = np.float32
    largest = fp32(max(abs(float(value)) for value in x))
    scale = nearest(E4M3, float(fp32(tensor_scale) * (largest * fp32(1 / 6))))
    kept, factor = fp32(E4M3[scale]), fp32(0)
    if kept:
        factor = fp32(1) / (kept * (fp32(1) / fp32(tensor_scale)))
    numbers = [fp32(value) * factor for value in x]
    codes = [nearest(E2M1, abs(float(y))) | 8 * int(np.signbit(y)) for y in numbers]
    return codes, scale


@given(
    x=st.lists(st.floats(-3e4, 3e4, width=16), min_size=16, max_size=16),
    tensor_scale=st.floats(2**-10, 2**10, width=32),
)
def test_quantise_is_the_formula(x, tensor_scale):
    """Codes and scale of any block are what the formula gives, a number at a time."""
    row = np.array([x], np.float16)
    assert by_hand(row[0], tensor_scale) == quantised(row, tensor_scale)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        *((0.25, 0), (0.75, 2), (1.25, 2), (1.75, 4), (2.5, 4), (3.5, 6), (5, 6)),
        *((-0.25, 8), (-0.75, 10), (-5, 14), (-0.0, 8), (0.0, 0)),
        *((0.2501, 1), (0.7499, 1), (1.2501, 3), (2.4999, 4), (5.001, 7), (6, 7)),
    ],
)
def test_ties_go_to_even(value, code):
    """Halfway between two codes the even one is taken; beside it the nearer."""
    assert quantised(block(6, value))[0][:2] == [7, code]


@pytest.mark.parametrize(
    ("largest", "scale"),
    [(6, 0x38), (6 * 448, 0x7E), (6 * 1.0625, 0x38), (6 * 1.1875, 0x3A), (1e6, 0x7E), (0, 0)],
)
def test_scale(largest, scale):
    """The scale is a sixth of the largest element, to nearest even, and at most 448."""
    assert quantised(block(largest))[1] == scale


def test_nan():
    """A NaN makes its block's scale NaN, and no other's."""
    row = np.concatenate([block(1, NAN, -2), block(6)], 1)
    codes, scales = quantise(row, np.ones(1, np.float32))
    assert (unpack(codes, 4)[0, :16].tolist(), scales.tolist()) == ([7] * 16, [[0x7F, 0x38]])


def test_infinity():
    """Infinity counts as the largest number, the rest by the scale 448."""
    codes, scale = quantised(block(INF, -INF, 448, 5e4))
    assert (codes[:5], scale) == ([7, 15, 2, 7, 0], 0x7E)


@pytest.mark.parametrize("zero", [0.0, 6 * 2.0**-10, 1e-30])
def test_scale_of_zero(zero):
    """A block whose scale rounds to zero has codes of zero, each with its sign."""
    codes, scale = quantised(block(zero, -zero, zero / 2))
    assert (codes[:3], scale) == ([0, 8, 0], 0)


def test_smallest_scale():
    """Right above, the scale is e4m3's least, and the largest element keeps a code."""
    assert quantised(block(6 * 2.0**-9))[1] == 1
    assert quantised(block(6 * 2.0**-9))[0][0] == 7


def test_value_comes_back():
    """code * scale / s is the value, to half a step of the largest code."""
    x = inputs(Case(name="t", k=64, tokens=(200,), seed=1))["x"].astype(np.float32)
    codes, scales = quantise(x, np.full(200, 256, np.float32))
    code = unpack(codes, 4)
    value = np.where(code & 8, -1, 1) * E2M1[code & 7]
    kept = np.repeat(scales.view(ml_dtypes.float8_e4m3fn).astype(np.float64), 16, 1)
    largest = np.abs(x).reshape(200, -1, 16).max(-1).repeat(16, 1)
    assert (np.abs(value * kept / 256 - x) <= largest * (1 / 6 + 1 / 16)).all()


def test_groups_have_their_own_scale():
    """A row is quantised under the tensor scale of its group's expert."""
    arrays = inputs(GROUPED)
    found = NVFP4_QUANTIZE.expected(GROUPED, arrays)["codes"].value
    alone, _ = quantise(arrays["x"][:5], np.full(5, arrays["tensor_scales"][1]))
    assert np.array_equal(found[:5], alone)


def test_rows_without_an_expert_are_left():
    """Codes of group -1 stay as they were, and no others."""
    value = NVFP4_QUANTIZE.expected(GROUPED, inputs(GROUPED))["codes"].value
    assert np.isnan(value).all(1).tolist() == [False] * 5 + [True] * 130 + [False] * 3


def test_scales_lie_group_by_group():
    """A group begins a block of 128 rows; what is not a row's scale is zero, also of group -1."""
    arrays = inputs(GROUPED)
    tensor = NVFP4_QUANTIZE.expected(GROUPED, arrays)["scales"].value
    rows = deinterleave(tensor, 640, 8)
    _, first = quantise(arrays["x"][:5], np.full(5, arrays["tensor_scales"][1]))
    assert tensor.shape == (5, 2, 32, 4, 4)
    assert np.array_equal(rows[:5, :6], first)
    assert np.flatnonzero(rows.any(1)).tolist() == [*range(5), *range(384, 387)]
    assert not rows[:, 6:].any()


def test_inputs_are_the_same_each_time():
    """A case's seed decides its inputs."""
    first, second = inputs(GROUPED), inputs(GROUPED)
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_inputs_of_the_plain_form():
    """Without groups the index arrays are empty."""
    arrays = inputs(Case(name="t", k=32, tokens=(3,)))
    sizes = {name: arrays[name].size for name in ("row_offsets", "scale_offsets", "expert_ids")}
    assert sizes == dict.fromkeys(sizes, 0)


@pytest.mark.parametrize("dtype", [DType.BF16, DType.FP16])
@pytest.mark.parametrize("values", VALUES)
def test_values(values, dtype):
    """Every kind of value is made in x's type, with a tensor scale for each expert."""
    case = replace(GROUPED, values=values, dtype=dtype)
    arrays = inputs(case)
    found = (arrays["x"].dtype, arrays["x"].shape, arrays["tensor_scales"].dtype)
    assert found == (dtype.numpy, (138, 96), np.float32)
    assert (arrays["tensor_scales"] > 0).tolist() == [True] * 3


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ("bits", {0, 0x7E, 0x7F}),
        ("scales", {0x7E}),
        ("tiny", {0, 1}),
        ("extreme", {0x7E, 0x7F}),
    ],
)
def test_values_reach_the_edges(values, wanted):
    """Each kind makes the scales it is about."""
    case = Case(name="t", k=320, tokens=(40,), values=values)
    scales = NVFP4_QUANTIZE.expected(case, inputs(case))["scales"].value
    assert wanted <= set(scales.ravel().astype(int))


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_cases_are_problems(case):
    """Every case obeys the kernel's rules and has an expert for each id."""
    case.problem.check()
    assert max(case.ids or (0,)) < case.e
    assert len(case.tokens) == len(case.ids or (0,))


def test_small_cases_are_small():
    """An emulator's cases have at most 2^18 elements."""
    assert max(sum(case.tokens) * case.k for case in small()) <= 2**18


def test_every_variant_has_three_telling_cases():
    """Of each form, so that every variant is verified on three."""
    assert [case.ids is None for case in telling()].count(True) == 3
    assert len(telling()) == 6


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"k": 16}, "`k` must be a multiple of 32, not 16"),
        ({"k": 0}, "`k` must be a multiple of 32, not 0"),
        ({"t": -1}, "`t` must be from 0 to below 2\\^31, not -1"),
        ({"t": 257}, "`scale_blocks` must be at least 3, not 2"),
        ({"grouped": True, "n_active": 2, "e": 0}, "`e` must be at least 1 expert, not 0"),
        ({"grouped": True, "scale_blocks": -1}, "`scale_blocks` must be at least 0, not -1"),
        ({"scale_blocks": 2**28}, "`scale_blocks` must be below 2\\^29 / ceil"),
        ({"x_dtype": DType.FP32}, "`x` must be bf16, fp16, not fp32"),
    ],
)
def test_rules(change, rule):
    """A problem that breaks a rule is refused with the size, the rule and the value."""
    with pytest.raises(ProblemError, match=rule):
        replace(GOOD, **change).check()


@pytest.mark.parametrize(("scale_blocks", "empty"), [(2, False), (0, True)])
def test_is_empty(scale_blocks, empty):
    """Without scale blocks there is nothing to write."""
    assert replace(GOOD, scale_blocks=scale_blocks).is_empty is empty


def test_case_of_sizes():
    """Typed sizes make a case, of the grouped form where there are groups."""
    case = case_of(EMULATED)
    assert (case.tokens, case.ids, case.e) == ((37, 38, 37, 38), (0, 1, 2, 3), 4)
    assert case_of({"t": "9", "k": "32"}).ids is None


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"q": "1"}, "unknown size `q`(.|\n)*sizes: t, k"),
        ({"t": "x"}, "`t` must be an integer of at least 1, not `x`"),
        ({"k": "40"}, "`k` must be a multiple of 32"),
        ({"dtype": "bf61"}, "did you mean `bf16`"),
        ({"values": "nice"}, "unknown values `nice`(.|\n)*values: normal, bits"),
    ],
)
def test_case_of_bad_sizes(sizes, message):
    """A size that is unknown or not right is refused by name."""
    with pytest.raises(KernelpackError, match=message):
        case_of(sizes)


def test_no_rows():
    """What has no rows is quantised to nothing, of the right width."""
    codes, scales = quantise(np.zeros((0, 32), np.float32), np.zeros(0, np.float32))
    assert (codes.shape, scales.shape) == ((0, 16), (0, 2))


@pytest.mark.parametrize("dtype", [DType.BF16, DType.FP16])
@pytest.mark.parametrize("kind", VALUES)
def test_bit_7_of_a_scale_is_never_set(kind, dtype):
    """Whatever x holds, a scale's byte is at most 0x7F: what bit 7 does is not defined."""
    x, tensor_scales = VALUES[kind](np.random.default_rng(5), (64, 512), 64, dtype)
    assert quantise(x, tensor_scales)[1].max() <= 0x7F
