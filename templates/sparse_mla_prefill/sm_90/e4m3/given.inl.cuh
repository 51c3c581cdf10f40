// Q comes as codes, laid out as rows of the cache are, with a scale for each head.
struct Queries {
    const float* scales;
    uint32_t heads;

    __device__ __forceinline__ void begin(Shared&) const {}

    __device__ __forceinline__ float scale(const Shared&, const Item& item, uint32_t head) const {
        if (item.head + head >= heads) return 0;
        return scales[uint64_t(item.token) * heads + item.head + head];
    }
};
