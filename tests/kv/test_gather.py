"""Rows named one by one, by gather4 through the maps of both constructors, byte for byte."""

import numpy as np
import pytest

from kernelpack.kernels.kv_operand import maps
from kernelpack.spec.tensormap import Element, Swizzle
from tests.kv import caches
from tests.kv.device import Device, unswizzled

SPANS = {Swizzle.B32: 32, Swizzle.B64: 64, Swizzle.B128: 128}

# Gather HEIGHT encoded indices, mapped to rows here, and copy the bytes out as they lie. In a pair
# the odd CTA gathers the second half into its own memory and completes on the even one's barrier.
GATHER = """
#include <kp/kv/blocks.cuh>
#include <kp/kv/gather.cuh>
#include <kp/kv/row.cuh>
#include <kp/ptx/cache_policy.cuh>
#include <kp/ptx/cluster.cuh>
#include <kp/ptx/fence.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>
using namespace kp;
__device__ int4 four_rows(const kv::Blocks& blocks, const int32_t* encoded) {
    return make_int4(blocks.find_row(encoded[0]), blocks.find_row(encoded[1]),
                     blocks.find_row(encoded[2]), blocks.find_row(encoded[3]));
}

extern "C" __global__ void test(uint8_t* out, const __grid_constant__ TensorMap map,
                                const int32_t* encoded, uint32_t page, uint32_t count,
                                uint32_t stride, uint32_t column) {
    extern __shared__ __align__(1024) uint8_t shared[];
    __shared__ __align__(8) uint64_t barrier;
    constexpr uint32_t BYTES = HEIGHT * COLUMN_BYTES * GROUPS;
    const uint32_t tile = ptx::shared_address(shared), rank = blockIdx.x;
    uint32_t full = ptx::shared_address(&barrier);
    const kv::Blocks blocks(page, count, stride);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(full, 1);
        ptx::fence_mbarrier_init();
    }
    if (PAIR) ptx::cluster_sync();
    if (threadIdx.x == 0) {
        if (rank == 0) ptx::mbarrier_arrive_expect_tx(full, BYTES * (PAIR ? 2 : 1));
        const uint32_t leader = PAIR ? ptx::map_shared(full, 0) : full;
        for (uint32_t row = 0; row < HEIGHT; row += 4) {
            const int4 rows = four_rows(blocks, encoded + rank * HEIGHT + row);
            ptx::tma_prefetch_gather4(map, column, rows);
            if (!PAIR) {
                kv::gather_four<Element, HEIGHT, COLUMN_BYTES, GROUPS>(tile, map, full, rows, row,
                                                                       column);
                continue;
            }
            for (uint32_t group = 0; group < GROUPS; ++group) {
                const uint32_t to = tile + (group * HEIGHT + row) * COLUMN_BYTES;
                const uint32_t x = column + group * COLUMN_BYTES / sizeof(Element);
                if (group % 2) ptx::tma_gather4_group<2>(to, map, leader, x, rows);
                else ptx::tma_gather4_group<2>(to, map, leader, x, rows, ptx::evict_last());
            }
        }
    }
    __syncthreads();
    if (rank == 0) ptx::mbarrier_wait(full, 0);
    if (PAIR) ptx::cluster_sync();
    for (uint32_t i = 16 * threadIdx.x; i < BYTES; i += 16 * blockDim.x)
        *reinterpret_cast<uint4*>(out + rank * BYTES + i) = *reinterpret_cast<uint4*>(shared + i);
}
"""

# page, bytes of a row, element taken for, width, swizzle, height, column groups
CASES = (
    (64, 1152, Element.BF16, 576, Swizzle.B128, 64, 9),
    (3, 1024, Element.BF16, 512, Swizzle.B128, 16, 8),
    (16, 576, Element.I64, 72, Swizzle.NONE, 64, 1),
    (1, 640, Element.I64, 64, Swizzle.NONE, 128, 1),
    (32, 656, Element.I64, 64, Swizzle.NONE, 64, 1),
    (16, 512, Element.U8, 512, Swizzle.B128, 16, 4),
    (16, 1152, Element.BF16, 256, Swizzle.B64, 8, 8),
)
NAMES = {Element.BF16: "kv::Bf16", Element.I64: "uint64_t", Element.U8: "kv::E4m3"}
ZOO = (-1, -(2**31), -123456, 2**31 - 1, 114514)


def indices(random, storage, count):
    """Encoded indices of rows: duplicates, rows that are not there, the first and the last."""
    found = random.integers(0, storage.num_encoded, count)
    bad = random.random(count) < 0.3
    found[bad] = random.choice([*ZOO, storage.num_encoded], bad.sum())
    found[0], found[-1] = storage.num_encoded - 1, 0
    found[1 : count // 4 : 3] = found[0]
    return found.astype(np.int32)


def expected(cache, encoded, start, width):
    """Those bytes of the row of each index; zeros where it names none."""
    storage = cache.storage
    found = np.zeros((len(encoded), width), np.uint8)
    for i, index in enumerate(encoded.tolist()):
        if 0 <= index < storage.num_encoded:
            found[i] = cache.rows[storage.get_tma_row(index), start : start + width]
    return found


def gathered(device, cache, tensor_map, encoded, *, element, span, groups, pair=False):
    """What the kernel gathers, [rows, groups * span], in the order of memory."""
    ctas = 2 if pair else 1
    height, storage = len(encoded) // ctas, cache.storage
    out = np.zeros(len(encoded) * span * groups, np.uint8)
    constants = {
        "HEIGHT": height,
        "COLUMN_BYTES": span,
        "GROUPS": groups,
        "PAIR": int(pair),
        "Element": element,
    }
    device.run(
        GATHER, constants, out, tensor_map, encoded,
        storage.page, storage.blocks, storage.block_stride, 0,
        shared_bytes=out.size // ctas, grid=ctas, cluster=ctas,
    )  # fmt: skip
    parts = [_rows(part, tensor_map, height, span) for part in out.reshape(ctas, -1)]
    return np.concatenate(parts)


def _rows(tile, tensor_map, height, span):
    plain = tile if tensor_map.swizzle is Swizzle.NONE else unswizzled(tile, span)
    return plain.reshape(-1, height, span).transpose(1, 0, 2).reshape(height, -1)


@pytest.mark.parametrize(("page", "row", "element", "width", "swizzle", "height", "groups"), CASES)
def test_gather4(page, row, element, width, swizzle, height, groups):
    """Rows of any layer, each where its index says; duplicates alike, bad indices as zeros."""
    random, device = np.random.default_rng(row + page), Device()
    for _ in range(3):
        cache = caches.paged(random, page=page, row=(1, row))
        address = device.put(cache.memory) + cache.storage.offset_bytes
        tensor_map = maps.gather4(
            cache.storage, address, width=width, swizzle=swizzle, element=element
        )
        bits = {Element.BF16: 16, Element.I64: 64, Element.U8: 8}[element]
        span = SPANS.get(swizzle, width * bits // 8)
        encoded = indices(random, cache.storage, height)
        found = gathered(
            device, cache, tensor_map, encoded, element=NAMES[element], span=span, groups=groups
        )
        assert expected(cache, encoded, 0, width * bits // 8).tolist() == found.tolist()


@pytest.mark.parametrize("row", [640, 656])
def test_rope_gather4(row):
    """The rope values at the end of rows of bytes, as bf16."""
    random, device = np.random.default_rng(row), Device()
    cache = caches.paged(random, page=16, row=(1, row))
    address = device.put(cache.memory) + cache.storage.offset_bytes
    tensor_map = maps.rope_gather4(cache.storage, address)
    encoded = indices(random, cache.storage, 64)
    found = gathered(
        device, cache, tensor_map, encoded, element="kv::Bf16", span=128, groups=1
    )  # fmt: skip
    start = cache.storage.row.rope_offset
    assert expected(cache, encoded, start, 128).tolist() == found.tolist()


def test_gather4_of_a_pair():
    """In a pair each CTA gathers into its own memory; the even one's barrier counts both."""
    random, device = np.random.default_rng(2), Device()
    cache = caches.paged(random, page=16, row=(1, 1152))
    address = device.put(cache.memory) + cache.storage.offset_bytes
    tensor_map = maps.gather4(
        cache.storage, address, width=576, swizzle=Swizzle.B128, element=Element.BF16
    )
    encoded = indices(random, cache.storage, 64)
    found = gathered(
        device, cache, tensor_map, encoded, element="kv::Bf16", span=128, groups=9, pair=True
    )
    assert expected(cache, encoded, 0, 1152).tolist() == found.tolist()
