// Persistent scheduler: a CTA's items are pairs of a token and a tile of its heads. Neighbours in
// the grid have the heads of one token, because they gather the same rows. The CTAs of a cluster
// have all heads of a token, and advance together.
struct Work {
    uint32_t tokens, heads, topk;
    const int32_t* lengths;
    uint32_t head_tiles;  // of a token, each of as many heads as a cluster has
    uint32_t step_tokens, step_tiles;  // from one item of this CTA to its next

    __device__ __forceinline__ Work(uint32_t tokens, uint32_t heads, uint32_t topk,
                                    const int32_t* lengths)
        : tokens(tokens), heads(heads), topk(topk), lengths(lengths),
          head_tiles(CTAS > 1 ? 1 : (heads + HEADS - 1) / HEADS),
          step_tokens(gridDim.x / CTAS / head_tiles), step_tiles(gridDim.x / CTAS % head_tiles) {}
};

struct Item {
    uint32_t token, tile;  // of heads
    uint32_t rounds;  // of two tiles of keys
    uint32_t head;  // the first of its heads

    __device__ __forceinline__ explicit Item(const Work& work)
        : Item(work, blockIdx.x / CTAS / work.head_tiles, blockIdx.x / CTAS % work.head_tiles) {}

    __device__ __forceinline__ Item(const Work& work, uint32_t token, uint32_t tile)
        : token(token), tile(tile), rounds(0), head((tile * CTAS + blockIdx.x % CTAS) * HEADS) {
        if (!exists(work)) return;
        const uint32_t keys = mla::clamped_length(work.lengths, token, work.topk);
        rounds = (keys + 2 * KEYS - 1) / (2 * KEYS);
    }

    __device__ __forceinline__ bool exists(const Work& work) const { return token < work.tokens; }

    __device__ __forceinline__ Item after(const Work& work) const {
        const uint32_t further = tile + work.step_tiles;
        const bool carries = further >= work.head_tiles;
        return Item(work, token + work.step_tokens + carries,
                    carries ? further - work.head_tiles : further);
    }
};
