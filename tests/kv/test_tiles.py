"""Tiles by the tensor maps of each constructor, byte for byte, on the emulator."""

import numpy as np
import pytest

from kernelpack.kernels.kv_operand import maps
from kernelpack.spec.tensormap import Swizzle
from tests.kv import caches
from tests.kv.device import unswizzled

SPANS = {Swizzle.B32: 32, Swizzle.B64: 64, Swizzle.B128: 128}
ELEMENTS = {"u1": "kv::E4m3", "<u2": "kv::Bf16"}

# Load the tile whose runs begin at `first`, and copy its bytes out as they lie.
TILE = """
#include <kp/kv/row.cuh>
#include <kp/kv/tile.cuh>
#include <kp/ptx/fence.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>
using namespace kp;
extern "C" __global__ void test(uint8_t* out, const __grid_constant__ TensorMap map,
                                const int32_t* first, uint32_t head, uint32_t column) {
    extern __shared__ __align__(1024) uint8_t shared[];
    __shared__ __align__(8) uint64_t barrier;
    const uint32_t full = ptx::shared_address(&barrier), tile = ptx::shared_address(shared);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(full, 1);
        ptx::fence_mbarrier_init();
        ptx::mbarrier_arrive_expect_tx(full, BN * COLUMN_BYTES * BLOCKS);
        kv::TileRows<BN, STEP> rows;
        for (uint32_t i = 0; i < BN / STEP; ++i) rows.first[i] = first[i];
        kv::load_tile<Element, COLUMN_BYTES, BLOCKS>(tile, map, full, rows, head, column);
    }
    __syncthreads();
    ptx::mbarrier_wait(full, 0);
    for (uint32_t i = 16 * threadIdx.x; i < BN * COLUMN_BYTES * BLOCKS; i += 16 * blockDim.x)
        *reinterpret_cast<uint4*>(out + i) = *reinterpret_cast<uint4*>(shared + i);
}
"""


def loaded(device, tensor_map, first, *, element, rows, span, blocks, head=0, column=0):
    """The tile [rows, blocks * span] as bytes in the order of memory, after the swizzle."""
    out = np.zeros(rows * span * blocks, np.uint8)
    constants = {
        "BN": rows,
        "STEP": rows // len(first),
        "COLUMN_BYTES": span,
        "BLOCKS": blocks,
        "Element": element,
    }
    device.run(
        TILE, constants, out, tensor_map, np.array(first, np.int32), head, column,
        shared_bytes=out.size,
    )  # fmt: skip
    if tensor_map.swizzle is Swizzle.NONE:
        return out.reshape(blocks, rows, span).transpose(1, 0, 2).reshape(rows, -1)
    plain = unswizzled(out, span).reshape(blocks, rows, span)
    return plain.transpose(1, 0, 2).reshape(rows, -1)


def expected(cache, first, rows, *, head, start, width):
    """Those bytes of a head in each row of a tile; zeros where there is no row or no column."""
    storage = cache.storage
    step = rows // len(first)
    chosen = np.array([row + i for row in first for i in range(step)])
    beyond = np.zeros((rows, storage.row_bytes), np.uint8)
    there = chosen < storage.num_kv_rows
    beyond[there] = cache.rows[chosen[there]]
    size = storage.dtype.bytes_of(storage.head_size)
    own = beyond[:, head * size : (head + 1) * size]
    padded = np.zeros((rows, start + width), np.uint8)
    padded[:, : own.shape[1]] = own[:, : start + width]
    return padded[:, start:]


# page, rows of a tile, heads and elements of a row, type, swizzle
PAGED = (
    (16, 64, (1, 576), "<u2", Swizzle.B128),
    (64, 64, (2, 128), "<u2", Swizzle.B128),
    (128, 64, (1, 640), "u1", Swizzle.B128),
    (256, 128, (3, 64), "u1", Swizzle.B64),
    (4, 8, (1, 576), "u1", Swizzle.B32),
    (8, 8, (1, 656), "u1", Swizzle.B128),
)


@pytest.mark.parametrize(("page", "rows", "row", "dtype", "swizzle"), PAGED)
def test_tiles_of_a_paged_cache(device, page, rows, row, dtype, swizzle):
    """Of any layer, half and head: the pages' rows, and zeros past the sequence's end."""
    random = np.random.default_rng(page + rows)
    for _ in range(3):
        cache = caches.paged(random, page=page, row=row, dtype=dtype)
        storage, span = cache.storage, SPANS[swizzle]
        address = device.put(cache.memory) + storage.offset_bytes
        tensor_map = maps.tile(storage, address, rows=rows, swizzle=swizzle)
        blocks, head = min(3, -(-row[1] * np.dtype(dtype).itemsize // span)), row[0] - 1
        run, end = maps.run_of(storage, rows), int(random.integers(4 * page) // page) * page
        row0 = int(random.integers(4 * page) // rows) * rows
        first = cache.populate(rows, run, int(random.integers(3)), row0, max(end, run))
        found = loaded(
            device, tensor_map, first,
            element=ELEMENTS[dtype], rows=rows, span=span, blocks=blocks, head=head,
        )  # fmt: skip
        assert expected(cache, first, rows, head=head, start=0, width=span * blocks).tolist() == (
            found.tolist()
        )


UNPAGED = (
    (caches.continuous, {"length": 40}, 64, (2, 64), "<u2", Swizzle.B128),
    (caches.padded, {"length": 33}, 32, (1, 576), "<u2", Swizzle.B128),
    (caches.ragged, {"total": 70}, 64, (1, 640), "u1", Swizzle.B64),
    (caches.ragged, {"total": 50}, 16, (2, 64), "u1", Swizzle.NONE),
)


@pytest.mark.parametrize(("make", "sizes", "rows", "row", "dtype", "swizzle"), UNPAGED)
def test_tiles_of_other_storages(device, make, sizes, rows, row, dtype, swizzle):
    """In one run from any row; rows past the storage's last, and columns past a head's, are 0."""
    random = np.random.default_rng(rows)
    for row0 in (0, 5, 30):
        cache = make(random, row=row, dtype=dtype, **sizes)
        storage, span = cache.storage, SPANS.get(swizzle, row[1])
        address = device.put(cache.memory) + storage.offset_bytes
        tensor_map = maps.tile(storage, address, rows=rows, swizzle=swizzle)
        first = [cache.row_idx(2, 0) + row0 if row0 < 30 else storage.num_kv_rows - 7]
        width = np.dtype(dtype).itemsize
        column = 0 if swizzle is Swizzle.NONE else row[1] - 32 // width
        found = loaded(
            device, tensor_map, first,
            element=ELEMENTS[dtype], rows=rows, span=span, blocks=1, head=row[0] - 1, column=column,
        )  # fmt: skip
        whole = expected(cache, first, rows, head=row[0] - 1, start=column * width, width=span)
        assert whole.tolist() == found.tolist()


@pytest.mark.parametrize("row", [640, 656])
def test_rope_tiles(device, row):
    """The rope values at the end of a row of bytes, as bf16, of the pages' rows."""
    random = np.random.default_rng(row)
    cache = caches.paged(random, page=16, row=(1, row))
    address = device.put(cache.memory) + cache.storage.offset_bytes
    tensor_map = maps.rope_tile(cache.storage, address, rows=32)
    first = cache.populate(32, 16, 1, 32, 48)
    found = loaded(
        device, tensor_map, first, element="kv::Bf16", rows=32, span=128, blocks=1
    )  # fmt: skip
    start = cache.storage.row.rope_offset
    assert expected(cache, first, 32, head=0, start=start, width=128).tolist() == found.tolist()


# Load or store a clipped tile of one column block: `count` rows of a head from `row` on.
CLIPPED = """
#include <kp/kv/row.cuh>
#include <kp/kv/tile.cuh>
#include <kp/ptx/bulk.cuh>
#include <kp/ptx/fence.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>
using namespace kp;
extern "C" __global__ void test(uint8_t* tile, const __grid_constant__ TensorMap map,
                                uint32_t heads, uint32_t head, uint32_t row, uint32_t count,
                                uint32_t column) {
    extern __shared__ __align__(1024) uint8_t shared[];
    __shared__ __align__(8) uint64_t barrier;
    const uint32_t full = ptx::shared_address(&barrier), to = ptx::shared_address(shared);
    const kv::ClippedStart start(BN, heads, head, row, count);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(full, 1);
        ptx::fence_mbarrier_init();
    }
    for (uint32_t i = threadIdx.x; i < BN * COLUMN_BYTES; i += blockDim.x)
        if (STORE) shared[i] = tile[i];
    ptx::fence_proxy_async_shared();
    __syncthreads();
    if (STORE) {
        if (threadIdx.x == 0) {
            kv::store_clipped(map, to, start, column);
            ptx::bulk_commit();
            ptx::bulk_wait_read();
        }
        return;
    }
    if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_tx(full, BN * COLUMN_BYTES);
        kv::load_clipped(to, map, full, start, column);
    }
    ptx::mbarrier_wait(full, 0);
    for (uint32_t i = threadIdx.x; i < BN * COLUMN_BYTES; i += blockDim.x) tile[i] = shared[i];
}
"""
COUNTS = (1, 7, 16)


def clipped(device, heads, swizzle, seed):
    """A ragged cache of 64 two-byte elements a head, with rows in front of it, and its map."""
    random = np.random.default_rng(seed)
    cache = caches.ragged(random, total=41, row=(heads, 64), dtype="<u2")
    front = random.integers(0, 256, (16, cache.storage.row_bytes), np.uint8)
    memory = np.concatenate([front.ravel(), cache.memory])
    address = device.put(memory) + front.size
    tensor_map = maps.ragged_tile(
        cache.storage, address, rows=16, swizzle=swizzle, front_rows=16
    )  # fmt: skip
    return cache, address, tensor_map


@pytest.mark.parametrize(("heads", "swizzle"), [(1, Swizzle.B128), (3, Swizzle.B64)])
def test_a_clipped_tile_is_zero_past_its_count(device, heads, swizzle):
    """As many rows of a head as counted, wherever they begin, the storage's last ones too."""
    cache, _, tensor_map = clipped(device, heads, swizzle, heads)
    span = SPANS[swizzle]
    for count in COUNTS:
        for row in (0, 19, 41 - count):
            tile = np.zeros(16 * span, np.uint8)
            constants = {"BN": 16, "COLUMN_BYTES": span, "STORE": 0}
            device.run(
                CLIPPED, constants, tile, tensor_map, heads, heads - 1, row, count, 0,
                shared_bytes=tile.size,
            )  # fmt: skip
            own = cache.rows.reshape(41, heads, 128)[row : row + count, heads - 1, :span]
            wanted = np.zeros((16, span), np.uint8)
            wanted[:count] = own
            assert wanted.tolist() == unswizzled(tile, span).tolist()


@pytest.mark.parametrize("heads", [1, 3])
def test_a_clipped_store_leaves_the_next_rows_alone(device, heads):
    """A store touches as many rows of its head as counted, and nothing else."""
    for count in COUNTS:
        cache, address, tensor_map = clipped(device, heads, Swizzle.B128, count)
        tile = np.random.default_rng(1).integers(0, 256, 16 * 128, np.uint8)
        tile.flags.writeable = False
        constants = {"BN": 16, "COLUMN_BYTES": 128, "STORE": 1}
        device.run(
            CLIPPED, constants, tile, tensor_map, heads, heads - 1, 12, count, 0,
            shared_bytes=tile.size,
        )  # fmt: skip
        wanted = cache.rows.reshape(41, heads, 128).copy()
        wanted[12 : 12 + count, heads - 1] = unswizzled(tile, 128)[:count]
        found = device.read(address, wanted.size).reshape(wanted.shape)
        assert wanted.tolist() == found.tolist()


# Load scales of one head from row `row` on.
SCALES = """
#include <kp/ptx/fence.cuh>
#include <kp/ptx/mbarrier.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/ptx/tma.cuh>
using namespace kp;
extern "C" __global__ void test(float* out, const __grid_constant__ TensorMap map, uint32_t row,
                                uint32_t head) {
    __shared__ __align__(128) float scales[BN];
    __shared__ __align__(8) uint64_t barrier;
    const uint32_t full = ptx::shared_address(&barrier);
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(full, 1);
        ptx::fence_mbarrier_init();
        ptx::mbarrier_arrive_expect_tx(full, BN * sizeof(float));
        ptx::tma_load(ptx::shared_address(scales), map, full, row, head);
    }
    __syncthreads();
    ptx::mbarrier_wait(full, 0);
    for (uint32_t i = threadIdx.x; i < BN; i += blockDim.x) out[i] = scales[i];
}
"""


@pytest.mark.parametrize(("heads", "total"), [(1, 61), (3, 60)])
def test_scale_tiles(device, heads, total):
    """fp32 of rows next to each other, one a row and head; zeros past the last row."""
    random = np.random.default_rng(total)
    cache = caches.ragged(random, total=total, row=(heads, 32))
    scales = random.random((heads, total), np.float32)
    tensor_map = maps.scale_tile(cache.storage, device.put(scales), rows=32)
    for row in (0, 28, 56):
        out = np.full(32, np.nan, np.float32)
        device.run(SCALES, {"BN": 32}, out, tensor_map, row, heads - 1)
        wanted = np.zeros(32, np.float32)
        wanted[: min(32, total - row)] = scales[heads - 1, row : row + 32]
        assert wanted.tolist() == out.tolist()
