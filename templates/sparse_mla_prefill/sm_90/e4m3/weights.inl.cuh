// A thread's two keys of a tile.
struct Keys {
    static constexpr float LEAST = 1e-18f;  // a row of scale 0 keeps a weight, though no value

    bool counts[2];
    float scale[2], log2[2], inverse[2], dither[2];

    // A warp's sixteen keys have a bit each in the producer warps' words, in the order in which
    // `gather` reads entries.
    __device__ __forceinline__ Keys(const Shared& shared, uint32_t stage) {
        const uint32_t thread = thread_now(), warp = thread / 32;
#pragma unroll
        for (uint32_t h = 0; h < 2; ++h) {
            const uint32_t row = thread % 32 / 4 + 8 * h;
            counts[h] = shared.counts[stage][row / 4] >> (4 * warp + row % 4) & 1;
            scale[h] = shared.scales[stage][16 * warp + row];
            log2[h] = ptx::log2_approx(fmaxf(scale[h], LEAST));
            inverse[h] = __fdividef(1.0f, fmaxf(scale[h], LEAST));
            dither[h] = mla::dither<KEYS>(16 * warp + row);
        }
    }
};

// A block's weights: a head's of the first and of the second key, then the next head's.
using Codes = uint32_t[BLOCKS];

struct Softmax {
    float scale;
    bool wants_highest;

    __device__ __forceinline__ Softmax(uint32_t bits, bool wants_highest)
        : scale(__uint_as_float(bits)), wants_highest(wants_highest) {}
};

// Sums of weights of a thread's keys, for two heads, without and with the rows' scales.
struct SumsOfTwo {
    float2 sum, weights;
};

// Four weights of a block of heads, from their log2 before the maxima are subtracted.
__device__ __forceinline__ uint32_t weigh_four(SumsOfTwo& sums, const float* y, float2 maximum,
                                               const Keys& keys) {
    const float offset[2] = {mla::NarrowSoftmax::SHIFT - maximum.x,
                             mla::NarrowSoftmax::SHIFT - maximum.y};
    float w[4];
#pragma unroll
    for (uint32_t i = 0; i < 4; ++i) w[i] = ptx::exp2_approx(y[i] + offset[i % 2]);
    sums.sum = make_float2(w[0] * keys.inverse[0] + w[2] * keys.inverse[1],
                           w[1] * keys.inverse[0] + w[3] * keys.inverse[1]);
    sums.weights = make_float2(w[0] + w[2], w[1] + w[3]);
    return ptx::pack_e4m3(w[0] + keys.dither[0], w[2] + keys.dither[1], w[1] + keys.dither[0],
                          w[3] + keys.dither[1]);
}

// The sums of the rounded weights.
__device__ __forceinline__ float2 sum_of(uint32_t codes) {
    const float4 w = ptx::unpack_e4m3(codes);
    return make_float2(w.x + w.y, w.z + w.w);
}

// Store weights to shared memory, a head a row: operand B of both warpgroups' MMAs. A warp's
// sixteen keys are 16 bytes: key 0, key 8, key 1, ..; `load_values` has V's in the same order.
__device__ __forceinline__ void store_weights(Shared& shared, uint32_t tile, const Codes& codes) {
    const uint32_t thread = thread_now(), row = thread % 8, chunk = tile * WARPS + thread / 32;
#pragma unroll
    for (uint32_t j = 0; j < BLOCKS; ++j) {
        const uint32_t line = at(shared.weights) + (8 * j + row) * SPAN_BYTES;
        ptx::store_transposed(line + (chunk ^ row) * 16, codes[j]);
    }
    ptx::fence_proxy_async_shared();
}

// A head's sums over the keys of all warps, and its highest score.
struct Whole {
    float sum = 0, weights = 0, rounded = 0, highest = mla::minus_infinity();

    __device__ __forceinline__ Whole(const Published (&published)[2], uint32_t head) {
#pragma unroll
        for (uint32_t i = 0; i < 2 * WARPS; ++i) {
            const Published& of = published[i / WARPS];
            sum += of.sum[i % WARPS][head];
            weights += of.weights[i % WARPS][head];
            rounded += of.rounded[i % WARPS][head];
            highest = fmaxf(highest, of.highest[i % WARPS][head]);
        }
    }
};
