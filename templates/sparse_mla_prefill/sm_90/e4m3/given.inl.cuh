// Q is given as e4m3 codes in the layout of the cache's rows, with a scale for each head.
struct Queries {
    const float* scales;
    uint32_t heads;

    __device__ __forceinline__ void begin(Shared&) const {}

    __device__ __forceinline__ float scale(const Shared&, const Item& item, uint32_t head) const {
        if (item.head + head >= heads) return 0;
        return scales[uint64_t(item.token) * heads + item.head + head];
    }
};
