// Epilogue staging. A warpgroup's half of the output is 256 columns of V by HEADS: a thread has two
// of each panel of 64 columns, as of keys, and its heads.
using Sums = float[HALF_PANELS][4 * BLOCKS];

__device__ __forceinline__ void scale_sums(Sums& o, const PerHead& factors) {
#pragma unroll
    for (uint32_t panel = 0; panel < HALF_PANELS; ++panel) {
#pragma unroll
        for (uint32_t i = 0; i < 4 * BLOCKS; ++i) o[panel][i] *= factors[i / 4 * 2 + i % 2];
    }
}

// Divide the outputs by their sums of weights.
__device__ __forceinline__ void normalise(Sums& o, const State& state, const float* sinks,
                                          uint32_t first_head, uint32_t heads) {
    PerHead factors;
#pragma unroll
    for (uint32_t i = 0; i < 2 * BLOCKS; ++i) {
        const uint32_t head = first_head + head_of(i);
        float sink = mla::minus_infinity();
        if (sinks != nullptr && head < heads) sink = sinks[head];
        factors[i] = row_of(state, i).normaliser(sink);
    }
    scale_sums(o, factors);
}

// A warpgroup's half as bf16, a head a row.
__device__ __forceinline__ void stage_rows(Shared& shared, const Sums& o, uint32_t half) {
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t column = half * HALF + threadIdx.x % 128 / 32 * 16 + lane / 8 % 2 * 8;
    meet_warpgroup();  // the previous staged outputs are stored
#pragma unroll
    for (uint32_t panel = 0; panel < HALF_PANELS; ++panel) {
#pragma unroll
        for (uint32_t j = 0; j < BLOCKS; ++j) {
            const float* of = o[panel] + 4 * j;
            const uint32_t pairs[2] = {ptx::pack_bf16(of[0], of[1]), ptx::pack_bf16(of[2], of[3])};
            const uint32_t row = at(shared.staged[8 * j + lane % 8]);
            ptx::store_transposed(row + 2 * (column + panel * PANEL_COLUMNS), pairs);
        }
    }
    meet_warpgroup();
}

// Store half of a head's outputs at a time, 16 bytes a thread; zeros for a token without keys.
__device__ __forceinline__ void store_rows(Shared& shared, uint16_t* out, uint32_t token,
                                           uint32_t head, uint32_t heads, uint32_t half,
                                           bool has_keys) {
    const uint32_t lane = threadIdx.x % 32;
    for (uint32_t i = threadIdx.x % 128 / 32; i < HEADS; i += WARPS) {
        if (head + i >= heads) break;
        const uint64_t row = uint64_t(token) * heads + head + i;
        const uint32_t column = half * HALF + lane * 8;
        uint4 words = make_uint4(0, 0, 0, 0);
        if (has_keys) words = ptx::load_shared_words(at(shared.staged[i]) + 2 * column);
        *reinterpret_cast<uint4*>(out + row * LATENT + column) = words;
    }
}
