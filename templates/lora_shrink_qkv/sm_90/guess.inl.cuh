// Speculation under programmatic dependent launch: the producer guesses the first tile before
// `grid_dependency_wait`, from offsets and ids that the previous grid may still write. Its data is
// in flight while every warp finds the true tile. A wrong guess only costs time: TMA checks bounds,
// and consumers release the stages of a wrong guess unread.

// Speculative prefetch of the first blocks of B into L2. It pays if a CTA waits longer than it
// loads, or starts when the previous grid no longer loads.
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

// Publish the guess to the consumer warps.
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

// The number of stages that are loaded for a guess.
__device__ __forceinline__ uint32_t stages_of(const Tile& guess, const Position& position) {
    return guess.expert < 0 ? 0 : min(STAGES, position.blocks());
}

// Load them after `grid_dependency_wait`. All stages are still empty.
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

// Release the stages of a wrong guess unread.
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
