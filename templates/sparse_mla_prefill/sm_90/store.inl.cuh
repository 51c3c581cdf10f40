struct Outputs {
    uint16_t* out;
    float *lse, *max_logits;  // may be null
    const float* sink;  // may be null
    uint32_t heads;
    float dead_lse;
};

// What a row of sums is to be multiplied by.
__device__ __forceinline__ float normaliser(const Outputs& outputs, uint32_t head,
                                            const mla::RunningSoftmax& row) {
    float sink = mla::minus_infinity();
    if (outputs.sink != nullptr && head < outputs.heads) sink = outputs.sink[head];
    return row.normaliser(sink);
}

// Where a warpgroup's half of the output lies on its way: in that half of the odd tile, which it
// was the last to read. A warp writes and reads its own sixteen rows.
__device__ __forceinline__ uint32_t staged(Shared& shared, Half half) {
    return at(shared.k[ODD][half * HALF_PANELS]) + threadIdx.x % 128 / 32 * 16 * SPAN_BYTES;
}

__device__ __forceinline__ void stage(Shared& shared, const Outputs& outputs, const Item& item,
                                      const Sums& o, const State& rows, Half half) {
    const uint32_t head = item.head + first_row();
    const float factors[2] = {normaliser(outputs, head, rows[0]),
                              normaliser(outputs, head + 8, rows[1])};
    const uint32_t lane = threadIdx.x % 32, row = lane % 16;
    const uint32_t line = staged(shared, half) + row * SPAN_BYTES;
    meet_warpgroup();
#pragma unroll
    for (uint32_t i = 0; i < HALF / 16; ++i) {
        uint32_t words[4];
#pragma unroll
        for (uint32_t k = 0; k < 4; ++k) {
            const float* pair = o + 8 * i + 2 * k;
            words[k] = ptx::pack_bf16(pair[0] * factors[k % 2], pair[1] * factors[k % 2]);
        }
        const uint32_t chunk = i % 4 * 2 + lane / 16;
        ptx::store_matrices(line + i / 4 * PANEL_BYTES + (chunk ^ row % 8) * 16, words);
    }
    __syncwarp();
}

// A row at a time, 16 bytes a thread.
__device__ __forceinline__ void store(Shared& shared, const Outputs& outputs, const Item& item,
                                      Half half) {
    const uint32_t lane = threadIdx.x % 32, first = threadIdx.x % 128 / 32 * 16;
    const uint32_t from = staged(shared, half) + lane / 8 * PANEL_BYTES;
    const uint64_t row = uint64_t(item.token) * outputs.heads + item.head + first;
    uint16_t* to = outputs.out + row * LATENT + half * HALF + lane * 8;
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) {
        if (item.head + first + i >= outputs.heads) break;
        const uint4 words =
            ptx::load_shared_words(from + i * SPAN_BYTES + (lane % 8 ^ i % 8) * 16);
        *reinterpret_cast<uint4*>(to + i * LATENT) = words;
    }
}

// A half of what an item without keys gets.
__device__ __forceinline__ void store_zeros(const Outputs& outputs, const Item& item,
                                            Half half) {
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
        const uint32_t head = item.head + first_row() + 8 * h;
        if (head >= outputs.heads) continue;
        const uint64_t row = uint64_t(item.token) * outputs.heads + head;
        uint16_t* to = outputs.out + row * LATENT + half * HALF + threadIdx.x % 4 * 8;
        for (uint32_t group = 0; group < HALF / 32; ++group) {
            *reinterpret_cast<uint4*>(to + 32 * group) = make_uint4(0, 0, 0, 0);
        }
    }
}

// Store what is known of the scores; one of the four threads that have a row does.
__device__ __forceinline__ void store_scores(const Outputs& outputs, const Item& item,
                                             const State& rows) {
    if (threadIdx.x % 4 != 0) return;
#pragma unroll
    for (uint32_t h = 0; h < 2; ++h) {
        const uint32_t head = item.head + first_row() + 8 * h;
        if (head >= outputs.heads) continue;
        const uint64_t row = uint64_t(item.token) * outputs.heads + head;
        if (outputs.lse != nullptr) outputs.lse[row] = rows[h].lse(outputs.dead_lse);
        if (outputs.max_logits != nullptr) outputs.max_logits[row] = rows[h].max_logit();
    }
}

// The first item from this one on that has keys; what those without any get is stored on the way.
__device__ __forceinline__ Item with_keys(Item item, const Work& work, const Outputs& outputs,
                                          Half half) {
    while (item.exists(work) && item.rounds == 0) {
        const State rows;
        store_zeros(outputs, item, half);
        if (half == LEFT) store_scores(outputs, item, rows);
        item = item.after(work);
    }
    return item;
}
