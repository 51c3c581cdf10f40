// S = K Q^T of a tile (swap-AB), in registers: 64 keys by HEADS. A thread has two keys, `lane / 4`
// of its warp's sixteen and eight further, and two neighbouring heads of each block of eight: s[4j
// + 2h + q] is of key row h and head 8j + 2 (lane % 4) + q.
using Scores = float[4 * BLOCKS];
using PerHead = float[2 * BLOCKS];  // [2j + q]: of a thread's heads
constexpr uint32_t TILE_LAYOUT = ptx::wgmma_descriptor_high(8 * SPAN_BYTES);

__device__ __forceinline__ uint32_t head_of(uint32_t i) {
    return i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
}

// Combine over the eight threads of a warp that have other keys of the same heads.
template <typename Combine>
__device__ __forceinline__ float over_keys(float value, Combine combine) {
    value = combine(value, __shfl_xor_sync(0xffffffff, value, 4));
    value = combine(value, __shfl_xor_sync(0xffffffff, value, 8));
    return combine(value, __shfl_xor_sync(0xffffffff, value, 16));
}

struct Greater {
    __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

struct Plus {
    __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
