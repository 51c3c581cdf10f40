struct Outputs {
    uint16_t* out;
    float* lse;  // may be null
    float *partial_out, *partial_lse;  // null with one split
    const float* sink;  // may be null
    uint32_t tokens, heads;
    float dead_lse;

    __device__ __forceinline__ bool is_partial() const { return partial_out != nullptr; }

    // With several splits, mla_decode_combine adds the sink.
    __device__ __forceinline__ const float* sink_of_whole() const {
        return is_partial() ? nullptr : sink;
    }

    __device__ __forceinline__ uint64_t partial_row(const Item& item, uint32_t head) const {
        return (uint64_t(item.split) * tokens + item.token) * heads + head;
    }

    // Store an item without keys, by the producer warpgroup.
    __device__ __forceinline__ void store_keyless(const Item& item) const {
        const uint32_t thread = threadIdx.x % GATHER_THREADS;
        const uint32_t count = item.head < heads ? heads - item.head : 0;
        const uint32_t own = count < HEADS ? count : HEADS;
        if (thread < own) store_lse(item, item.head + thread, RunningSoftmax());
        if (is_partial()) return;
        uint16_t* to = out + (uint64_t(item.token) * heads + item.head) * LATENT;
#pragma unroll 1
        for (uint32_t i = thread; i < own * (LATENT / 8); i += GATHER_THREADS) {
            reinterpret_cast<uint4*>(to)[i] = make_uint4(0, 0, 0, 0);
        }
    }

    template <typename Row>
    __device__ __forceinline__ void store_lse(const Item& item, uint32_t head,
                                              const Row& row) const {
        if (head >= heads) return;
        if (is_partial()) {
            partial_lse[partial_row(item, head)] = row.lse_log2();
        } else if (lse != nullptr) {
            lse[uint64_t(item.token) * heads + head] = row.lse(dead_lse);
        }
    }
};
