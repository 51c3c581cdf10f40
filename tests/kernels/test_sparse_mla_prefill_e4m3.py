"""Rows that are multiplied as e4m3: long tails and far scales, and what Hopper cuts of scores."""

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.emulator.models import mma
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.sparse_mla_prefill import hopper, native
from kernelpack.spec.arch import Arch
from tests.kernels.test_sparse_mla_prefill import CASE

KEYS, HEADS = 2048, 8
E4M3 = DType.E4M3.numpy


def weighed(logits, scales):
    """Keys of given logits, natural units, and scales of rows: one column of Q·K is not zero."""
    keys = np.zeros((len(logits), 576))
    keys[:, 575] = 1
    found = native.Weighed.of(
        native.Queries(numbers=np.zeros((1, 576)), scales=np.ones((1, 1))),
        keys,
        np.asarray(scales, float)[:, None],
        1.0,
    )
    most = np.ceil(max(logits * np.log2(np.e) + np.log2(scales)))
    exact = np.exp2(logits * np.log2(np.e) - most)[None]
    return native.Weighed(
        scores=found.scores, most=np.full((1, 1), most), exact=exact, scales=np.asarray(scales)
    )


def off(logits, scales, codes):
    """How far the oracle's output is from unquantised weights, over the largest it can be."""
    keys = np.zeros((len(logits), 576))
    keys[:, :512] = codes[:, None]
    one = weighed(np.asarray(logits, float), np.asarray(scales, float))
    found = native.attend(one, keys, np.array([-np.inf])).out[0, 0]
    p = one.exact[0] / one.exact.sum()
    exact, size = p @ (scales * codes), (p * scales).sum() * np.abs(codes).max()
    return abs(found - exact) / size


def test_what_is_added_moves_weights_near_a_boundary():
    """Weights of 128, 136 (half way to 144), 135.99 and 140 in 256ths: two of them may move."""
    exact = np.array([[128, 136, 135.9999, 140]]) / 256
    one = native.Weighed(
        scores=np.log2(exact), most=np.zeros((1, 1)), exact=exact, scales=np.ones(4)
    )
    assert (one.dithered * 256).tolist() == [[0, 16, 16, 0]]


TAILS = [-5, -7, -9, -11, -12, -13, -15, -20]
"""Natural logits below one key's: weights of e4m3 below about -11 are 0 or twice too large."""


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("first", [0.0, 1.0, -1.0])
def test_a_long_tail(tail, first):
    """One key at 0 and 2047 far below: within 3 % of unquantised weights, whatever the values."""
    logits, codes = np.full(KEYS, float(tail)), np.ones(KEYS)
    logits[0], codes[0] = 0, first
    assert off(logits, np.ones(KEYS), codes) <= 0.03


@pytest.mark.parametrize("ratio", [1.0, 0.37, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-7, 1e-30])
@pytest.mark.parametrize("value", [1.0, 0.0, -1.0])
def test_far_scales(ratio, value):
    """One row of ones among sixteen, the others' scale far below: they weigh what they weigh."""
    scales, codes = np.full(16, ratio), np.full(16, value)
    scales[0], codes[0] = 1, 1
    assert off(np.zeros(16), scales, codes) <= 0.03


@pytest.mark.parametrize("seed", range(20))
def test_any_logits_and_scales(seed):
    """Spread logits and scales, values of any sign: within 3 % of what the output may be."""
    random = np.random.default_rng(seed)
    logits = random.standard_normal(300) * random.choice([0.1, 2, 6])
    scales = np.exp(random.standard_normal(300) * random.choice([0.1, 3, 9]))
    assert off(logits, scales, random.choice([-1.0, 0.0, 1.0], 300)) <= 0.03


def halves(random, columns, spread):
    """Vectors of e4m3 whose numbers are spread so far: the largest is 448."""
    values = random.standard_normal((16, columns)) * np.exp(
        spread * random.standard_normal((16, columns))
    )
    scaled = values / np.abs(values).max(1, keepdims=True) * 448
    return native.e4m3(scaled.astype(np.float32))


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_what_hopper_cuts_is_within_its_bound(spread, shift):
    """Chains of MMAs that add up as Hopper does are as near to q·k as `hopper.cut` says."""
    random, columns = np.random.default_rng(0), 576
    q, k = (native.e4m3((halves(random, columns, spread) + shift).astype("f4")) for _ in range(2))
    rule = mma.Summation(fraction_bits=hopper.BITS, output_bits=hopper.BITS)
    found, width = np.zeros((16, 16)), hopper.STEP
    for chain in range(0, columns, hopper.CHAIN * width):
        sums = None
        for step in range(chain, chain + hopper.CHAIN * width, width):
            at = slice(step, step + width)
            a, b = q[:, at].astype(np.float32), k[:, at].astype(np.float32)
            sums = mma.exact(
                mma.Operands(a=a, b=b, c=sums, a_type=DType.E4M3, b_type=DType.E4M3), rule
            )
        found = found + sums
    error, bound = np.abs(found - q @ k.T), hopper.cut(q, k)
    assert (error <= bound).all()
    assert (bound <= 2.0**-7 * np.linalg.norm(q, axis=1)[:, None] * np.linalg.norm(k, axis=1)).all()


def test_hopper_s_bound_is_for_hopper():
    """On Blackwell bounds are FlashMLA's; rows of bf16 have the same everywhere."""
    from dataclasses import replace

    from kernelpack.kernels.sparse_mla_prefill.definition import SPARSE_MLA_PREFILL

    def bounds(case, arch):
        found = SPARSE_MLA_PREFILL.expected(case, SPARSE_MLA_PREFILL.inputs(case))
        return np.concatenate([found[n].on(Arch(arch)).bound.ravel() for n in ("lse", "out")])

    narrow = replace(CASE, row=FORMATS["fp8_576"], kv_scales=1)
    assert np.array_equal(bounds(CASE, "sm_90a"), bounds(CASE, "sm_100a"))
    assert (bounds(narrow, "sm_90a") >= bounds(narrow, "sm_100a")).all()
    assert (bounds(narrow, "sm_90a") > bounds(narrow, "sm_100a")).any()


def attended(bundle, arch, heads, logits, scales, codes):
    """Of all heads the output's first column, and the lse; logits are times scales."""
    rows = np.zeros((len(logits), 576), np.float32)
    rows[:, :512], rows[:, 575] = np.asarray(codes)[:, None], logits
    q = np.zeros((1, heads, 576), np.float32)
    q[..., 575] = 1
    out, lse = ops.sparse_mla_prefill(
        q.astype(DType.BF16.numpy),
        kv.Ragged(rows.astype(E4M3), scales=np.asarray(scales, np.float32)),
        np.arange(len(rows), dtype=np.int32)[None],
        1.0,
        return_lse=True,
        library=ops.EmulatedLibrary(bundle.path, arch=arch),
    )
    return out[0, :, 0].astype(float), lse[0].astype(float)


FORMS = [("sm_90a", 32), ("sm_90a", 64), ("sm_100a", 64), ("sm_100a", 128)]


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.parametrize("ratio", [1e-3, 1e-5, 1e-12])
@pytest.mark.parametrize(("arch", "heads"), FORMS)
def test_kernels_keep_far_rows(bundle, arch, heads, ratio):
    """A row of ones among sixteen, the others 0.001 or less: out is their mean, lse ln 16."""
    scales = np.full(16, ratio)
    scales[0] = 1
    out, lse = attended(bundle, arch, heads, np.zeros(16), scales, np.ones(16))
    assert np.abs(out / scales.mean() - 1).max() <= 2.0**-7
    assert np.abs(lse - np.log(16)).max() <= 1e-5


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.parametrize("tail", [-10, -11, -12])
@pytest.mark.parametrize(("arch", "heads"), FORMS)
def test_kernels_keep_long_tails(bundle, arch, heads, tail):
    """What 255 keys far below another one weigh is right within a tenth, not 0 nor double."""
    logits, codes = np.full(256, float(tail)), np.ones(256)
    logits[0] = codes[0] = 0
    out, _ = attended(bundle, arch, heads, logits, np.ones(256), codes)
    weight = 255 * np.exp(tail)
    assert np.abs(out * (1 + weight) / weight - 1).max() <= 0.1
