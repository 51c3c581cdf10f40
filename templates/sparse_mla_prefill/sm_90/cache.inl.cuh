{% include "sparse_mla_prefill/sm_90/entries.inl.cuh" %}

struct Cache {
    const unsigned char* kv;
    const float* scales;  // of rows in a separate array, or null
    const int32_t* indices;
    uint32_t indices_stride, page, blocks, block_stride;

    __device__ __forceinline__ mla::Selection selection(const Work& work, uint32_t token) const {
        return {indices, work.lengths, token, work.topk, indices_stride, page, blocks,
                block_stride};
    }

    __device__ __forceinline__ mla::Selection selection(const Work& work, const Item& item) const {
        return selection(work, item.token);
    }
};

__device__ __forceinline__ Item with_keys(Item item, const Work& work) {
    while (item.exists(work) && item.rounds == 0) item = item.after(work);
    return item;
}
