"""The grouped GEMM of bf16 tokens and NVFP4 weights: what the oracle says."""

import numpy as np
import pytest

from kernelpack.kernels.nvfp4 import oracle
from kernelpack.kernels.nvfp4.problem import Case
from kernelpack.kernels.nvfp4_w4a16_grouped_gemm.cases import small
from kernelpack.kernels.nvfp4_w4a16_grouped_gemm.definition import NVFP4_W4A16_GROUPED_GEMM
from kernelpack.kernels.nvfp4_w4a16_grouped_gemm.problem import case_of, inputs

CASE = Case(name="t", e=3, n=8, k=96, tokens=(5, 0, 3, 2), ids=(2, 0, -1, 1), seed=3)


@pytest.fixture(scope="module")
def arrays():
    return inputs(CASE)


@pytest.fixture(scope="module")
def expected(arrays):
    return NVFP4_W4A16_GROUPED_GEMM.expected(CASE, arrays)["c"]


@pytest.mark.parametrize(("row", "column", "expert"), [(0, 0, 2), (4, 7, 2), (9, 3, 1)])
def test_oracle_element(arrays, expected, row, column, expert):
    """An element is the dot product of a token and a decoded row of weights, scaled."""
    weights = oracle._weights(arrays, expert)[column]
    scale = float(arrays["expert_scales"][expert])
    value = scale * float(arrays["a"][row].astype(np.float64) @ weights)
    assert expected.value[row, column] == pytest.approx(value, rel=1e-12)


def test_rows_without_an_expert_are_left(expected):
    """Rows of group -1 are to stay as they were, and no others."""
    assert np.argwhere(np.isnan(expected.value).all(1)).reshape(-1).tolist() == [5, 6, 7]


def test_inputs(arrays):
    """Tokens are bf16; there are no scales of tokens."""
    assert arrays["a"].dtype.name == "bfloat16"
    assert set(arrays) == {
        *("a", "b", "b_scales"),
        *("group_offsets", "expert_ids", "expert_scales"),
    }


def test_sizes():
    """The manifest's names."""
    assert set(CASE.sizes) == {"t", "n", "k", "e", "n_active", "choose_for", "out_dtype"}


def test_largest_is_every_product():
    """Tokens like the largest weight: k * 6 * 6 * 448 * 448 in every element."""
    (case,) = (case for case in small() if case.name == "largest")
    arrays = inputs(case)
    found = NVFP4_W4A16_GROUPED_GEMM.expected(case, arrays)["c"].value[0, 0]
    assert found == 160 * (6 * 448) ** 2 * float(arrays["expert_scales"][1])


def test_case_of_sizes():
    """Typed sizes make a case."""
    assert case_of({"t": "30", "n": "72", "k": "64", "e": "2"}).tokens == (15, 15)
