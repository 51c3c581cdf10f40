{% include "sparse_mla_prefill/sm_90/stage.inl.cuh" %}

// Epilogue staging of fp32: half of the columns of a warpgroup's half at a time, as many bytes as
// of bf16. A warp has its own sixteen rows. 16-byte chunks are placed so that neither writing pairs
// of four rows nor reading a row has bank conflicts.
constexpr uint32_t STAGED_COLUMNS = HALF / 2;
constexpr uint32_t STAGED_BYTES = 4 * STAGED_COLUMNS;
static_assert(HEADS * STAGED_BYTES == HALF_PANELS * PANEL_BYTES);

__device__ __forceinline__ uint32_t turned(uint32_t chunk, uint32_t row) {
    return (chunk ^ row % 8 * 2) * 16;
}

__device__ __forceinline__ void store_partial(Shared& shared, const Outputs& outputs,
                                              const Item& item, const Sums& o,
                                              const float (&factors)[2], Half half) {
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32, own = 16 * warp;
    const uint32_t base = at(shared.k[ODD][half * HALF_PANELS]) + own * STAGED_BYTES;
    meet_warpgroup();
#pragma unroll
    for (uint32_t pass = 0; pass < 2; ++pass) {
#pragma unroll
        for (uint32_t i = 0; i < STAGED_COLUMNS / 8; ++i) {
#pragma unroll
            for (uint32_t h = 0; h < 2; ++h) {
                const float* pair = o + pass * HALF / 4 + 4 * i + 2 * h;
                const uint32_t row = lane / 4 + 8 * h;
                const uint32_t to = base + row * STAGED_BYTES + lane % 2 * 8;
                ptx::store_shared(to + turned(2 * i + lane % 4 / 2, row),
                                  make_uint2(__float_as_uint(pair[0] * factors[h]),
                                             __float_as_uint(pair[1] * factors[h])));
            }
        }
        __syncwarp();
#pragma unroll
        for (uint32_t row = 0; row < 16; ++row) {
            if (item.head + own + row >= outputs.heads) break;
            const uint64_t first = outputs.partial_row(item, item.head + own + row) * LATENT;
            const uint32_t column = half * HALF + pass * STAGED_COLUMNS + 4 * lane;
            *reinterpret_cast<float4*>(outputs.partial_out + first + column) =
                ptx::load_shared(base + row * STAGED_BYTES + turned(lane, row));
        }
        __syncwarp();
    }
}

__device__ __forceinline__ void stage(Shared& shared, const Outputs& outputs, const Item& item,
                                      const Sums& o, const State& rows, Half half) {
    const uint32_t head = item.head + first_row();
    const float factors[2] = {normaliser(outputs.sink_of_whole(), outputs.heads, head, rows[0]),
                              normaliser(outputs.sink_of_whole(), outputs.heads, head + 8, rows[1])};
    if (outputs.is_partial()) {
        store_partial(shared, outputs, item, o, factors, half);
    } else {
        stage_rows(shared, o, factors, half);
    }
}

// Store the staged outputs. Partial outputs are already stored.
__device__ __forceinline__ void store(Shared& shared, const Outputs& outputs, const Item& item,
                                      Half half) {
    if (outputs.is_partial()) return;
    store_rows(shared, outputs.out, item.token, item.head, outputs.heads, half);
}

// Store lse; one of the four threads of a row does it.
__device__ __forceinline__ void store_scores(const Outputs& outputs, const Item& item,
                                             const State& rows) {
    if (threadIdx.x % 4 != 0) return;
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
        outputs.store_lse(item, item.head + first_row() + 8 * h, rows[h]);
    }
}
