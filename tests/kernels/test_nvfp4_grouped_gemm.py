"""The NVFP4 grouped GEMM: where tokens' scales lie, what the oracle says."""

import numpy as np
import pytest

from kernelpack.formats.dtype import DType
from kernelpack.kernels.nvfp4 import oracle
from kernelpack.kernels.nvfp4_grouped_gemm import reference
from kernelpack.kernels.nvfp4_grouped_gemm.cases import cases, small
from kernelpack.kernels.nvfp4_grouped_gemm.definition import NVFP4_GROUPED_GEMM
from kernelpack.kernels.nvfp4_grouped_gemm.problem import Case, case_of, inputs

CASE = Case(
    name="t", e=3, n=8, k=96, tokens=(65, 130, 0, 2), ids=(2, 0, 1, -1), spare_blocks=1, seed=3
)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


@pytest.fixture(scope="module")
def arrays():
    return inputs(CASE)


@pytest.fixture(scope="module")
def expected(arrays):
    return NVFP4_GROUPED_GEMM.expected(CASE, arrays)["c"]


def element(arrays, m, n):
    """c[m, n] and the sum of the products' magnitudes, by the definition, scale by scale."""
    offsets, ids = arrays["group_offsets"].astype(int), arrays["expert_ids"]
    group = next(g for g in range(len(ids)) if offsets[g] <= m < offsets[g + 1])
    expert, blocks = ids[group], int(arrays["group_scale_offsets"][group])
    row = (offsets[group] // 128 + blocks) * 128 + m - offsets[group]
    products = [
        code(arrays["a"][m], k)
        * scale(arrays["a_scales"], row, k)
        * code(arrays["b"][expert, n], k)
        * scale(arrays["b_scales"][expert], n, k)
        for k in range(CASE.k)
    ]
    es = float(arrays["expert_scales"][expert])
    return es * sum(products), es * sum(map(abs, products))


def code(packed, k):
    nibble = packed[k // 2] >> (4 * (k % 2)) & 15
    return (-1.0) ** (nibble >> 3) * E2M1[nibble & 7]


def scale(tensor, row, k):
    byte = tensor[row // 128, k // 64, row % 32, (row % 128) // 32, (k // 16) % 4]
    return float(np.array(byte).view(DType.E4M3.numpy))


@pytest.mark.parametrize(
    ("row", "column"), [(0, 0), (64, 7), (65, 1), (192, 3), (193, 4), (194, 5)]
)
def test_oracle_element(arrays, expected, row, column):
    """An element is the sum of codes times scales, times the expert's scale."""
    value, magnitude = element(arrays, row, column)
    assert expected.value[row, column] == pytest.approx(value, rel=1e-12, abs=1e-12)
    bound = abs(value) * 2.0**-8 + magnitude * 2.0**-18
    assert expected.bound[row, column] == pytest.approx(bound, rel=1e-9)


def test_rows_without_an_expert_are_left(expected):
    """Rows of group -1 are to stay as they were, and no others."""
    assert np.isnan(expected.value).all(1).tolist() == [False] * 195 + [True] * 2


def test_a_wrong_scale_shows(arrays, expected):
    """One scale byte of a token one step off puts an element of its row beyond its bound."""
    wrong = arrays | {"a_scales": arrays["a_scales"].copy()}
    wrong["a_scales"][1, 1, 3, 0, 1] ^= 8  # row 3 of the second group, elements 80 to 95
    found = NVFP4_GROUPED_GEMM.expected(CASE, wrong)["c"].value
    assert np.argwhere((expected.ratio(found)[:195] > 1).any(1)).tolist() == [[68]]


def test_padding_rows_hold_nan(arrays):
    """Rows of scales that no token has would spoil every sum they got into."""
    atoms = arrays["a_scales"].transpose(0, 3, 2, 1, 4).reshape(-1, 8)  # [rows, blocks]
    owned = [*range(65), *range(128, 258), *range(384, 386)]
    is_nan = (atoms[:, :6] == 0x7F).all(1)
    assert np.argwhere(~is_nan).reshape(-1).tolist() == owned
    assert atoms.shape == (5 * 128, 8)


def test_padding_along_k_is_zero(arrays):
    """Blocks 6 and 7 of k = 96 are multiplied into real rows."""
    assert not arrays["a_scales"][:, 1, :, :, 2:].any()


def test_tokens_are_finite(arrays):
    """No padding gets into a token."""
    assert np.isfinite(reference.tokens(arrays)).all()


def test_inputs_are_the_same_each_time(arrays):
    """A case's seed decides its inputs."""
    again = inputs(CASE)
    assert all(arrays[name].tobytes() == again[name].tobytes() for name in arrays)


def test_sizes():
    """The scale tensor may have blocks that no group owns."""
    assert CASE.sizes["scale_blocks"] == 1 + 2 + 0 + 1 + 1
    assert {case.spare_blocks for case in small()} == {0, 1}


@pytest.mark.parametrize("out_dtype", [DType.BF16, DType.FP16, DType.FP32])
@pytest.mark.parametrize("name", ["largest", "length_2080", "telling_groups"])
def test_outputs_fit_every_type(name, out_dtype):
    """No output overflows, the largest codes and scales included."""
    (case,) = (case for case in small(out_dtype) if case.name == name)
    expected = NVFP4_GROUPED_GEMM.expected(case, inputs(case))["c"]
    largest = float(np.nanmax(np.abs(expected.value)))
    assert 1 <= largest < 2**10


def test_largest_is_every_product():
    """Codes of 6 and scales of 448 everywhere: k * 6 * 6 * 448 * 448 in every element."""
    (case,) = (case for case in small() if case.name == "largest")
    arrays = inputs(case)
    found = NVFP4_GROUPED_GEMM.expected(case, arrays)["c"].value[0, 0]
    assert found == 160 * (6 * 448) ** 2 * float(arrays["expert_scales"][1])


def test_all_types():
    """Definition's cases are every case with every output; model shapes with one."""
    types = {case.out_dtype for case in NVFP4_GROUPED_GEMM.cases()}
    assert types == {DType.BF16, DType.FP16, DType.FP32}
    assert len(cases()) > len(cases(DType.FP32))


def test_case_of_sizes():
    """Typed sizes make a case with as many scale blocks as its groups need."""
    case = case_of({"t": "300", "n": "72", "k": "64", "e": "2"})
    assert (case.tokens, case.sizes["scale_blocks"]) == ((150, 150), 4)


def test_pairs():
    """A byte's two elements, the low nibble first."""
    assert oracle._PAIRS[0x9C].tolist() == [-2.0, -0.5]
