"""NaN in a token's q, or in a row that it attends to, and scores far below zero."""

import numpy as np
import pytest

from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.sparse_mla_prefill.inputs import Case, inputs
from kernelpack.kernels.sparse_mla_prefill.reference import attend, expected
from kernelpack.kernels.sparse_mla_prefill.rows import encode
from kernelpack.spec.arch import Arch
from tests.kernels.emulated import outputs_of

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KEYS, HEADS, LAST = 66, 3, 65  # keys of a token: two blocks, the second nearly empty
NAN, INF, FAR, TOO_FAR = np.nan, np.inf, 45.0, 1e16
CLEAN, Q_NAN, ROW_NAN, ROW_INF, NO_KEY, ALL_BELOW, FAR_BELOW, TOO_FAR_BELOW, TOKENS = range(9)

NOT_A_NUMBER = np.zeros((TOKENS, HEADS), bool)
NOT_A_NUMBER[Q_NAN] = [True, False, True]
NOT_A_NUMBER[ROW_NAN] = True
NOT_A_NUMBER[ALL_BELOW] = [True, False, True]
"""Heads whose out, lse and max_logits are NaN: a score is NaN or +inf, or all are -inf."""


def not_a_number(row):
    """The same of a kind of rows; e4m3 has no infinity."""
    found = NOT_A_NUMBER.copy()
    found[ROW_INF] = [row != "fp8_576", False, row != "fp8_576"]
    return found


def problem_of(row):
    """A case and its arrays: each token attends to rows of its own."""
    case = Case(name="t", t=TOKENS, h=HEADS, topk=KEYS, page=KEYS, blocks=TOKENS, row=FORMATS[row])
    random, rope = np.random.default_rng(1), slice(512, case.row.width)
    q = random.standard_normal((TOKENS, HEADS, case.row.width)).astype(np.float32)
    k = random.standard_normal((TOKENS, KEYS, case.row.width)).astype(np.float32) / 10
    entries = np.arange(TOKENS * KEYS, dtype=np.int32).reshape(TOKENS, KEYS)
    q[Q_NAN, 0, 3], q[Q_NAN, 2, 500], q[NO_KEY] = NAN, INF, NAN
    entries[NO_KEY], entries[ALL_BELOW, 1:] = -1, -1
    q[ALL_BELOW, 0, 9], q[ALL_BELOW, 2, 9], k[ALL_BELOW, 0, 9] = INF, -INF, -0.5
    q[FAR_BELOW], k[FAR_BELOW] = FAR, -FAR
    q[TOO_FAR_BELOW], k[TOO_FAR_BELOW] = TOO_FAR, -TOO_FAR
    k[ROW_INF, LAST, rope], q[ROW_INF, 0, rope], q[ROW_INF, 2, rope] = 1, 1, 0
    q[ROW_INF, 1, rope] = -1  # its score is -inf, which weighs nothing
    rows, _ = encode(case.row, k.reshape(-1, case.row.width), 0)
    put_nan(case.row, rows[ROW_NAN * KEYS + LAST])
    if case.row.rope_dtype is DType.BF16:
        rows[ROW_INF * KEYS + LAST, -128:].view(DType.BF16.numpy)[0] = INF
    arrays = inputs(case) | {"kv": rows, "indices": entries.reshape(-1)}
    return case, arrays | {"q": q.astype(DType.BF16.numpy).reshape(-1)}


def put_nan(row, data):
    """A NaN in the tenth column of a row's bytes."""
    if row.dtype is DType.BF16:
        data.view(DType.BF16.numpy)[10] = NAN
    else:
        data[10] = 0x7F


@pytest.mark.parametrize("row", ["bf16_576", "fp8_656", "fp8_576"])
def test_oracle_says_what_is_no_number(row):
    """As IEEE arithmetic has it: the heads with such a score, and no other head or token."""
    case, arrays = problem_of(row)
    found, is_nan = attend(case.problem, arrays), not_a_number(row)
    assert (np.isnan(found.lse) == is_nan).all()
    assert (np.isnan(found.max_logits) == is_nan).all()
    assert (np.isnan(found.out) == is_nan[..., None]).all()


@pytest.mark.parametrize(
    ("arch", "row", "heads"),
    [
        ("sm_100a", "bf16_576", 64),
        ("sm_100a", "bf16_576", 128),
        ("sm_100a", "fp8_656", 64),
        ("sm_90a", "bf16_576", 8),
        ("sm_90a", "bf16_576", 64),
        ("sm_90a", "fp8_656", 128),
        ("sm_100a", "fp8_576", 64),
        ("sm_100a", "fp8_576", 128),
        ("sm_90a", "fp8_576", 32),
        ("sm_90a", "fp8_576", 64),
    ],
)
def test_what_is_no_number_is_none_in_its_heads_alone(bundle, arch, row, heads):
    """NaN is where the oracle has it, and all other heads are right.

    So are scores of -2^20. Those of -1e34 may be NaN, but are not taken for a token without keys.
    """
    case, arrays = problem_of(row)
    begin = f"sparse_mla_prefill[arch={arch},row={row},scale_block=0,heads={heads},query=bf16"
    found = outputs_of(bundle, begin, case, arrays)
    for name, anywhere in expected(case.problem, arrays).items():
        right = anywhere.on(Arch(arch))
        value, ratio = found[name].astype(np.float64), right.ratio(found[name])
        is_nan = np.isnan(right.value)
        assert (is_nan == np.isnan(value))[:TOO_FAR_BELOW].all(), name
        assert ratio[:TOO_FAR_BELOW][~is_nan[:TOO_FAR_BELOW]].max() <= 1, name
        assert (np.isnan(value) | (ratio <= 1))[TOO_FAR_BELOW].all(), name
