// Consumer warpgroup EVEN: it scores the even tiles and has the left half of V's columns.
//
// ptxas allows pending accumulators where paths join only if every path has the same ones pending.
// So only scores are pending from one round to the next, and an item's last round adds separately.

// Issue the scores of this round's tile while the last round's odd tile is added; release that
// tile.
__device__ __forceinline__ void score_while_adding(Scores& s, Sums& o, Shared& shared,
                                                   const Places& places, uint32_t number) {
    constexpr uint32_t FIRST = HAS_ROPE ? 1 : PART_PANELS;
    Arrivals<EVEN> arrivals{shared, number};
    arrivals.wait(0);
    ptx::wgmma_wait<1>();
    give_back(shared, ODD, LEFT, 0);
    score(s, arrivals, places, 0, FIRST);
    ptx::wgmma_wait<1>();
    ptx::wgmma_fence_operand(o);
    give_back(shared, ODD, LEFT, 1);
    score(s, arrivals, places, FIRST);
}

// Issue the scores of an item's first tile.
__device__ __forceinline__ void score_first(Scores& s, Shared& shared, const Places& places,
                                            const Progress& at_round) {
    Arrivals<EVEN> arrivals{shared, at_round.number};
    ptx::mbarrier_wait(at(shared.q_full), at_round.items % 2);
    arrivals.wait(0);
    score(s, arrivals, places);
}

template <typename Keys>
__device__ __forceinline__ void multiply_even(Shared& shared, const Work& work,
                                              const Keys& keys, const Softmax& softmax,
                                              const Outputs& outputs) {
    Progress at_round(work, outputs, LEFT);
    Sums o = {};
    Scores s;
    Weights p;
    State rows;
    if (!at_round.exists(work)) return;
    score_first(s, shared, Places(shared), at_round);
    while (true) {
        arrive(shared.scoring);
        const Places places(shared);
        const uint32_t number = at_round.number;
        const uint2 counting = ptx::load_shared_pair(at(shared.counts[EVEN][number % 2]));
        ptx::wgmma_wait<0>();
        ptx::wgmma_fence_operand(s);
        ptx::wgmma_fence_operand(o);
        arrive_if(at_round.is_last(), shared.q_free);
        softmax.weigh(p, s, rows, counting,
                      [&](const float (&factors)[2]) { scale_sums(o, factors); });
        publish_maxima(shared.published[EVEN], rows);
        store_weights(shared, EVEN, p);
        arrive(shared.weighed[EVEN]);
        if (HAS_ROPE) free_part(shared, EVEN, ROPE);

        add_own<LEFT>(o, places, p);
        softmax.note_highest(rows, s);
        ptx::wgmma_wait<1>();
        give_back(shared, EVEN, LEFT, 0);
        ptx::wgmma_wait<0>();
        ptx::wgmma_fence_operand(o);
        give_back(shared, EVEN, LEFT, 1);

        ptx::mbarrier_wait(at(shared.weighed[ODD]), number % 2);
        take_over(rows, o, shared.published[ODD]);
        if (!at_round.is_last()) {
            add_other<LEFT>(o, places);
            at_round.advance();
            score_while_adding(s, o, shared, places, number + 1);
            continue;
        }
        add_other<LEFT>(o, places);
        ptx::wgmma_wait<0>();
        ptx::wgmma_fence_operand(o);
        const Item item = at_round.item;
        join(rows, shared.published[EVEN], shared.published[ODD], keys.selection(work, item));
        store_scores(outputs, item, rows);
        stage(shared, outputs, item, o, rows, LEFT);
        if (!at_round.next_item(work, outputs, rows, o, LEFT)) {
            store(shared, outputs, item, LEFT);
            return;
        }
        score_first(s, shared, places, at_round);
        store(shared, outputs, item, LEFT);
        give_back(shared, ODD, LEFT, 0);
        give_back(shared, ODD, LEFT, 1);
    }
}
