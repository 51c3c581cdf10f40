"""The lse near zero, where a maximum and the logarithm of a sum cancel: what fp32 leaves of it."""

import numpy as np
import pytest

from kernelpack.formats.dtype import DType
from kernelpack.kernels.sparse_mla_prefill.inputs import Case, inputs
from kernelpack.kernels.sparse_mla_prefill.reference import LSE_ABSOLUTE, LSE_RELATIVE, attend
from tests.kernels.emulated import outputs_of
from tests.kv.device import Device

LOG_OF_SUM = """
#include <kp/mla/softmax.cuh>
using namespace kp;
extern "C" __global__ void test(float* out, const float* sum, const float* maximum) {
    out[threadIdx.x] = mla::log_of_sum(sum[threadIdx.x], maximum[threadIdx.x]);
}
"""
ERROR = 2.0**-22
"""PTX ISA, "lg2": the approximation's, of numbers from 0.5 to 2."""
SPREAD = np.random.default_rng(0).uniform(1, 2, 1024).astype(np.float32)


@pytest.mark.toolchain
@pytest.mark.parametrize("power", [0, 3, 7, 11, 17, 40, -3])
@pytest.mark.parametrize("left", [0.0, 1e-6, -0.3, 0.7])
def test_log_of_sum_where_it_cancels(power, left):
    """It is as near as log2 of a number from 1 to 2 is, whatever the sum and the maximum are."""
    sums = np.ldexp(SPREAD, power).astype(np.float32)
    maxima = (left - np.log2(sums.astype(np.float64))).astype(np.float32)
    found = np.zeros_like(sums)
    Device("sm_100a").run(LOG_OF_SUM, {}, found, sums, maxima, threads=len(sums))
    exact = np.log(2) * (np.log2(sums.astype(np.float64)) + maxima.astype(np.float64))
    assert np.abs(found - exact).max() <= ERROR


NEAR_ZERO = Case(name="t", t=1, h=3, topk=300, blocks=6, values="cancelling")


def test_the_case_cancels():
    """Its lse is nearly zero and its largest score is not; its scores are exact."""
    found = attend(NEAR_ZERO.problem, inputs(NEAR_ZERO))
    assert np.abs(found.lse).max() < 0.1
    assert found.max_logits.max() < -5
    assert found.astray.lse.max() < 1e-6


@pytest.mark.toolchain
@pytest.mark.slow
@pytest.mark.parametrize(
    ("arch", "heads"), [("sm_100a", 64), ("sm_100a", 128), ("sm_90a", 8), ("sm_90a", 64)]
)
def test_lse_near_zero_is_within_flash_mla_s_own_bound(bundle, arch, heads):
    """Where scores are exact a kernel meets 1e-6 or 2.01 / 65536, without what a score may lack."""
    arrays = inputs(NEAR_ZERO)
    begin = f"sparse_mla_prefill[arch={arch},row=bf16_576,scale_block=0,heads={heads}"
    lse = outputs_of(bundle, begin, NEAR_ZERO, arrays)["lse"]
    exact = attend(NEAR_ZERO.problem, arrays).lse
    assert (np.abs(lse - exact) <= np.maximum(LSE_ABSOLUTE, LSE_RELATIVE * np.abs(exact))).all()


def chopped(q, k):
    """A score as a tensor core sums it: 16 columns at a time, each sum cut to 24 bits."""
    total = 0.0
    for at in range(0, len(q), 16):
        total += float(q[at : at + 16] @ k[at : at + 16])
        fraction, power = np.frexp(total)
        total = float(np.ldexp(np.trunc(np.ldexp(fraction, 24)), power - 24))
    return total


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_cut_scores_are_within_the_bound(seed):
    """Scores of one sign are cut one way, the lse by more than 1e-6: the bound has room for it."""
    case = Case(name="t", t=1, h=1, topk=6, blocks=1, values="shifted", seed=seed)
    arrays = inputs(case)
    q = arrays["q"].astype(np.float64).reshape(-1)
    k = arrays["kv"].view(DType.BF16.numpy).astype(np.float64).reshape(-1, 576)
    scores = case.scale * np.array([chopped(q, row) for row in k[arrays["indices"]]])
    found = attend(case.problem, arrays)
    off = abs(np.log(np.exp(scores).sum()) - found.lse[0, 0])
    assert LSE_ABSOLUTE < off <= found.astray.lse[0, 0]
