"""Shared by the grouped GEMMs of NVFP4 weights: rules, cases, inputs, decoding."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.errors import KernelpackError, ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.nvfp4 import cases, oracle
from kernelpack.kernels.nvfp4.inputs import groups, weights
from kernelpack.kernels.nvfp4.problem import Case, Problem, case_of

GOOD = Problem(t=4, n=72, k=96, e=2, n_active=2)
CASE = Case(name="t", e=2, n=72, k=96, tokens=(3, 0, 2), ids=(1, -1, 0))
LISTED = cases.cases(Case)
BY_NAME = {case.name: case for case in LISTED}
E2M1 = (0, 0.5, 1, 1.5, 2, 3, 4, 6)


def made(case=CASE):
    return weights(np.random.default_rng(0), case)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"k": 48}, "x: `k` must be a multiple of 32, not 48"),
        ({"k": 0}, "`k` must be a multiple of 32, not 0"),
        ({"n": 12}, "`n` must be a multiple of 8, not 12"),
        ({"t": -1}, "`t` must be from 0 to below 2\\^31, not -1"),
        ({"e": 0}, "`e` must be at least 1 expert"),
        ({"out_dtype": DType.E4M3}, "`c` must be bf16, fp16, fp32, not e4m3"),
    ],
)
def test_rules(change, rule):
    """A problem that breaks a rule is refused with the size, the rule and the value."""
    with pytest.raises(ProblemError, match=rule):
        replace(GOOD, **change).check("x")


@pytest.mark.parametrize(
    ("change", "empty"), [({}, False), ({"t": 0}, True), ({"n_active": 0}, True)]
)
def test_is_empty(change, empty):
    """Without tokens or without groups there is nothing to compute."""
    assert replace(GOOD, **change).is_empty is empty


@pytest.mark.parametrize(
    ("name", "field", "expected"),
    [
        ("grid_tokens_65_1027_386", "ids", (2, 0, 1)),
        ("grid_tokens_0_3_1_2", "ids", (-1, 2, -1, 0)),
        ("model_n1856_k2688_single_tokens", "tokens", (1,) * 9),
        ("model_n4096_k7168_one_busy", "tokens", (8, *(1,) * 8)),
        ("inactive_all", "ids", (-1, -1, -1)),
        ("length_32", "k", 32),
        ("columns_1856", "n", 1856),
        ("largest", "is_largest", True),
    ],
)
def test_cases(name, field, expected):
    """The public grid, model shapes and rules are among the cases."""
    assert expected == getattr(BY_NAME[name], field)


@pytest.mark.parametrize("case", LISTED, ids=lambda case: case.name)
def test_cases_are_problems(case):
    """Every case obeys the rules and has an expert for each id."""
    case.problem.check("x")
    assert max(case.ids) < case.e
    assert len(case.tokens) == len(case.ids)


def test_small_cases_are_small():
    """An emulator's cases have at most 2^23 products."""
    products = [sum(c.tokens) * c.n * c.k for c in cases.small(LISTED)]
    assert max(products) <= 2**23


def test_three_telling_cases():
    """Every variant is verified on three cases of several rules at once."""
    assert len(cases.telling(LISTED)) == 3


def test_model_shapes_have_one_type():
    """Large cases are verified once; other outputs differ in the last step only."""
    assert not [c for c in cases.cases(Case, DType.FP32) if c.name.startswith("model")]


@pytest.mark.parametrize(("byte", "row", "k"), [(0, 0, 0), (40, 7, 80), (47, 71, 95)])
def test_decoded(byte, row, k):
    """The low nibble is the even element; sign, then e2m1, times the scale of 16 elements."""
    packed = made()["b"][1]
    scales = np.arange(72 * 6, dtype=np.uint8).reshape(72, 6) % 0x7E
    nibble = packed[row, byte] >> (4 * (k % 2)) & 15
    scale = float(scales[row, k // 16 : k // 16 + 1].view(DType.E4M3.numpy)[0])
    expected = (-1.0) ** (nibble >> 3) * E2M1[nibble & 7] * scale
    assert expected == oracle.decoded(packed, scales)[row, k]


def test_bit_7_of_a_scale_has_no_value():
    """The oracle refuses a scale that nothing defines."""
    with pytest.raises(ProblemError, match="no value is defined for a scale of 0xb8, above 0x7f"):
        oracle.decoded(made()["b"][1], np.full((72, 6), 0xB8, np.uint8))


@pytest.mark.parametrize(("row", "block"), [(0, 0), (35, 5), (71, 4)])
def test_weight_scales_are_where_the_formula_says(row, block):
    """The byte of a scale, counted from the expert's first."""
    stored = made()["b_scales"]
    at = (1 * 1 + row // 128) * 2 * 512 + (block // 4) * 512
    at += (row % 32) * 16 + (row % 128) // 32 * 4 + block % 4
    arrays = made() | {"b_scales": np.zeros_like(stored)}
    arrays["b_scales"].reshape(-1)[at] = 0x38
    found = oracle._weights(arrays, 1)
    outside = np.delete(found.reshape(72, 6, 16)[row], block, 0)
    assert found[row, block * 16 : block * 16 + 16].any()
    assert not outside.any()


def test_padding_rows_are_nan_and_padding_along_k_is_zero():
    """Rows 72 to 127 would spoil what they got into; blocks 6 and 7 are multiplied into rows."""
    atoms = made()["b_scales"][0, 0].swapaxes(0, 2)  # [4 of 32 rows, 32, k atoms, blocks]
    rows = atoms.reshape(128, 2 * 4)
    assert (rows[72:, :6] == 0x7F).all()
    assert not rows[:72, 6:].any()


def test_largest():
    """Every code is 6 and every scale 448."""
    found = oracle._weights(made(replace(CASE, is_largest=True)), 0)
    assert (found == 6 * 448).all()


def test_groups():
    """Offsets are the running count of tokens; an expert's scale is its own."""
    arrays = groups(CASE, 3)
    assert arrays["group_offsets"].tolist() == [0, 3, 3, 5]
    assert (arrays["expert_scales"] * 2.0**6).tolist() == [1.5, 2.0]
    kinds = [arrays[name].dtype.name for name in ("group_offsets", "expert_ids", "expert_scales")]
    assert kinds == ["uint32", "int32", "float32"]


def test_case_of_sizes():
    """Typed sizes make a case; tokens are spread over as many groups as there are experts."""
    case = case_of(Case, "x", {"t": "10", "n": "72", "k": "64", "e": "4", "out_dtype": "fp32"})
    assert (case.tokens, case.ids, case.out_dtype) == ((2, 3, 2, 3), (0, 1, 2, 3), DType.FP32)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"m": "1"}, "unknown size `m`(.|\n)*sizes: t, n, k, e, n_active, out_dtype, seed"),
        ({"e": "0"}, "`e` must be an integer of at least 1"),
        ({"k": "40"}, "`k` must be a multiple of 32"),
        ({"out_dtype": "bf61"}, "did you mean `bf16`"),
    ],
)
def test_case_of_bad_sizes(sizes, message):
    """A size that is unknown, no number or against a rule is refused by name."""
    with pytest.raises(KernelpackError, match=message):
        case_of(Case, "x", sizes)


def test_no_rows():
    """What has no rows decodes to nothing, of the right width."""
    empty = np.zeros((0, 16), np.uint8)
    assert oracle.decoded(empty, empty[:, :2]).shape == (0, 32)
