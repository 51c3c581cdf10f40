{% include "sparse_mla_prefill/sm_90/few/multiplier.inl.cuh" %}

template <uint32_t role>
__device__ __forceinline__ void multiply(Shared& shared, const Work& work, const Softmax& softmax,
                                         const Outputs& outputs) {
    Multiplier<role> multiplier{shared, softmax};
    uint32_t number = 0;
    for (uint32_t items = 0;; ++items) {
        const Item item = work.await(items);
        if (item.rounds == 0) return;
        multiplier.reset();
        for (uint32_t round = 1; round <= item.rounds; ++round, ++number) {
            multiplier.round(number, round == item.rounds);
        }
        const CountedOfItems counted{outputs.is_partial()};
        join(multiplier.state, shared.published, role, counted.selection(work, item));
        stage(shared, outputs, item, multiplier.o, multiplier.state, role);
        store(shared, outputs, item, role);
        if (role == EVEN) store_scores(outputs, item, multiplier.state);
    }
}
