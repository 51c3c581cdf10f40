{% include "sparse_mla_prefill/sm_90/widen.inl.cuh" %}

// The rows of all tiles, one after the other: a lane has the row of its entry. Entries are read a
// tile ahead.
struct Tiles {
    Shared& shared;
    const Work& work;
    const Cache& of_all;
    const TensorMap& q_map;
    bool is_one;  // whether this thread loads Q
    Item next;  // of the next rows
    mla::Selection selection;
    uint32_t items = 0;  // items whose rows were taken; for the last one:
    uint32_t rounds = 0, token = 0, head = 0;
    uint32_t tile = 0;  // of the next rows
    int32_t entry[ENTRIES];
    LaneRows lane_rows = {};

    __device__ __forceinline__ Tiles(Shared& shared, const Work& work, const Cache& cache,
                                     const TensorMap& q_map, bool is_one)
        : shared(shared), work(work), of_all(cache), q_map(q_map), is_one(is_one),
          next(with_keys(Item(work), work)),
          selection(cache.selection(work, next.exists(work) ? next.token : 0)) {
        if (next.exists(work)) read();
    }

    __device__ __forceinline__ const Cache& cache() const { return of_all; }
    __device__ __forceinline__ const LaneRows& rows() const { return lane_rows; }

    __device__ __forceinline__ void read() {
#pragma unroll
        for (uint32_t i = 0; i < ENTRIES; ++i) {
            entry[i] = selection.entry(tile * KEYS + place_of_lane() + 8 * i);
        }
    }

    // Go on to the next tile, if there is one.
    __device__ __forceinline__ bool take() {
        if (!next.exists(work)) return false;
        if (tile == 0) enter();
#pragma unroll
        for (uint32_t i = 0; i < ENTRIES; ++i) lane_rows.of[i] = selection.row(entry[i]);
        if (++tile == 2 * next.rounds) {
            tile = 0;
            next = with_keys(next.after(work), work);
            if (!next.exists(work)) return true;
            selection = of_all.selection(work, next.token);
        }
        read();
        return true;
    }

    __device__ __forceinline__ void enter() {
        ++items;
        rounds = next.rounds;
        token = next.token;
        head = next.head;
    }

    __device__ __forceinline__ void begin(uint32_t begun) const {
        if (is_one) load_q(shared, q_map, token, head, begun);
        __syncwarp();
    }

    __device__ __forceinline__ void end(uint32_t) const {}
};

__device__ __forceinline__ void gather(Shared& shared, const Work& work, const Cache& cache,
                                       const TensorMap& q_map) {
    const bool is_one = gathering_warp() == 0 && ptx::elect_one();
    if (is_one) ptx::prefetch_map(q_map);
    Tiles tiles(shared, work, cache, q_map, is_one);
    fill_all(shared, tiles);
}
