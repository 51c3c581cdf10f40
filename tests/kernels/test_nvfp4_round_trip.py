"""Tokens and weights quantised by our kernel, multiplied by our grouped GEMM, on the emulator."""

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.formats.dtype import DType
from kernelpack.formats.grouped_scales import group_scale_offsets, scale_blocks
from kernelpack.kernels.nvfp4_grouped_gemm.definition import NVFP4_GROUPED_GEMM
from kernelpack.kernels.nvfp4_grouped_gemm.problem import Case
from tests.kernels.emulated import KeptLibrary

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

CASE = Case(name="t", e=3, n=136, k=160, tokens=(5, 0, 130, 3, 20), ids=(1, 0, -1, 2, 1))
GROUPS = {
    "scale_offsets": group_scale_offsets(CASE.offsets),
    "expert_ids": np.array(CASE.ids, np.int32),
}
OFFSETS = np.array(CASE.offsets, np.uint32)
LARGEST = 448 * 6
"""Of the numbers that a tensor scale makes of x."""


@pytest.fixture(scope="module")
def library(bundle):
    return KeptLibrary(bundle.path)


def tokens_and_weights():
    """x [t, k], w [e, n, k], of several sizes."""
    random = np.random.default_rng(7)
    x = random.standard_normal((sum(CASE.tokens), CASE.k))
    w = random.standard_normal((CASE.e, CASE.n, CASE.k)) * [[[0.02]], [[0.5]], [[3]]]
    return x.astype(DType.BF16.numpy), w.astype(DType.BF16.numpy)


def tensor_scale(array):
    return np.array([LARGEST / np.abs(array.astype(np.float32)).max()], np.float32)


@pytest.fixture(scope="module")
def arrays(library):
    """The inputs of the GEMM, quantised: each expert's tokens and weights by scales of its own."""
    x, w = tokens_and_weights()
    w_scales = np.concatenate([tensor_scale(matrix) for matrix in w])
    x_scales = tensor_scale(x) * np.array([0.5, 1, 0.75], np.float32)
    codes = np.zeros((len(x), CASE.k // 2), np.uint8)
    scales = np.full((scale_blocks(OFFSETS), 3, 32, 4, 4), 0x7F, np.uint8)
    ops.nvfp4_quantize(
        x, x_scales, row_offsets=OFFSETS, codes=codes, scales=scales, library=library, **GROUPS
    )
    weights = [
        ops.nvfp4_quantize(matrix, w_scales[e : e + 1], library=library)
        for e, matrix in enumerate(w)
    ]
    return {
        "a": codes,
        "b": np.stack([matrix for matrix, _ in weights]),
        "a_scales": scales,
        "b_scales": np.stack([scales for _, scales in weights]),
        "group_offsets": OFFSETS,
        "group_scale_offsets": GROUPS["scale_offsets"],
        "expert_ids": GROUPS["expert_ids"],
        "expert_scales": 1 / (x_scales * w_scales),
    }


@pytest.fixture(scope="module")
def c(library, arrays):
    out = np.full((sum(CASE.tokens), CASE.n), 7, np.float32)
    return ops.nvfp4_grouped_gemm(**arrays, out=out, library=library)


def test_gemm_of_what_was_quantised(arrays, c):
    """The product of the quantised numbers is the GEMM's oracle's; rows without an expert stay."""
    expected = NVFP4_GROUPED_GEMM.expected(CASE, arrays)["c"]
    left = np.isnan(expected.value)
    assert (c[left] == 7).all()
    assert left.all(1).sum() == 130
    assert (np.abs(c - expected.value) <= expected.bound)[~left].all()


@pytest.mark.parametrize("group", [0, 3, 4])
def test_product_of_what_was_meant(c, group):
    """It is the product of the numbers before, within the error of two values of four bits."""
    x, w = tokens_and_weights()
    rows = slice(CASE.offsets[group], CASE.offsets[group + 1])
    wanted = x[rows].astype(np.float64) @ w[CASE.ids[group]].astype(np.float64).T
    error = np.linalg.norm(c[rows] - wanted) / np.linalg.norm(wanted)
    assert 0.05 < error < 0.16
