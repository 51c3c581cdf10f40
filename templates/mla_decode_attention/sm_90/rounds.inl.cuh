// Rounds of an even tile of keys and the odd one after it; an item's last odd tile may be empty.
struct Progress {
    Item item;
    uint32_t number = 0, items = 0;  // rounds and items before this one
    uint32_t round = 0;  // of the item

    __device__ __forceinline__ Progress(const Work& work, const Outputs&, Half)
        : item(work.await(0)) {}

    __device__ __forceinline__ bool exists(const Work&) const { return item.rounds > 0; }
    __device__ __forceinline__ bool is_first() const { return round == 0; }
    __device__ __forceinline__ bool is_last() const { return round + 1 == item.rounds; }

    __device__ __forceinline__ void advance() {
        ++number;
        ++round;
    }

    // Go to the next item, with zero sums. Returns whether there is one.
    __device__ __forceinline__ bool next_item(const Work& work, const Outputs&, State& rows,
                                              Sums& o, Half) {
        ++number;
        ++items;
        round = 0;
        rows[0] = rows[1] = RunningSoftmax();
#pragma unroll
        for (uint32_t i = 0; i < HALF / 2; ++i) o[i] = 0;
        item = work.await(items);
        return exists(work);
    }
};
