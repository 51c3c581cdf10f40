// KV-cache append with quantisation: a warp writes one row of a cache from values in bf16, also in
// kernels that compute the values. Bit for bit equal to the oracle
// (kernelpack/kernels/kv_cache_append/reference.py).
//
//     scale = max |x| / 448 of the values that share it, at least 2^-40
//           = 2^ceil(log2(max(max |x| / 448, 1e-4))) where powers of two are asked for
//     code  = e4m3(x / scale), the nearest, at most 448; without a scale e4m3(x)
//
// A NaN makes all values with the same scale NaN; an infinity counts as the largest number.
#pragma once
#include <cuda/std/cstdint>
#include <kp/kv/row.cuh>
#include <kp/ptx/convert_fp8.cuh>
#include <kp/ptx/maximum.cuh>

namespace kp::kv {

constexpr uint32_t LANE_LATENT = 16, LANE_ROPE = 8;  // values of a lane
constexpr uint32_t ROPE_LANES = 8;                   // the first lanes of a warp

constexpr float E4M3_LARGEST = 448.0f, BF16_LARGEST = 0x1.fep127f;
constexpr float LEAST_SCALE = 0x1p-40f;  // rope divided by it is finite, and zeros stay zeros
constexpr float LEAST_POWER = 1e-4f;     // the value that other writers of powers of two use

// The values of a lane: latent ones from LANE_LATENT * lane on, rope ones from LANE_ROPE * lane on,
// two bf16 a word.
struct LaneValues {
    uint32_t latent[LANE_LATENT / 2];
    uint32_t rope[LANE_ROPE / 2];
};

__device__ __forceinline__ float first_of(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float second_of(uint32_t pair) {
    return __uint_as_float(pair & 0xffff0000u);
}

template <uint32_t PAIRS>
__device__ __forceinline__ float largest(const uint32_t (&pairs)[PAIRS]) {
    float most = 0;
#pragma unroll
    for (uint32_t i = 0; i < PAIRS; ++i) {
        most = ptx::max_nan(most, fabsf(first_of(pairs[i])));
        most = ptx::max_nan(most, fabsf(second_of(pairs[i])));
    }
    return most;
}

// The largest number of `lanes` lanes side by side, a power of two.
__device__ __forceinline__ float largest_of_lanes(float most, uint32_t lanes) {
    for (uint32_t step = 1; step < lanes; step *= 2)
        most = ptx::max_nan(most, __shfl_xor_sync(0xffffffff, most, step));
    return most;
}

__device__ __forceinline__ float scale_of(float most, bool power_of_two) {
    const float exact = __fdiv_rn(ptx::min_nan(most, BF16_LARGEST), E4M3_LARGEST);
    if (!power_of_two) return ptx::max_nan(exact, LEAST_SCALE);
    const float least = ptx::max_nan(exact, LEAST_POWER);
    const uint32_t up = (__float_as_uint(least) + 0x7fffff) & 0xff800000;
    return least == least ? __uint_as_float(up) : least;
}

template <uint32_t PAIRS>
__device__ __forceinline__ void divide_to_e4m3(uint8_t* to, const uint32_t (&pairs)[PAIRS],
                                               float scale) {
    uint32_t words[PAIRS / 2];
#pragma unroll
    for (uint32_t i = 0; i < PAIRS / 2; ++i) {
        const uint32_t low = pairs[2 * i], high = pairs[2 * i + 1];
        words[i] =
            ptx::to_e4m3_pair(__fdiv_rn(first_of(low), scale), __fdiv_rn(second_of(low), scale)) |
            ptx::to_e4m3_pair(__fdiv_rn(first_of(high), scale), __fdiv_rn(second_of(high), scale))
                << 16;
    }
    if constexpr (PAIRS == 8)
        *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
    else
        *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
}

__device__ __forceinline__ void store_words(uint8_t* to, const uint32_t* words) {
    *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

// Rope values as bf16, divided by the scale if one scale covers the whole row.
template <bool DIVIDE>
__device__ __forceinline__ void store_rope(uint8_t* to, const LaneValues& values, float scale) {
    uint32_t words[LANE_ROPE / 2];
#pragma unroll
    for (uint32_t i = 0; i < LANE_ROPE / 2; ++i)
        words[i] = DIVIDE ? ptx::to_bf16_pair(__fdiv_rn(first_of(values.rope[i]), scale),
                                              __fdiv_rn(second_of(values.rope[i]), scale))
                          : values.rope[i];
    store_words(to, words);
}

// A lane's own scales: of its latent values, and of its rope values where those are e4m3.
struct LaneScales {
    float latent, rope;
};

// The scales of blocks of `block` values. The first lane of each block stores its scale.
template <class Row>
__device__ __forceinline__ LaneScales scale_blocks(float* scales, uint32_t block, bool power_of_two,
                                                   const LaneValues& values, uint32_t lane) {
    constexpr bool ROPE = Row::ROPE > 0 && sizeof(typename Row::Rope) == 1;
    const bool has_rope = ROPE && lane < ROPE_LANES;
    float latent = largest(values.latent), rope = has_rope ? largest(values.rope) : 0.0f;
    const bool whole = block >= Row::LATENT;
    if (whole) latent = ptx::max_nan(latent, rope);
    const uint32_t lanes = whole ? 32 : block / LANE_LATENT;
    latent = scale_of(largest_of_lanes(latent, lanes), power_of_two);
    if (lane % lanes == 0) scales[lane / lanes] = latent;
    if (whole || !ROPE) return {latent, latent};
    const uint32_t rope_lanes = min(block / LANE_ROPE, ROPE_LANES);
    rope = scale_of(largest_of_lanes(rope, rope_lanes), power_of_two);
    if (has_rope && lane % rope_lanes == 0) scales[Row::LATENT / block + lane / rope_lanes] = rope;
    return {latent, rope};
}

// Write a row. All lanes of a warp call it, each with its values.
//
// row: its first byte. scales: its first scale in a separate array; null if there are no scales or
// they are inline. block: values that share a scale, the row's width or 32, 64, 128. Formats with
// inline scales, or without scales, ignore the last three arguments.
template <class Row>
__device__ __forceinline__ void append_row(uint8_t* row, float* scales, uint32_t block,
                                           bool power_of_two, const LaneValues& values) {
    const uint32_t lane = threadIdx.x % 32;
    const bool has_rope = Row::ROPE > 0 && lane < ROPE_LANES;
    uint8_t* latent = row + lane * LANE_LATENT * sizeof(typename Row::Element);
    uint8_t* rope = row + Row::ROPE_OFFSET + lane * LANE_ROPE * sizeof(typename Row::Rope);
    if constexpr (sizeof(typename Row::Element) == 2) {
        store_words(latent, values.latent);
        store_words(latent + 16, values.latent + 4);
        if (has_rope) store_words(rope, values.rope);
    } else {
        if constexpr (Row::INLINE_SCALES > 0) {
            scales = reinterpret_cast<float*>(row + Row::INLINE_OFFSET);
            block = Row::INLINE_BLOCK;
        }
        LaneScales own{1.0f, 1.0f};
        if (scales) own = scale_blocks<Row>(scales, block, power_of_two, values, lane);
        divide_to_e4m3(latent, values.latent, own.latent);
        if (!has_rope) return;
        if constexpr (sizeof(typename Row::Rope) == 1)
            divide_to_e4m3(rope, values.rope, own.rope);
        else
            store_rope<Row::INLINE_SCALES == 0>(rope, values, own.latent);
    }
}

// The same for a format that is known only at run time, by the bytes of its row.
__device__ __forceinline__ void append_row_of(uint32_t row_bytes, uint8_t* row, float* scales,
                                              uint32_t block, bool power_of_two,
                                              const LaneValues& values) {
    const auto append = [&](auto format) {
        append_row<decltype(format)>(row, scales, block, power_of_two, values);
    };
    switch (row_bytes) {
        case Bf16_576::BYTES: return append(Bf16_576{});
        case Bf16_512::BYTES: return append(Bf16_512{});
        case Fp8_576::BYTES: return append(Fp8_576{});
        case Fp8_512::BYTES: return append(Fp8_512{});
        case Fp8_640::BYTES: return append(Fp8_640{});
        case Fp8_656::BYTES: return append(Fp8_656{});
    }
}

}  // namespace kp::kv
