"""Matrices that are transposed between registers and shared memory, and votes of a few warps."""

import numpy as np
import pytest

from tests.kv.device import Device

pytestmark = pytest.mark.toolchain

TRANSPOSED = """
#include <kp/ptx/matrix.cuh>
#include <kp/ptx/shared.cuh>
using namespace kp;
extern "C" __global__ void test(unsigned* out, const unsigned* given) {
    __shared__ __align__(128) unsigned short memory[32][8];
    const unsigned lane = threadIdx.x, row = ptx::shared_address(&memory[lane]);
    for (unsigned i = 0; i < 4; ++i) {
        ptx::store_transposed(ptx::shared_address(&memory[8 * i + lane % 8]), given[32 * i + lane]);
    }
    __syncwarp();
    unsigned found[4];
    ptx::load_transposed(found, row);
    for (unsigned i = 0; i < 4; ++i) out[32 * i + lane] = found[i];
    for (unsigned i = 0; i < 8; ++i) out[128 + 8 * lane + i] = memory[lane][i];
}
"""

VOTE = """
#include <kp/ptx/barrier.cuh>
using namespace kp;
extern "C" __global__ void test(unsigned* out, const unsigned* given) {
    out[threadIdx.x] = ptx::barrier_any(1 + threadIdx.x / 64, 64, given[threadIdx.x] != 0);
}
"""


def test_transposed_matrices():
    """What lane 4i + j holds of a matrix is rows 2j and 2j + 1, column i, in shared memory; and
    comes back as it was."""
    given = np.random.default_rng(0).integers(0, 2**32, 128, dtype=np.uint32)
    out = np.zeros(128 + 256, np.uint32)
    Device("sm_90a").run(TRANSPOSED, {}, out, given, threads=32)
    assert (out[:128] == given).all()
    rows = out[128:].reshape(4, 8, 8)  # matrix, row, column
    assert (rows == given.view(np.uint16).reshape(4, 8, 8).transpose(0, 2, 1)).all()


@pytest.mark.parametrize("thread", [0, 31, 63, 64, 100])
def test_vote_of_some_warps(thread):
    """A condition of one thread is seen by all that meet at its barrier, and by no others."""
    given = (np.arange(128) == thread).astype(np.uint32)
    out = np.zeros(128, np.uint32)
    Device("sm_90a").run(VOTE, {}, out, given, threads=128)
    assert (out == (np.arange(128) // 64 == thread // 64)).all()
