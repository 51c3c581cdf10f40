// The first tile, guessed before this grid may read from offsets and ids that may not be written yet:
// what it needs is on its way while every warp finds out which tile it is. A wrong guess costs time
// and no more: TMA checks bounds, and the stages of a wrong guess pass unread.

// Bring the first blocks of B into L2. It pays where a CTA waits longer than it loads, or starts when
// the grid ahead no longer loads.
__device__ __forceinline__ void prefetch_guess(const Position& position, const Tile& guess,
                                        const TensorMap& b_map) {
    if (guess.expert < 0) return;
    const uint32_t step = position.step;
    const uint32_t end = min(position.first_block + PREFETCH_BLOCKS * step, position.last_block);
    for (uint32_t block = position.first_block; block < end; block += step) {
        const BlockOfK at(block);
        ptx::tma_prefetch(b_map, at.k, guess.flat, at.panel, guess.expert);
    }
}

// Show the guess to the multiplying warps.
__device__ __forceinline__ void publish_guess(const Shared& shared, const Tile& guess) {
    ptx::store_shared(shared.guess(), make_uint4(guess.row, guess.rows, guess.flat, guess.expert));
    ptx::mbarrier_arrive(shared.guessed());
}

__device__ __forceinline__ Tile await_guess(const Shared& shared) {
    ptx::mbarrier_wait(shared.guessed(), 0);
    const uint4 words = ptx::load_shared_words(shared.guess());
    Tile guess;
    guess.row = words.x;
    guess.rows = words.y;
    guess.flat = words.z;
    guess.expert = words.w;
    return guess;
}

// The stages that are loaded of a guess.
__device__ __forceinline__ uint32_t stages_of(const Tile& guess, const Position& position) {
    return guess.expert < 0 ? 0 : min(STAGES, position.blocks());
}

// Load them, every one of which is empty still. This grid may read now.
__device__ __forceinline__ void load_guess(const Shared& shared, const Position& position,
                                           const TensorMap& a_map, const TensorMap& b_map,
                                           const Tile& guess, Ring<STAGES>& ring) {
    uint32_t block = position.first_block;
    for (uint32_t stages = stages_of(guess, position); stages > 0; --stages) {
        load_stage(shared, position, a_map, b_map, guess, block, ring.stage);
        ring.advance();
        block += position.step;
    }
}

// Let the stages of a wrong guess pass.
__device__ __forceinline__ void drop_wrong_guess(const Shared& shared, const Position& position,
                                                 GroupedTiles& tiles, Ring<STAGES>& ring) {
    const Tile first = first_tile<Tile>(tiles, position), guess = await_guess(shared);
    if (first == guess) return;
    for (uint32_t stages = stages_of(guess, position); stages > 0; --stages) {
        ptx::mbarrier_wait(shared.full(ring.stage), ring.phase);
        release(shared, position, ring.stage);
        ring.advance();
    }
}
