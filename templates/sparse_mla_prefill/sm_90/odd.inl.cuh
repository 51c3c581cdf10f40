// Consumer warpgroup ODD: it scores the odd tiles and has the right half of V's columns. The even
// tile's weights come first, so it adds these values during the softmax of the odd tile.
template <typename Keys>
__device__ __forceinline__ void multiply_odd(Shared& shared, const Work& work,
                                             const Keys& keys, const Softmax& softmax,
                                             const Outputs& outputs) {
    Progress at_round(work, outputs, RIGHT);
    Sums o = {};
    Scores s;
    Weights p;
    State rows;
    if (!at_round.exists(work)) return;
    while (true) {
        const Places places(shared);
        const uint32_t number = at_round.number;
        if (at_round.is_first()) ptx::mbarrier_wait(at(shared.q_full), at_round.items % 2);
        Arrivals<ODD> arrivals{shared, number};
        arrivals.wait(0);
        ptx::mbarrier_wait(at(shared.scoring), number % 2);
        score(s, arrivals, places);
        if (CTAS > 1) acknowledge_sender(shared);
        const uint2 counting = ptx::load_shared_pair(at(shared.counts[ODD][number % 2]));
        ptx::wgmma_wait<0>();
        ptx::wgmma_fence_operand(s);
        ptx::wgmma_fence_operand(o);
        arrive_if(at_round.is_last(), shared.q_free);

        ptx::mbarrier_wait(at(shared.weighed[EVEN]), number % 2);
        take_over(rows, o, shared.published[EVEN]);
        add_other<RIGHT>(o, places);

        // If maxima rise, sums are rescaled later: a single warp may not wait for MMAs.
        float factors[2] = {1, 1};
        softmax.weigh(p, s, rows, counting, [&](const float (&by)[2]) {
            factors[0] = by[0];
            factors[1] = by[1];
        });
        if (HAS_ROPE) meet_warpgroup();  // no warp's MMAs still read the rope
        // Rope must not be in flight to the other CTA either.
        if (CTAS > 1 && !COPIES_ROPE) ptx::mbarrier_wait(at(shared.sent), number % 2);
        publish_maxima(shared.published[ODD], rows);
        store_weights(shared, ODD, p);
        arrive(shared.weighed[ODD]);
        softmax.note_highest(rows, s);

        ptx::wgmma_wait<0>();
        ptx::wgmma_fence_operand(o);
        give_back(shared, EVEN, RIGHT, 0);
        give_back(shared, EVEN, RIGHT, 1);
        if (__any_sync(0xffffffff, factors[0] != 1 || factors[1] != 1)) scale_sums(o, factors);
        add_own<RIGHT>(o, places, p);
        ptx::wgmma_wait<0>();
        ptx::wgmma_fence_operand(o);
        if (CTAS > 1 && COPIES_ROPE) ptx::mbarrier_wait(at(shared.sent), number % 2);
        if (!at_round.is_last()) {
            give_back(shared, ODD, RIGHT, 0);
            give_back(shared, ODD, RIGHT, 1);
            at_round.advance();
            continue;
        }
        const Item item = at_round.item;
        join(rows, shared.published[ODD], shared.published[EVEN], keys.selection(work, item));
        stage(shared, outputs, item, o, rows, RIGHT);
        const bool goes_on = at_round.next_item(work, outputs, rows, o, RIGHT);
        store(shared, outputs, item, RIGHT);
        if (!goes_on) return;
        give_back(shared, ODD, RIGHT, 0);
        give_back(shared, ODD, RIGHT, 1);
    }
}
