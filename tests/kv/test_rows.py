"""Where rows and scales lie: the device's answers against the Python model, and populate."""

import numpy as np
import pytest

from kernelpack.kernels.kv_operand.rows import FORMATS
from tests.kv import caches
from tests.kv.device import Device


@pytest.fixture
def device() -> Device:
    """One target will do: no instruction here is of a single one."""
    return Device()


_MAKE = """
#include <kp/kv/storages.cuh>
using namespace kp;
struct Given {
    const uint8_t* rows;
    const float* scales;
    uint32_t scale_block, page, count, stride;
    const uint32_t* table;
    uint32_t pages;
    const uint32_t* lengths;
};
template <class Kv>
__device__ Kv common(const Given& g) {
    Kv made;
    made.rows = g.rows;
    made.scales = g.scales;
    made.scale_block = g.scale_block;
    made.blocks = kv::Blocks(g.page, g.count, g.stride);
    return made;
}
__device__ void finish(kv::Paged<Row>& made, const Given& g) {
    made.table = g.table, made.pages = g.pages, made.lengths = g.lengths, made.longest = 77;
}
__device__ void finish(kv::Continuous<Row>& made, const Given& g) {
    made.table = g.table, made.lengths = g.lengths;
}
__device__ void finish(kv::Padded<Row>& made, const Given& g) {
    made.sequences = 3, made.length = g.pages, made.stride = g.pages;
}
__device__ void finish(kv::Ragged<Row>& made, const Given& g) { made.offsets = g.table; }
__device__ kv::Storage<Row> make(const Given& g) {
    auto made = common<kv::Storage<Row>>(g);
    finish(made, g);
    return made;
}
"""

# For each (b, t, h, d): what the operand says of it.
ASK = (
    _MAKE
    + """
extern "C" __global__ void test(int64_t* out, const uint32_t* asked, uint32_t n, uint64_t rows,
                                uint64_t scales, uint32_t scale_block, uint32_t page,
                                uint32_t count, uint32_t stride, const uint32_t* table,
                                uint32_t pages, const uint32_t* lengths) {
    const auto at = [](uint64_t address) { return reinterpret_cast<const uint8_t*>(address); };
    const auto kv = make({at(rows), reinterpret_cast<const float*>(scales), scale_block, page,
                          count, stride, table, pages, lengths});
    const uint32_t i = threadIdx.x;
    if (i >= n) return;
    const uint32_t b = asked[4 * i], t = asked[4 * i + 1], h = asked[4 * i + 2];
    const uint32_t d = asked[4 * i + 3];
    out[6 * i] = kv.row_idx(b, t);
    out[6 * i + 1] = kv.find_row(b, t);
    const auto tile = kv.block_paged_tile<1>(b, t, h, d);
    out[6 * i + 2] = reinterpret_cast<const uint8_t*>(&tile.at(0, 0)) - kv.rows;
    out[6 * i + 3] = reinterpret_cast<const uint8_t*>(kv.scales_block_paged_ptr(b, t, h, d)) -
                     (Row::INLINE_SCALES ? kv.rows : at(scales));
    out[6 * i + 4] = kv.extent(b);
    out[6 * i + 5] = kv.cache_length(b);
}
"""
)

STORAGES = {
    "Paged": (caches.paged, {"page": 16}),
    "Continuous": (caches.continuous, {"length": 60}),
    "Padded": (caches.padded, {"length": 21}),
    "Ragged": (caches.ragged, {"total": 70}),
}
LENGTHS = np.array([9, 0, 31], np.uint32)


def tokens_of(cache):
    """Tokens that each of three sequences has room for."""
    storage = cache.storage
    match storage.kind:
        case "Paged":
            return [cache.table.shape[1] * storage.page] * 3
        case "Continuous":
            return [storage.page] * 3
        case "Padded":
            return [storage.page // 3] * 3
    return np.diff(cache.table.astype(int)).tolist()


def asked_of(device, cache, row, queries, *, scales=4096, scale_block=1):
    """What the device says of each (b, t, h, d), six numbers each."""
    storage = cache.storage
    pages = cache.table.shape[-1] if storage.kind == "Paged" else tokens_of(cache)[0]
    asked = np.array(queries, np.uint32)
    out = np.zeros((len(queries), 6), np.int64)
    constants = {"Row": row}
    text = ASK.replace("kv::Storage<Row>", f"kv::{storage.kind}<Row>")
    device.run(
        text, constants, out, asked, len(queries), 1 << 20, scales, scale_block,
        storage.page, storage.blocks, storage.block_stride, cache.table, pages, LENGTHS,
        threads=64,
    )  # fmt: skip
    return out.tolist()


@pytest.mark.parametrize("kind", STORAGES)
def test_rows_and_pointers(device, kind):
    """Rows, element pointers, room and length of every storage, of any layer, half and head."""
    random = np.random.default_rng(len(kind))
    make, sizes = STORAGES[kind]
    for _ in range(4):
        cache = make(random, row=(2, 24), dtype="<u2", **sizes)
        room = tokens_of(cache)
        queries = [
            (b, int(t), int(random.integers(2)), int(random.integers(24)))
            for b in range(3)
            for t in random.integers(0, max(1, room[b]), 8 if room[b] else 0)
        ]
        found = asked_of(device, cache, "kv::Dense<kv::Bf16, 2, 24>", queries)
        lengths = LENGTHS.tolist() if kind in ("Paged", "Continuous") else room
        for (b, t, h, d), told in zip(queries, found, strict=True):
            row = cache.row_idx(b, t)
            pointer = row * cache.storage.row_bytes + (h * 24 + d) * 2
            assert [row, row, pointer, room[b], lengths[b]] == [*told[:3], *told[4:]]


@pytest.mark.parametrize("kind", STORAGES)
def test_a_token_that_is_not_there(device, kind):
    """Past a sequence's room, find_row says the number of rows, where tensor maps read zeros."""
    random = np.random.default_rng(3)
    make, sizes = STORAGES[kind]
    cache = make(random, row=(1, 16), **sizes)
    if kind == "Paged":
        cache.table[2, 1:] = [2**31, cache.storage.blocks, 0xFFFFFFFF]  # and bad blocks
    # paged rows are looked up by row_idx unchecked: the table's next row serves
    queries = [(0, tokens_of(cache)[0], 0, 0), (1, tokens_of(cache)[1], 0, 0)]
    queries += [(2, 16 * page, 0, 0) for page in (1, 2, 3)] if kind == "Paged" else []
    found = asked_of(device, cache, "kv::Dense<kv::E4m3, 1, 16>", queries)
    assert [cache.storage.num_kv_rows] * len(queries) == [told[1] for told in found]


# row type, values of a head, values that share a scale, scale of (row, head, value) in fp32s
SCALES = (
    ("kv::Fp8_576", 1, 576, lambda r, _h, _d: r),
    ("kv::Fp8_576", 1, 128, lambda r, _h, d: r * 5 + d // 128),
    ("kv::Fp8_512", 1, 32, lambda r, _h, d: r * 16 + d // 32),
    ("kv::Fp8_640", 1, 576, lambda r, _h, _d: r),
    ("kv::Fp8_656", 1, 1, lambda r, _h, d: r * 164 + 128 + d // 128),
    ("kv::Dense<kv::E4m3, 3, 96>", 3, 32, lambda r, h, d: (r * 3 + h) * 3 + d // 32),
)


@pytest.mark.parametrize(
    ("row", "heads", "block", "scale"), SCALES, ids=lambda x: "" if callable(x) else str(x)
)
def test_scale_pointers(device, row, heads, block, scale):
    """A value's scale: the last one's block too, by the floor of its place over the block."""
    random = np.random.default_rng(block)
    sizes = {"kv::Fp8_576": 576, "kv::Fp8_512": 512, "kv::Fp8_640": 640, "kv::Fp8_656": 656}
    cache = caches.paged(random, page=8, row=(heads, sizes.get(row, 96)))
    queries = [
        (b, int(random.integers(32)), h, d)
        for b in range(3)
        for h in range(heads)
        for d in (0, 1, 31, 32, 95, *((127, 128, 511) if heads == 1 else ()))
    ]
    found = asked_of(device, cache, row, queries, scale_block=block)
    wanted = [4 * scale(cache.row_idx(b, t), h, d) for b, t, h, d in queries]
    assert wanted == [told[3] for told in found]


ENCODED = """
#include <kp/kv/blocks.cuh>
using namespace kp;
extern "C" __global__ void test(int32_t* out, const int32_t* encoded, uint32_t n, uint32_t page,
                                uint32_t count, uint32_t stride) {
    const kv::Blocks blocks(page, count, stride);
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x) {
        out[2 * i] = blocks.get_tma_row(encoded[i]);
        out[2 * i + 1] = blocks.find_row(encoded[i]);
    }
}
"""
BLOCKS = (
    (1, 7, 3),
    (3, 100, 12),
    (64, 50, 64),
    (2**30, 1, 2**30),
    (640, 3_355_000, 640),
    (5, 1, 5),
)


@pytest.mark.parametrize(("page", "count", "stride"), BLOCKS)
def test_encoded_indices(device, page, count, stride):
    """block * page + offset is row block * stride + offset; any other number is row -1."""
    random, last = np.random.default_rng(page), page * count - 1
    good = [0, page - 1, last, *random.integers(0, last + 1, 200).tolist(), min(page, last)]
    bad = [-1, -(2**31), last + 1, 2**31 - 1, -12345]
    out = np.zeros((len(good + bad), 2), np.int32)
    device.run(
        ENCODED, {}, out, np.array(good + bad, np.int32), len(good + bad), page, count, stride
    )
    rows = [e // page * stride + e % page for e in good]
    assert [[row, row] for row in rows] == out[: len(good)].tolist()
    assert [-1] * len(bad) == out[len(good) :, 1].tolist()
    assert out[[len(good), len(good) + 1, -1], 0].tolist() == [-1, -1, -1]


DIVIDE = """
#include <kp/kv/divider.cuh>
using namespace kp;
extern "C" __global__ void test(uint32_t* out, const uint32_t* numbers, const uint32_t* divisors,
                                uint32_t n) {
    for (uint32_t i = threadIdx.x; i < n; i += blockDim.x)
        out[i] = kv::Divider(divisors[i]).quotient(numbers[i]);
}
"""


def test_division(device):
    """The quotient of any two numbers of 32 bits, where an estimate is off by one too."""
    random = np.random.default_rng(0)
    edges = [0, 1, 2, 3, 63, 64, 65, 2**16, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1]
    divisors = np.array([d for d in edges[1:] for _ in edges] + [*range(1, 1001)], np.uint32)
    numbers = np.array(edges * len(edges[1:]) + [0] * 1000, np.uint32)
    multiples = random.integers(0, 2**32, 1000) // divisors[-1000:] * divisors[-1000:]
    numbers[-1000:] = multiples - random.integers(0, 2, 1000)
    out = np.zeros(len(numbers), np.uint32)
    device.run(DIVIDE, {}, out, numbers, divisors, len(numbers))
    assert (numbers // divisors).tolist() == out.tolist()


ROWS, PAGES = (64, 128, 256), (16, 64, 128, 256)
# Thread i populates the tile from asked[i][0] on of a sequence that ends at asked[i][1].
POPULATE = (
    _MAKE.replace("kv::Storage", "kv::Paged")
    + """
template <int BN, int STEP, bool PAIR>
__device__ void rows_of(int32_t* out, const kv::Paged<Row>& kv, const uint32_t* asked) {
    constexpr int CTAS = PAIR ? 2 : 1;
    for (uint32_t rank = 0; rank < CTAS; ++rank) {
        const auto tile = kv.template populate<BN, STEP, PAIR>(1, asked[0], rank, asked[1]);
        for (uint32_t i = 0; i < BN / CTAS; ++i) out[rank * BN / CTAS + i] = tile.get_row(i);
    }
}
extern "C" __global__ void test(int32_t* out, uint32_t page, uint32_t count, uint32_t stride,
                                const uint32_t* table, uint32_t pages, const uint32_t* asked,
                                uint32_t rows, uint32_t pair) {
    const auto kv = make({nullptr, nullptr, 1, page, count, stride, table, pages, nullptr});
    out += threadIdx.x * rows, asked += 2 * threadIdx.x;
"""
    + "".join(
        f"if (page == {page} && rows == {rows} && pair == {pair})"
        f" rows_of<{rows}, {min(page, rows)}, {pair}>(out, kv, asked);\n"
        for page in PAGES
        for rows in ROWS
        for pair in (0, 1)
    )
    + "}"
)


@pytest.mark.parametrize("pair", [0, 1])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("page", PAGES)
def test_populate(device, page, rows, pair):
    """A tile's rows page by page, of a pair each half by its own CTA; past the end none exists."""
    random = np.random.default_rng(page + rows)
    cache = caches.paged(random, page=page, row=(1, 16), pages=5)
    storage, run = cache.storage, min(page, rows // (2 if pair else 1))
    ends = (5 * page, 5 * page - page // 2, page + 1, 0)
    asked = [(row0, end) for row0 in range(0, 5 * page, rows) for end in ends][:32]
    out = np.zeros((len(asked), rows), np.int32)
    device.run(
        POPULATE, {"Row": "kv::Bf16_576"}, out, storage.page, storage.blocks,
        storage.block_stride, cache.table, cache.table.shape[1], np.array(asked, np.uint32),
        rows, pair, threads=len(asked),
    )  # fmt: skip
    first = [cache.populate(rows, run, 1, *tile) for tile in asked]
    assert [[r + i for r in tile for i in range(run)] for tile in first] == out.tolist()


@pytest.mark.parametrize("name", FORMATS)
def test_row_formats(device, name):
    """The device's formats are the host's: bytes, values, where rope and scales lie."""
    row, out = FORMATS[name], np.zeros(5, np.uint32)
    text = """
#include <kp/kv/row.cuh>
using namespace kp;
extern "C" __global__ void test(uint32_t* out) {
    const uint32_t told[] = {Row::BYTES, Row::WIDTH, Row::ROPE, Row::ROPE_OFFSET,
                             Row::INLINE_SCALES};
    for (int i = 0; i < 5; ++i) out[i] = told[i];
}
"""
    word = "".join(part.capitalize() + "_" for part in name.split("_")).rstrip("_")
    device.run(text, {"Row": f"kv::{word}"}, out, threads=1)
    offset = row.rope_offset if row.rope else row.bytes
    assert [row.bytes, row.width, row.rope, offset, row.inline_scales] == out.tolist()
