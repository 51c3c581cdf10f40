struct Cache {
    const unsigned char* kv;
    const float* scales;  // of rows in a separate array, or null
};

// The rows of a lane's entries of a tile, and whether they are in the second cache.
struct Listed {
    bool is_second;
    LaneRows rows;
};

// The grid's work partition. Neighbours in the grid have the heads of one split, because they
// gather the same rows. All tokens' first splits come before any second split, so that CTAs get
// equally many splits with keys if tokens use few. A cluster's CTAs have a tile of heads each, of
// the same keys.
struct Plan {
    mla::decode::Call call;
    uint32_t splits;
    uint32_t head_tiles;  // of a token
    uint32_t items;

    __device__ __forceinline__ Plan(const mla::decode::Call& call, uint32_t heads, uint32_t splits)
        : call(call), splits(splits), head_tiles((heads + CTAS * HEADS - 1) / (CTAS * HEADS)),
          items(call.sequences.tokens * splits * head_tiles) {}

    __device__ __forceinline__ Item item(uint32_t number, uint32_t rounds) const {
        const uint32_t tokens = call.sequences.tokens, part = number / head_tiles;
        const uint32_t tile = number % head_tiles * CTAS + rank();
        return {part % tokens, part / tokens, tile * HEADS, rounds};
    }

    __device__ __forceinline__ Cache cache(const Listed& listed) const {
        return {listed.is_second ? call.extra.rows : call.first.rows,
                listed.is_second ? call.extra.scales : call.first.scales};
    }
};

// The rows of each tile, one after the other, across items. Entries are read a tile ahead.
struct Ahead {
    const Plan& plan;
    const Outputs& outputs;
    uint32_t number;  // of the next tile's item
    uint32_t tiles = 0;  // of the item, from the next one on
    mla::decode::Keys keys;
    uint32_t position = 0;  // of this lane's first entry in the next tile; others are eight apart
    int32_t entry[ENTRIES];
    bool begins = true;  // whether the next tile is an item's first, or there is no next tile

    __device__ __forceinline__ Ahead(const Plan& plan, const Outputs& outputs)
        : plan(plan), outputs(outputs), number(blockIdx.x / CTAS), keys() {
        find();
        read();
    }

    __device__ __forceinline__ bool exists() const { return number < plan.items; }

    // The next tile's item, of which it is the first or the second.
    __device__ __forceinline__ Item item() const { return plan.item(number, (tiles + 1) / 2); }

    // Find the first item from `number` on that has keys. Items without keys are stored on the way.
    __device__ __forceinline__ void find() {
        for (; exists(); number += gridDim.x / CTAS) {
            const Item found = plan.item(number, 0);
            keys = plan.call.keys(found.token);
            const mla::decode::Range own(plan.call, keys, found.split, plan.splits);
            tiles = 2 * own.count;
            position = own.first * mla::decode::UNIT + place_of_lane();
            if (own.count > 0) return;
            outputs.store_keyless(found);
        }
    }

    __device__ __forceinline__ void read() {
#pragma unroll
        for (uint32_t i = 0; i < ENTRIES; ++i) {
            entry[i] = exists() ? plan.call.entry(keys, position + 8 * i) : -1;
        }
    }

    __device__ __forceinline__ Listed take() {
        const mla::decode::Call& call = plan.call;
        Listed taken{call.is_second(keys, position), {}};
#pragma unroll
        for (uint32_t i = 0; i < ENTRIES; ++i) {
            taken.rows.of[i] = call.row(keys, position + 8 * i, entry[i]);
        }
        position += KEYS;
        begins = --tiles == 0;
        if (begins) {
            number += gridDim.x / CTAS;
            find();
        }
        read();
        return taken;
    }
};

// Record whether an item has valid keys, before its last tile becomes full.
__device__ __forceinline__ void note(Memory& memory, uint32_t items, uint32_t counting) {
    if (threadIdx.x % 32 == 0) memory.counted[items % NOTED][gathering_warp()] = counting;
}

// Publish the item to the consumers, and load its Q. One thread calls it.
__device__ __forceinline__ void begin(Memory& memory, const TensorMap& q_map, const Item& item,
                                      uint32_t begun) {
    ptx::mbarrier_wait(at(memory.tiles.q_free), begun % 2 ^ 1);
    memory.item = make_uint4(item.token, item.split, item.head, item.rounds);
    load_q(memory.tiles, q_map, item.token, item.head, begun);
}

__device__ __forceinline__ void end(Memory& memory, uint32_t begun) {
    ptx::mbarrier_wait(at(memory.tiles.q_free), begun % 2 ^ 1);
    memory.item = make_uint4(0, 0, 0, 0);
    ptx::mbarrier_arrive(at(memory.tiles.q_full));
}
