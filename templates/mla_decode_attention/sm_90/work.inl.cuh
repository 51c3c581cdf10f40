// Persistent scheduler: an item is a token's split and a tile of its heads. The producer warpgroup
// finds the items, and publishes each to the consumers with its Q.
struct Item {
    uint32_t token, split;
    uint32_t head;  // the first of its heads
    uint32_t rounds;  // of two tiles of keys; 0: no more items
    uint32_t number = 0;  // of the CTA's items
};

constexpr uint32_t NOTED = 4;  // items whose valid keys are recorded: rows are taken ahead

struct Memory {
    Shared tiles;
{% if WIDENS %}    uint4 next;  // the item that the thread which loads Q found
{% endif %}    uint4 item;  // the item of the current Q: written before q_full, read before q_free
    uint32_t counted[NOTED][WARPS];  // [item % NOTED]: whether a producer warp found valid keys
};
static_assert(sizeof(Memory) <= SHARED_BYTES);

// The items, as the consumers see them.
struct Work {
    Memory& memory;

    // Wait for the Q of item `number`, and return the item.
    __device__ __forceinline__ Item await(uint32_t number) const {
        ptx::mbarrier_wait(at(memory.tiles.q_full), number % 2);
        const uint4 told = ptx::load_shared_words(at(memory.item));
        return {told.x, told.y, told.z, told.w, number};
    }
};

// Whether an item has valid keys, once its last tile is full. For one of several splits the answer
// is no: if all its scores are minus infinity, another split may have finite ones.
struct Counted {
    const uint32_t (&by_warp)[WARPS];
    bool is_partial;

    __device__ __forceinline__ bool has_keys(bool) const {
        const uint4 found = ptx::load_shared_words(at(by_warp));
        return !is_partial && (found.x | found.y | found.z | found.w) != 0;
    }
};

struct CountedOfItems {
    bool are_partial;

    __device__ __forceinline__ Counted selection(const Work& work, const Item& item) const {
        return {work.memory.counted[item.number % NOTED], are_partial};
    }
};
