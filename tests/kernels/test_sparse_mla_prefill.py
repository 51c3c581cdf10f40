"""Sparse MLA prefill: the oracle against plain arithmetic, its edges, the rules of a problem."""

from dataclasses import replace
from math import exp, inf, log

import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Expected
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.sparse_mla_prefill.cases import cases, small, telling
from kernelpack.kernels.sparse_mla_prefill.definition import SPARSE_MLA_PREFILL
from kernelpack.kernels.sparse_mla_prefill.inputs import Case, inputs
from kernelpack.kernels.sparse_mla_prefill.operands import cache, chosen, queries
from kernelpack.kernels.sparse_mla_prefill.problem import Problem, bits
from kernelpack.kernels.sparse_mla_prefill.reference import OUT_COSINE, attend
from kernelpack.kernels.sparse_mla_prefill.rows import (
    BF16,
    BF16_LATENT,
    FP8_QUERIES,
    ROWS,
    Rows,
    decode,
    encode,
)
from kernelpack.kernels.sparse_mla_prefill.typed import EMULATED, case_of

GOOD = Problem(
    t=2,
    h=3,
    topk=5,
    indices_stride=7,
    page=4,
    blocks=6,
    block_stride=8,
    q_token_stride=1800,
    q_head_stride=584,
    scale=0.5,
)
NARROW = {
    "q_scales": True,
    "row": FORMATS["fp8_576"],
    "q_token_stride": 1792,
    "q_head_stride": 576,
}
CASE = Case(
    name="t",
    t=3,
    h=2,
    topk=9,
    page=3,
    blocks=5,
    layers=2,
    layer=1,
    spare=2,
    indices="bad",
    lengths="uneven",
    sink=True,
    q_gap=8,
    seed=3,
)


def by_hand(case, arrays, token, head):
    """Out, lse and largest score of a head by the formula, a key at a time."""
    problem, width = case.problem, case.row.width
    at = token * problem.q_token_stride + head * problem.q_head_stride
    q = arrays["q"][at : at + width].astype(float)
    rows = arrays["kv"].reshape(-1, case.row.bytes)
    length = min(max(int(arrays["topk_lengths"][token]), 0), case.topk)
    scores, values = [], []
    for j in range(length):
        index = int(arrays["indices"][token * problem.indices_stride + j])
        if 0 <= index < case.page * case.blocks:
            row = index // case.page * problem.block_stride + index % case.page
            key = decode(case.row, rows[row : row + 1])[0]
            scores.append(case.scale * float(q @ key))
            values.append(key[:512])
    if not scores:
        return np.zeros(512), case.dead_lse, -inf
    total = sum(map(exp, scores))
    out = sum(exp(x) * v for x, v in zip(scores, values, strict=True))
    return out / (total + exp(float(arrays["sink"][head]))), log(total), max(scores)


@pytest.mark.parametrize("rows", [BF16, BF16_LATENT], ids=str)
@pytest.mark.parametrize("head", [0, 1])
@pytest.mark.parametrize("token", [0, 1, 2])
def test_attend_is_the_formula(token, head, rows):
    """Out, lse and largest score are what the formula gives, a key at a time."""
    case = replace(CASE, row=rows.row)
    arrays = inputs(case)
    found = attend(case.problem, arrays)
    out, lse, largest = by_hand(case, arrays, token, head)
    assert out == pytest.approx(found.out[token, head], rel=1e-6, abs=1e-9)
    assert (lse, largest) == pytest.approx(
        (found.lse[token, head], found.max_logits[token, head]), rel=1e-6
    )


DEAD = Case(name="t", t=2, h=3, topk=5, indices="invalid", sink=True)


@pytest.mark.parametrize("dead_lse", [inf, -inf])
def test_a_token_without_keys(dead_lse):
    """Its output is zero whatever the sink, its lse as the call says, its largest score -inf."""
    case = replace(DEAD, dead_lse=dead_lse)
    found = SPARSE_MLA_PREFILL.expected(case, inputs(case))
    assert not found["out"].value[0].any()
    assert not found["out"].bound[0].any()
    assert found["lse"].value[0].tolist() == [dead_lse] * 3
    assert found["max_logits"].value[0].tolist() == [-inf] * 3


@pytest.mark.parametrize("sink", [-inf, -1e38])
def test_no_sink(sink):
    """A sink of minus infinity, or nearly, means no sink."""
    with_sink = replace(CASE, sink=True, lengths="full")
    arrays = inputs(with_sink)
    arrays["sink"][:] = sink
    without = attend(replace(with_sink, sink=False).problem, arrays)
    assert np.array_equal(without.out, attend(with_sink.problem, arrays).out)


def test_an_infinite_sink():
    """It takes all of the weight, and leaves lse alone."""
    case = replace(CASE, lengths="full", indices="random")
    arrays = inputs(case)
    arrays["sink"][:] = inf
    found = attend(case.problem, arrays)
    assert not found.out.any()
    assert np.isfinite(found.lse).all()


def test_duplicates_count():
    """The same row twice weighs twice: lse is ln 2 more, out the same."""
    case = Case(name="t", t=1, h=1, topk=1)
    once = inputs(case)
    twice = once | {"indices": once["indices"].repeat(2)}
    two = replace(case, topk=2).problem
    alone, both = attend(case.problem, once), attend(two, twice)
    assert both.lse - alone.lse == pytest.approx(log(2))
    assert np.allclose(alone.out, both.out, rtol=1e-12)


def test_unused_memory_is_poison():
    """Rows that nothing names, rows of other layers, gaps of q and spare entries are no use."""
    arrays, problem = inputs(CASE), CASE.problem
    used = {int(row) for t in range(CASE.t) for row in chosen(problem, arrays, t)}
    rows = decode(CASE.row, arrays["kv"])
    assert [r for r in range(problem.kv_rows) if not np.isnan(rows[r]).all()] == sorted(used)
    assert np.isnan(arrays["q"].astype(float)).sum() == arrays["q"].size - 3 * 2 * 576
    assert not np.isnan(queries(problem, arrays["q"])).any()


@pytest.mark.parametrize(("turn", "rows"), [*enumerate(ROWS)], ids=str)
def test_oracle_of_small_cases(turn, rows):
    """Every output of a small case is finite but where a token has no keys.

    Rows of e4m3, of which there are many kinds and whose oracle is slow, share out the cases that
    are not telling.
    """
    shares = 1 if rows.row.dtype is DType.BF16 else 3
    for case in dict.fromkeys((*telling(rows), *small(rows)[turn % shares :: shares])):
        found = SPARSE_MLA_PREFILL.expected(case, SPARSE_MLA_PREFILL.inputs(case))
        assert np.isfinite(found["out"].value).all(), case.name
        assert not any(np.isnan(e.value).any() for e in found.values()), case.name


@pytest.mark.parametrize(("values", "rises", "calm"), [("rising", 2, 0), ("falling", 0, 4)])
def test_sloped_scores(values, rises, calm):
    """The largest score of a block of 64 rises by more than 6 in log2 units, or never again."""
    case = next(c for c in small() if c.name == f"bf16_576_values_{values}")
    arrays = SPARSE_MLA_PREFILL.inputs(case)
    q, rows = queries(case.problem, arrays["q"]), decode(case.row, arrays["kv"])
    scores = q[-1] @ rows[chosen(case.problem, arrays, 1)].T * case.scale * 1.4427
    largest = np.array([scores[:, at : at + 64].max(1) for at in range(0, case.topk, 64)])
    steps = np.diff(np.maximum.accumulate(largest), axis=0)
    assert ((steps > 6).sum(0) >= rises).all()
    assert ((steps <= 6).sum(0) >= calm).all()


def test_whole_grid():
    """Heads, topk and pages of every kind are among the small cases, and one token is full size."""
    assert {1, 5, 8, 16, 24, 64, 96, 128} <= {c.h for c in small()}
    assert {1, 37, 129, 191, 512} <= {c.topk for c in small()}
    assert {1, 3, 16, 64, 128} <= {c.page for c in small()}
    assert any((c.t, c.h, c.topk) == (1, 128, 2048) for c in cases())
    assert len(telling()) == 3


def test_cosine_sees_a_lost_key():
    """An output that lacks one key of 512 is within each element's bound, but not as a whole."""
    case = Case(name="t", t=1, h=4, topk=512, blocks=10)
    arrays = inputs(case)
    expected = SPARSE_MLA_PREFILL.expected(case, arrays)["out"]
    arrays["indices"][17] = -1
    lost = attend(case.problem, arrays).out
    assert expected.ratio(lost).max() <= 1
    assert expected.drift(lost) > 1


@pytest.mark.parametrize(
    ("found", "drift"),
    [([3.0, 4.0], 0.0), ([3.0, 4.5], 0.25 / 54.25), ([0.0, 0.0], 1.0), ([np.nan, 4.0], inf)],
)
def test_drift(found, drift):
    """It is 1 - 2ab / (aa + bb) over its limit; NaN is beyond any."""
    expected = Expected(value=np.array([3.0, 4.0]), bound=np.ones(2), cosine=1.0)
    assert expected.drift(np.array(found)) == pytest.approx(drift)


def test_drift_of_our_limit():
    """The output's limit is FlashMLA's."""
    found = SPARSE_MLA_PREFILL.expected(CASE, inputs(CASE))["out"]
    assert found.cosine == OUT_COSINE == 7e-6


KINDS = [
    *(Rows(row=FORMATS[name]) for name in ("fp8_576", "fp8_512", "fp8_656")),
    *(Rows(row=FORMATS[name], kv_scales=1) for name in ("fp8_576", "fp8_512", "fp8_640")),
    *(Rows(row=FORMATS["fp8_576"], kv_scales=count) for count in (5, 9, 18)),
]
"""Rows of fp8: without scales or with their own, one a row, one a block of columns."""


@pytest.mark.parametrize("rows", KINDS, ids=str)
def test_fp8_rows_come_back(rows):
    """Numbers are within half a step of e4m3 of what was encoded, of its least step near zero."""
    values = np.random.default_rng(0).standard_normal((30, rows.row.width)) * 2
    raw, beside = encode(rows.row, values, rows.kv_scales)
    largest = np.abs(values).max() if rows.row.inline_scales or rows.kv_scales else 2.0**8.8
    error = np.abs(decode(rows.row, raw, beside) - values)
    assert (error <= np.maximum(np.abs(values) / 16, largest * 2.0**-18)).all()
    assert raw.shape == (30, rows.row.bytes)


@pytest.mark.parametrize("rows", [*KINDS, *FP8_QUERIES], ids=str)
@pytest.mark.parametrize("values", ["normal", "rising"])
def test_fp8_is_near_what_is_exact(rows, values):
    """Quantised queries and weights cost at most 3 % of the output, rounding to bf16 far less."""
    case = Case(
        name="t",
        t=2,
        h=20,
        topk=300,
        blocks=6,
        row=rows.row,
        kv_scales=rows.kv_scales,
        q_scales=rows.q_scales,
        indices="shared",
        values=values,
    )
    arrays = inputs(case)
    found = attend(case.problem, arrays).out
    k = decode(rows.row, *cache(case.problem, arrays))
    q = queries(case.problem, arrays["q"])
    if rows.q_scales:
        q *= arrays["q_scales"][..., None]
    for token in range(2):
        chose = k[chosen(case.problem, arrays, token)]
        x = case.scale * q[token] @ chose.T
        p = np.exp(x - x.max(1, keepdims=True))
        exact = p @ chose[:, :512] / p.sum(1, keepdims=True)
        limit = 0.03 if case.problem.is_native else 0.004
        assert np.linalg.norm(found[token] - exact) <= limit * np.linalg.norm(exact)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"h": 0}, "`h` must be 1 to 128, not 0"),
        ({"h": 129}, "`h` must be 1 to 128, not 129"),
        ({"topk": 0}, "`topk` must be from 1"),
        ({"indices_stride": 4}, "`indices_stride` must be from topk = 5"),
        ({"page": 0}, "`page` must be at least 1"),
        ({"blocks": 0}, "`blocks` must be at least 1"),
        ({"block_stride": 3}, "`block_stride` must be from page = 4 rows"),
        ({"blocks": 2**29}, "`kv_rows` must be below 2\\^31"),
        ({"q_head_stride": 580}, "`q_head_stride` must be a multiple of 8 elements"),
        ({"q_token_stride": 2**39}, "`q_token_stride` must be .* below 2\\^39"),
        ({"scale": 0.0}, "`scale` must be from 2\\^-100"),
        ({"scale": -0.1}, "`scale` must be"),
        ({"scale": float("nan")}, "`scale` must be"),
        ({"dead_lse": 0.0}, "`dead_lse` must be inf or -inf"),
        ({"t": 2**30}, "`t` must be from 0"),
        ({"q_scales": True}, "`q` must be bf16 with rows of bf16_576 and 0 scales each, not e4m3"),
        ({**NARROW, "kv_scales": 5}, "`q` must be bf16 with rows of fp8_576 and 5 scales each"),
        ({**NARROW, "q_head_stride": 584}, "`q_head_stride` must be a multiple of 16 elements"),
    ],
)
def test_rules(changes, message):
    """A number that breaks a rule is named, with the rule."""
    with pytest.raises(ProblemError, match=message):
        replace(GOOD, **changes).check()


def test_a_head_of_e4m3_is_a_row():
    """Elements of q of e4m3 are bytes, as many as a row of the cache has."""
    problem = replace(GOOD, **{**NARROW, "row": FORMATS["fp8_640"]})
    problem.check()
    assert (problem.q_width, problem.sizes["q_bytes"], GOOD.sizes["q_bytes"]) == (640, 1, 2)


def test_a_head_of_zeros_weighs_all_alike():
    """Its scale may be 0: each key weighs the same."""
    rows = FP8_QUERIES[0]
    given = {"row": rows.row, "kv_scales": rows.kv_scales, "q_scales": True}
    case = Case(name="t", t=1, h=1, topk=7, **given)
    arrays = inputs(case)
    arrays["q_scales"][:] = 0
    assert attend(case.problem, arrays).lse == pytest.approx(log(7))


def test_at_the_limits():
    """What is at a limit is still allowed; no tokens are too, and launch nothing."""
    replace(GOOD, h=128, topk=1, indices_stride=1, page=1, blocks=1, block_stride=1).check()
    none = replace(GOOD, t=0)
    none.check()
    assert none.is_empty


def test_numbers_by_their_bits():
    """Fp32 numbers go as the integers of their bits: the scale in log2 units."""
    sizes = replace(GOOD, scale=1.0, dead_lse=-inf).sizes
    assert sizes["scale_log2e"] == bits(1.4426950408889634) == 0x3FB8AA3B
    assert sizes["dead_lse"] == 0xFF800000


def test_typed():
    """Sizes as typed make a case; those that an emulator runs are small."""
    case = case_of({**EMULATED, "row": "bf16_512", "lengths": "garbage"})
    assert (case.t, case.h, case.row, case.lengths) == (1, 16, BF16_LATENT.row, "garbage")
    assert case_of({}).row.name == "bf16_576"


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"row": "fp4"}, "unknown row `fp4`"),
        ({"indices": "x"}, "unknown indices `x`"),
        ({"heads": "8"}, "unknown size `heads`"),
        ({"h": "200"}, "`h` must be 1 to 128"),
    ],
)
def test_typed_wrong(sizes, message):
    """A word or a number that is not right is named."""
    with pytest.raises(ProblemError, match=message):
        case_of(sizes)
