// What a CTA does one after the other: a token's split, and a tile of its heads. The gathering
// warpgroup finds what there is to do, and tells those that multiply with each Q.
struct Item {
    uint32_t token, split;
    uint32_t head;  // the first of its heads
    uint32_t rounds;  // of two tiles of keys; 0: there is nothing more to do
    uint32_t number = 0;  // of the CTA's items
};

constexpr uint32_t NOTED = 4;  // items of which is known whether keys count: rows are taken ahead

struct Memory {
    Shared tiles;
{% if WIDENS %}    uint4 next;  // item, as the thread that loads Q found it
{% endif %}    uint4 item;  // that of the Q there is: written before q_full, read before q_free
    uint32_t counted[NOTED][WARPS];  // [item % NOTED]: whether keys that a gathering warp found count
};
static_assert(sizeof(Memory) <= SHARED_BYTES);

// The items, as those that multiply see them.
struct Work {
    Memory& memory;

    // The item of a number, once its Q is there.
    __device__ __forceinline__ Item await(uint32_t number) const {
        ptx::mbarrier_wait(at(memory.tiles.q_full), number % 2);
        const uint4 told = ptx::load_shared_words(at(memory.item));
        return {told.x, told.y, told.z, told.w, number};
    }
};

// Whether an item has keys that count, once its last tile is there. Of a split it is none's matter:
// where all scores are minus infinity, another split's may be numbers.
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
