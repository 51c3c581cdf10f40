"""Rows that are multiplied as e4m3: long tails and far scales, and what Hopper cuts of scores."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.emulator.models import mma
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.sparse_mla_prefill import hopper, native
from kernelpack.kernels.sparse_mla_prefill.definition import SPARSE_MLA_PREFILL
from kernelpack.kernels.sparse_mla_prefill.reference import OUT_ABSOLUTE, OUT_RELATIVE
from kernelpack.kernels.sparse_mla_prefill.weights import BLACKWELL, HOPPER, Weighed, e4m3
from kernelpack.spec.arch import Arch
from tests.kernels.emulated import KeptLibrary
from tests.kernels.test_sparse_mla_prefill import CASE

KEYS, HEADS = 2048, 8
E4M3 = DType.E4M3.numpy
FAMILIES = [pytest.param(BLACKWELL, id="blackwell"), pytest.param(HOPPER, id="hopper")]


LOG2E = np.log2(np.e)
NO_SINK = np.array([-np.inf])


def weighed(logits, scales, tiles):
    """Keys of given logits, natural units, and scales of rows, one after the other."""
    logits, scales = np.asarray(logits, float), np.asarray(scales, float)
    return Weighed.of(LOG2E * logits[None], scales, np.arange(len(logits)), tiles)


def off(logits, scales, codes, tiles):
    """How far the oracle's output is from unquantised weights, over the largest it can be."""
    keys = np.zeros((len(logits), 576))
    keys[:, :512] = np.asarray(codes)[:, None]
    one = weighed(logits, scales, tiles)
    found = native.attend(one, keys, NO_SINK).out[0, 0]
    p = one.exact[0] / one.exact.sum()
    exact, size = p @ (scales * codes), (p * scales).sum() * np.abs(codes).max()
    return abs(found - exact) / size


TAILS = [-5, -7, -9, -11, -12, -13, -15, -20]
"""Natural logits below one key's: weights of e4m3 below about -11 are 0 or twice too large."""


@pytest.mark.parametrize("tiles", FAMILIES)
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("first", [0.0, 1.0, -1.0])
def test_a_long_tail(tail, first, tiles):
    """One key at 0 and 2047 far below: within 3 % of unquantised weights, whatever the values."""
    logits, codes = np.full(KEYS, float(tail)), np.ones(KEYS)
    logits[0], codes[0] = 0, first
    assert off(logits, np.ones(KEYS), codes, tiles) <= 0.03


@pytest.mark.parametrize("tiles", FAMILIES)
@pytest.mark.parametrize("ratio", [1.0, 0.37, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-7, 1e-30])
@pytest.mark.parametrize("value", [1.0, 0.0, -1.0])
def test_far_scales(ratio, value, tiles):
    """One row of ones among sixteen, the others' scale far below: they weigh what they weigh."""
    scales, codes = np.full(16, ratio), np.full(16, value)
    scales[0], codes[0] = 1, 1
    assert off(np.zeros(16), scales, codes, tiles) <= 0.03


@pytest.mark.parametrize("tiles", FAMILIES)
@pytest.mark.parametrize("seed", range(20))
def test_any_logits_and_scales(seed, tiles):
    """Spread logits and scales, values of any sign: within 3 % of what the output may be."""
    random = np.random.default_rng(seed)
    logits = random.standard_normal(300) * random.choice([0.1, 2, 6])
    scales = np.exp(random.standard_normal(300) * random.choice([0.1, 3, 9]))
    assert off(logits, scales, random.choice([-1.0, 0.0, 1.0], 300), tiles) <= 0.03


def halves(random, columns, spread):
    """Vectors of e4m3 whose numbers are spread so far: the largest is 448."""
    values = random.standard_normal((16, columns)) * np.exp(
        spread * random.standard_normal((16, columns))
    )
    scaled = values / np.abs(values).max(1, keepdims=True) * 448
    return e4m3(scaled.astype(np.float32))


@pytest.mark.parametrize("spread", [0.0, 0.5, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_what_hopper_cuts_is_within_its_bound(spread, shift):
    """Chains of MMAs that add up as Hopper does are as near to q·k as `hopper.cut` says."""
    random, columns = np.random.default_rng(0), 576
    q, k = (e4m3((halves(random, columns, spread) + shift).astype("f4")) for _ in range(2))
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


def bounds(case, arch, *names):
    """Bounds of a case's outputs, and their values."""
    found = SPARSE_MLA_PREFILL.expected(case, SPARSE_MLA_PREFILL.inputs(case))
    parts = [found[name].on(Arch(arch)) for name in names]
    return [np.concatenate([p.bound.ravel() for p in parts]), parts[0].value.ravel()]


def test_hopper_s_bound_is_for_hopper():
    """Rows of bf16 have the same bounds everywhere; of e4m3, scores have wider ones on Hopper."""
    narrow = replace(CASE, row=FORMATS["fp8_576"], kv_scales=1)
    names = ("out", "lse", "max_logits")
    wide = [bounds(CASE, arch, *names)[0] for arch in ("sm_90a", "sm_100a")]
    assert np.array_equal(*wide)
    there, here = (bounds(narrow, arch, *names[1:])[0] for arch in ("sm_90a", "sm_100a"))
    assert (there >= here).all()
    assert (there > here).any()


@pytest.mark.parametrize("values", ["normal", "peaked", "rising"])
def test_bounds_on_blackwell_are_flash_mla_s(values):
    """But for outputs whose weights lie where the last bit of a score decides: few, a half of
    all by nothing, one in ten by 1 % or more.
    """
    case = replace(CASE, row=FORMATS["fp8_576"], kv_scales=1, h=64, topk=300, blocks=150)
    bound, value = bounds(replace(case, values=values), "sm_100a", "out")
    wider = (bound / np.maximum(OUT_ABSOLUTE, OUT_RELATIVE * np.abs(value)))[bound > 0]
    assert wider.min() == 1
    assert np.median(wider) <= 1.001
    assert (wider > 1.01).mean() <= 0.1


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
        library=KeptLibrary(bundle.path, arch=arch),
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
