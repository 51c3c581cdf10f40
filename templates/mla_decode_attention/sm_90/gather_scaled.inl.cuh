// The rows of all tiles, and their items for the consumers: rows are copied up to two tiles ahead
// of dequantisation.
struct Tiles {
    Memory& memory;
    const Plan& plan;
    const TensorMap& q_map;
    Ahead& ahead;
    bool is_one;  // whether this thread loads Q
    uint32_t items = 0;  // items whose rows were taken; for the last one:
    uint32_t rounds = 0, counting = 0;
    Listed listed = {};

    __device__ __forceinline__ Cache cache() const { return plan.cache(listed); }
    __device__ __forceinline__ const LaneRows& rows() const { return listed.rows; }

    // Go on to the next tile, if there is one.
    __device__ __forceinline__ bool take() {
        if (!ahead.exists()) return false;
        if (ahead.begins) enter(ahead.item());
        listed = ahead.take();
        const uint2 bits = listed.rows.counting();
        counting |= bits.x | bits.y;
        if (ahead.begins) note(memory, items - 1, counting);
        return true;
    }

    __device__ __forceinline__ void enter(const Item& item) {
        ++items;
        rounds = item.rounds;
        counting = 0;
        if (is_one) memory.next = make_uint4(item.token, item.split, item.head, item.rounds);
    }

    __device__ __forceinline__ void begin(uint32_t begun) const {
        if (is_one) {
            const uint4 item = ptx::load_shared_words(at(memory.next));
            ::begin(memory, q_map, {item.x, item.y, item.z, item.w}, begun);
        }
        __syncwarp();
    }

    __device__ __forceinline__ void end(uint32_t begun) const {
        if (is_one) ::end(memory, begun);
    }
};

__device__ __forceinline__ void gather(Memory& memory, const Plan& plan, const Outputs& outputs,
                                       const TensorMap& q_map) {
    const bool is_one = gathering_warp() == 0 && ptx::elect_one();
    if (is_one) ptx::prefetch_map(q_map);
    Ahead ahead(plan, outputs);
    Tiles tiles{memory, plan, q_map, ahead, is_one};
    fill_all(memory.tiles, tiles);
}
