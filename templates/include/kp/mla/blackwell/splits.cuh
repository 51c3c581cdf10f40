// Split-KV (flash decoding): a CTA goes through one split of a token's keys. With one split it
// stores the outputs, otherwise partial outputs that mla_decode_combine joins.
//
// Few heads are folded: with dense keys, later tokens of the same sequence may use the rows of a
// tile that heads leave free. The CTA of the first of these tokens goes through the keys for all.
#pragma once
#include <cuda/std/cstdint>
#include <kp/mla/blackwell/caches.cuh>
#include <kp/mla/blackwell/heads.cuh>
#include <kp/mla/blackwell/outputs.cuh>
#include <kp/mla/decode_keys.cuh>
#include <kp/mla/softmax.cuh>
#include <kp/ptx/bulk.cuh>
#include <kp/ptx/fence.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/ptx/tcgen05.cuh>
#include <kp/ptx/tensor_rows.cuh>

namespace kp::mla {

// The token and split of a CTA's number in the grid. All tokens' first splits come before any
// second split, because the last splits may have no keys. Of `room` neighbours that may share a
// tile, the first tokens come first; the others then have nothing to do.
struct Work {
    uint32_t token, split;

    __device__ __forceinline__ Work(uint32_t number, uint32_t tokens, uint32_t splits,
                                    uint32_t room) {
        const uint32_t each = tokens % room == 0 ? room : 1, folds = tokens / each;
        const uint32_t of = number / folds;
        token = number % folds * each + of / splits;
        split = of % splits;
    }
};

// Tokens of a sequence in one tile, each with `rows` rows of it. They are neighbours with the same
// number of units, so that their splits are the same. Later tokens see more keys (causal mask).
struct Fold {
    uint32_t rows, tokens;
    uint32_t seen, step, most;  // keys of the first token, more for each later one, upper bound
    bool leads;                 // whether the requested token is the first of its fold

    __device__ __forceinline__ Fold(const decode::Call& call, const decode::Standing& at,
                                    uint32_t token, uint32_t rows)
        : rows(rows), tokens(1), seen(0), step(call.causal), most(0), leads(true) {
        const uint32_t room = CTA_HEADS / rows;
        if (room == 1 || !call.is_dense() || !at.exists) return;
        seen = call.sequences.length(at.sequence, call.causal ? at.place + 1 : at.added);
        most = call.sequences.pages * call.first.page;
        leads = at.place % room == 0 || units(0) != units(~0u);  // ~0u: the token before
        while ((at.place + tokens) % room != 0 && at.place + tokens < at.added &&
               token + tokens < call.sequences.tokens && units(0) == units(tokens)) {
            ++tokens;
        }
    }

    __device__ __forceinline__ uint32_t end(uint32_t later) const {
        return decode::least(seen + later * step, most);
    }
    __device__ __forceinline__ uint32_t units(uint32_t later) const {
        return (end(later) + decode::UNIT - 1) / decode::UNIT;
    }
};

// The keys of a split: positions count from its first. It has the interface of Selection.
struct SplitKeys {
    const decode::Call& call;
    decode::Keys keys;  // of a fold's last token, which sees the most
    Fold fold;
    uint32_t first, count;
    bool is_alone;  // the only split

    // Called by whole warps; a token has `rows` of a tile.
    __device__ __forceinline__ SplitKeys(const decode::Call& call, uint32_t token, uint32_t rows,
                                         uint32_t split, uint32_t splits)
        : SplitKeys(call, call.sequences.of(token), token, rows, split, splits) {}

    __device__ __forceinline__ SplitKeys(const decode::Call& call, const decode::Standing& at,
                                         uint32_t token, uint32_t rows, uint32_t split,
                                         uint32_t splits)
        : call(call), keys(call.keys(token, at)), fold(call, at, token, rows),
          is_alone(splits == 1) {
        if (fold.tokens > 1) keys.first_end = keys.end = fold.end(fold.tokens - 1);
        const decode::Range range(call, keys, split, splits);
        first = range.first * decode::UNIT;
        const uint32_t after = decode::least((range.first + range.count) * decode::UNIT, keys.end);
        count = range.count == 0 ? 0 : after - first;
    }

    // Whether the split has no keys: then only its lse is stored, and nobody reads its outputs.
    __device__ __forceinline__ bool is_left_out() const { return count == 0 && !is_alone; }

    __device__ __forceinline__ uint32_t blocks_of(uint32_t size) const {
        return count == 0 ? 1 : (count + size - 1) / size;
    }

    // A block reaches beyond its split only where the keys end.
    __device__ __forceinline__ int32_t entry(uint32_t position) const {
        return call.entry(keys, first + position);
    }

    __device__ __forceinline__ int32_t row(int32_t entry, uint32_t position) const {
        return call.row(keys, first + position, entry);
    }

    // The positions that a row of the tile sees. `place` gives the row's token and head; `head` is
    // the tile's first, and becomes ~0 for a row without a token.
    __device__ __forceinline__ uint32_t limit_of(uint32_t row) const {
        if (fold.tokens == 1) return count;
        const uint32_t end = fold.end(row / fold.rows);
        return end > first ? end - first : 0;
    }
    __device__ __forceinline__ void place(uint32_t row, uint32_t& token, uint32_t& head) const {
        const uint32_t later = row / fold.rows;
        token += later;
        head = later < fold.tokens ? head + row % fold.rows : ~0u;
    }

    // Whether any position is valid, if a lane of this warp `wants` to know. All lanes call. One of
    // several splits may be empty although the token has keys: combine decides about the whole. The
    // same holds for one of several tokens.
    __device__ __forceinline__ bool has_keys(bool wants) const {
        bool has = false;
        if (!is_alone || fold.tokens > 1 || !__any_sync(0xffffffff, wants)) return false;
        for (uint32_t i = threadIdx.x % 32; i < count && !has; i += 32) has = row(entry(i), i) >= 0;
        return __any_sync(0xffffffff, has);
    }

    // The caches. The second begins with the tile of its first row.
    __device__ __forceinline__ TwoCaches caches(const Maps& maps, const Maps& extra) const {
        const uint32_t begin = keys.second() > first ? keys.second() - first : 0;
        return {{maps.rows, call.first.rows, call.first.scales},
                {extra.rows, call.extra.rows, call.extra.scales},
                maps.runs,
                extra.runs,
                call.extra.topk > 0 ? begin / decode::SOURCE_TILE : ~0u};
    }
};

struct SplitResults {
    Results whole;       // with one split
    float* partial_out;  // [splits, tokens, heads, WIDTH]; null with one split
    float* partial_lse;  // [splits, tokens, heads]: log2 of sums; minus infinity: none
    uint32_t first;      // token of this split, among those of all
    uint32_t heads;

    // The index of a head of a token.
    __device__ __forceinline__ uint64_t at(uint32_t token, uint32_t head) const {
        return uint64_t(first + token) * heads + head;
    }

    // All threads of a CTA call it for a split that is left out, with `rows` heads from the first
    // on.
    __device__ __forceinline__ void leave_out(uint32_t token, uint32_t first_head,
                                              uint32_t rows) const {
        const uint32_t head = first_head + threadIdx.x;
        if (threadIdx.x < rows && head < heads) partial_lse[at(token, head)] = minus_infinity();
    }
};

// Half of a thread's outputs, in TMEM from `from` on, times `factor`, into its buffer.
template <uint32_t COLUMNS>
__device__ __forceinline__ void take_partial_outputs(OutputRow<COLUMNS>& to, uint32_t from,
                                                     float factor) {
#pragma unroll 1
    for (uint32_t column = 0; column < COLUMNS / 2; column += 32) {
        float v[32];
        ptx::tmem_load_row_32(v, from + column);
        ptx::tmem_wait_load();
        ptx::fence_registers(v);
#pragma unroll
        for (uint32_t i = 0; i < 32; i += 4) {
            to.chunks[(column + i) / 4] =
                make_uint4(__float_as_uint(v[i] * factor), __float_as_uint(v[i + 1] * factor),
                           __float_as_uint(v[i + 2] * factor), __float_as_uint(v[i + 3] * factor));
        }
    }
}

// Store a softmax thread's partial outputs, in two halves through its buffer.
template <uint32_t RUN, uint32_t COLUMNS, typename Row>
__device__ __forceinline__ void store_partial_outputs(const SplitResults& results,
                                                      OutputRow<COLUMNS>& buffer, uint32_t from,
                                                      const Row& row,
                                                      const OutputPlace<RUN>& place) {
    constexpr uint32_t HALF = COLUMNS / 2, PIECE = RUN < HALF ? RUN : HALF;
    const bool stores = place.head < results.heads;
    const float factor = row.normaliser(minus_infinity());
    const uint64_t at = results.at(place.token, place.head);
    float* to = results.partial_out + at * WIDTH;
#pragma unroll
    for (uint32_t half = 0; half < COLUMNS; half += HALF) {
        take_partial_outputs(buffer, from + half, factor);
        if (!stores) continue;
        ptx::fence_proxy_async_shared();
#pragma unroll
        for (uint32_t own = 0; own < HALF; own += PIECE) {
            ptx::bulk_store(to + place.of(half + own), ptx::shared_address(&buffer.chunks[own / 4]),
                            PIECE * sizeof(float));
        }
        ptx::bulk_commit();
        ptx::bulk_wait_read();
    }
    if (stores && place.half == 0 && place.column == 0) {
        results.partial_lse[at] = row.lse_log2();
    }
}

template <uint32_t RUN, uint32_t COLUMNS, typename Row>
__device__ __forceinline__ void store_outputs(const SplitResults& results,
                                              OutputRow<COLUMNS>& buffer, uint32_t from,
                                              const Row& row, const OutputPlace<RUN>& place) {
    if (results.partial_out == nullptr) {
        store_outputs(results.whole, buffer, from, row, place);
    } else {
        store_partial_outputs(results, buffer, from, row, place);
    }
}

}  // namespace kp::mla
