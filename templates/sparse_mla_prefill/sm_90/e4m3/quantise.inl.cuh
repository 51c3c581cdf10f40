// Both consumer warpgroups quantise an item's Q, each head by neighbouring threads. All columns
// that are multiplied as e4m3 share a scale, and bf16 rope is multiplied by the same factor.
constexpr uint32_t HEAD_THREADS = MULTIPLY_THREADS / HEADS;
constexpr uint32_t ROPE_CHUNKS = ROPE_IS_BF16 ? 8 : 0;  // of 16 bytes; these stay bf16
constexpr uint32_t CODE_CHUNKS = (DEPTH - (ROPE_IS_BF16 ? DEPTH - LATENT : 0)) / 16;
static_assert(HEAD_THREADS <= 32, "a head's threads are of one warp");

// The `number`th 16 bytes of a head in panels.
template <uint32_t panels>
__device__ __forceinline__ uint32_t chunk_of(
    const unsigned char (&of)[panels][HEAD_PANEL_BYTES], uint32_t head, uint32_t number) {
    return at(of[number / 8]) + head * SPAN_BYTES + (number % 8 ^ head % 8) * 16;
}

__device__ __forceinline__ float largest_of_head(float largest) {
#pragma unroll
    for (uint32_t step = 1; step < HEAD_THREADS; step *= 2) {
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, step));
    }
    return largest;
}

__device__ __forceinline__ void quantise(Shared& shared) {
    const uint32_t head = threadIdx.x / HEAD_THREADS, thread = threadIdx.x % HEAD_THREADS;
    float largest = 0;
    for (uint32_t i = thread; i < 2 * CODE_CHUNKS; i += HEAD_THREADS) {
        largest = mla::largest_magnitude(largest,
                                         ptx::load_shared_words(chunk_of(shared.q, head, i)));
    }
    const mla::QueryScale scale(largest_of_head(largest));
    for (uint32_t i = thread; i < CODE_CHUNKS; i += HEAD_THREADS) {
        const uint4 a = ptx::load_shared_words(chunk_of(shared.q, head, 2 * i));
        const uint4 b = ptx::load_shared_words(chunk_of(shared.q, head, 2 * i + 1));
        ptx::store_shared(chunk_of(shared.codes, head, i),
                          make_uint4(mla::narrow(a.x, a.y, scale.factor),
                                     mla::narrow(a.z, a.w, scale.factor),
                                     mla::narrow(b.x, b.y, scale.factor),
                                     mla::narrow(b.z, b.w, scale.factor)));
    }
    for (uint32_t i = thread; i < ROPE_CHUNKS; i += HEAD_THREADS) {
        const uint4 v = ptx::load_shared_words(chunk_of(shared.q, head, 2 * CODE_CHUNKS + i));
        ptx::store_shared(
            chunk_of(shared.codes, head, CODE_CHUNKS + i),
            make_uint4(mla::multiply(v.x, scale.factor), mla::multiply(v.y, scale.factor),
                       mla::multiply(v.z, scale.factor), mla::multiply(v.w, scale.factor)));
    }
    if (thread == 0) shared.q_scales[head] = scale.scale;
    ptx::fence_proxy_async_shared();
    arrive(shared.q_free);
    meet_both();
}

// An item's Q as codes, and the factor of its scores.
struct Queries {
    const float* scales;
    uint32_t heads;

    __device__ __forceinline__ void begin(Shared& shared) const { quantise(shared); }

    __device__ __forceinline__ float scale(const Shared& shared, const Item&, uint32_t head) const {
        return shared.q_scales[head];
    }
};
