"""What LoRA shrink means: the oracle against a loop, the cases, the rules of a problem."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.errors import KernelpackError, ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.lora_shrink_qkv import problem, reference
from kernelpack.kernels.lora_shrink_qkv.cases import cases, small
from kernelpack.kernels.lora_shrink_qkv.definition import LORA_SHRINK_QKV
from kernelpack.kernels.lora_shrink_qkv.problem import Case, Problem, case_of, inputs

CASE = Case(name="t", g=3, n=8, k=16, tokens=(2, 0, 3, 1), ids=(2, 0, -1, 1), rows_after=2)
GOOD = Problem(m=4, n=16, k=64, g=2, n_active=2)
BY_NAME = {case.name: case for case in cases()}


def value() -> np.ndarray:
    return reference.shrink(inputs(CASE), 6)


@pytest.mark.parametrize(
    ("plane", "row", "column", "adapter"), [(0, 0, 0, 2), (1, 1, 7, 2), (2, 5, 3, 1)]
)
def test_oracle_element(plane, row, column, adapter):
    """An element is the dot product of its token and its row of its adapter."""
    arrays = inputs(CASE)
    weights = arrays["b"][adapter, plane * 8 + column].astype(np.float64)
    expected = float(arrays["a"][row].astype(np.float64) @ weights)
    assert value()[plane, row, column] == pytest.approx(expected, rel=1e-12)


def test_oracle_inactive_rows_are_zero():
    """A group without an adapter has zero rows."""
    assert not value()[:, 2:5].any()


def test_oracle_shape():
    """There are three planes of m rows; rows after m are not there."""
    assert value().shape == (3, 6, 8)


@pytest.mark.parametrize(
    ("out_dtype", "rounding"),
    [(DType.BF16, 2.0**-8), (DType.FP16, 2.0**-10), (DType.FP32, 2.0**-22)],
)
def test_bound(out_dtype, rounding):
    """The bound is one rounding of the value and 2^-18 of the sum of magnitudes."""
    arrays = inputs(CASE)
    found = reference.expected(arrays, 6, out_dtype)
    magnitude = np.abs(arrays["a"][0].astype(float)) @ np.abs(arrays["b"][2, 0].astype(float))
    expected = abs(found.value[0, 0, 0]) * rounding + magnitude * 2.0**-18
    assert found.bound[0, 0, 0] == pytest.approx(expected, rel=1e-12)


def test_inputs_are_the_same_each_time():
    """A case's seed decides its inputs."""
    first, second = inputs(CASE), inputs(CASE)
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_inputs_after_m_are_nan():
    """Rows that no adapter covers would spoil every sum they got into."""
    a = inputs(CASE)["a"].astype(np.float32)
    assert (np.isnan(a[6:]).all(), np.isnan(a[:6]).any()) == (True, False)


def test_inputs_groups():
    """Offsets are the running count of tokens, as the kernel's types."""
    arrays = inputs(CASE)
    assert arrays["a_offsets"].tolist() == [0, 2, 2, 5, 6]
    assert (arrays["a_offsets"].dtype, arrays["expert_ids"].dtype) == (np.uint32, np.int32)


@pytest.mark.parametrize(
    ("name", "field", "expected"),
    [
        ("grid_g6_n192_k1024_tokens_27_1500_300_150", "ids", (0, 3, 2, 4)),
        ("grid_g4_n5760_k512_tokens_10_60", "n", 5760),
        ("inactive_all", "ids", (-1, -1, -1)),
        ("empty_first", "tokens", (0, 5, 2)),
        ("single_tokens", "tokens", (1,) * 9),
        ("counts_1_to_33", "tokens", tuple(range(1, 34))),
        ("repeated_ids", "ids", (1, 1, 3, 1)),
        ("rows_after", "rows_after", 50),
        ("hidden_72", "k", 72),
        ("rank_128", "n", 128),
    ],
)
def test_cases(name, field, expected):
    """The public grid and the rules about groups are among the cases."""
    assert expected == getattr(BY_NAME[name], field)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_cases_are_problems(case):
    """Every case obeys the kernel's rules and has an adapter for each id."""
    case.problem.check()
    assert max(case.ids) < case.g
    assert len(case.tokens) == len(case.ids)


def test_small_cases_are_small():
    """An emulator's cases have at most 2^23 products."""
    products = [3 * sum(c.tokens) * c.n * c.k for c in small()]
    assert max(products) <= 2**23


def test_all_types():
    """Definition's cases are every case in every pair of types."""
    assert len(LORA_SHRINK_QKV.cases()) == 6 * len(cases())


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"k": 12}, "`k` must be a multiple of 8, not 12"),
        ({"k": 0}, "`k` must be a multiple of 8, not 0"),
        ({"n": 4}, "`n` must be a multiple of 8, not 4"),
        ({"n": 5768}, "`n` must be at most 5760"),
        ({"m": -1}, "`m` must be from 0 to below 2\\^31, not -1"),
        ({"g": 0}, "`g` must be at least 1 adapter"),
        ({"a_dtype": DType.FP32}, "`a` must be bf16, fp16, not fp32"),
        ({"out_dtype": DType.E4M3}, "`c` must be bf16, fp16, fp32, not e4m3"),
    ],
)
def test_rules(change, rule):
    """A problem that breaks a rule is refused with the size, the rule and the value."""
    with pytest.raises(ProblemError, match=rule):
        replace(GOOD, **change).check()


@pytest.mark.parametrize(
    ("change", "empty"), [({}, False), ({"m": 0}, True), ({"n_active": 0}, True)]
)
def test_is_empty(change, empty):
    """Without tokens or without groups there is nothing to compute."""
    assert replace(GOOD, **change).is_empty is empty


def test_case_of_sizes():
    """Typed sizes make a case; tokens are spread over the groups."""
    case = case_of({"m": "10", "k": "64", "g": "4", "dtype": "fp16"})
    assert (case.tokens, case.ids, case.dtype, case.out_dtype) == (
        (2, 3, 2, 3),
        (0, 1, 2, 3),
        DType.FP16,
        DType.FP16,
    )


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"q": "1"}, "unknown size `q`(.|\n)*sizes: m, n, k"),
        ({"m": "x"}, "`m` must be an integer of at least 1, not `x`"),
        ({"g": "0"}, "`g` must be an integer of at least 1"),
        ({"k": "12"}, "`k` must be a multiple of 8"),
        ({"dtype": "bf61"}, "did you mean `bf16`"),
    ],
)
def test_case_of_bad_sizes(sizes, message):
    """A size that is unknown or no number is refused by name."""
    with pytest.raises(KernelpackError, match=message):
        case_of(sizes)


def test_planes():
    """Q, K and V."""
    assert problem.PLANES == 3
