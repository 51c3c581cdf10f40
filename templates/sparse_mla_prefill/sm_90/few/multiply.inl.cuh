{% include "sparse_mla_prefill/sm_90/few/multiplier.inl.cuh" %}

template <uint32_t role>
__device__ __forceinline__ void multiply(Shared& shared, const Work& work, const Cache& cache,
                                         const Softmax& softmax, const Outputs& outputs) {
    Multiplier<role> multiplier{shared, softmax};
    uint32_t number = 0, items = 0;
    for (Item item(work); item.exists(work); item = item.after(work)) {
        multiplier.reset();
        if (item.rounds > 0) {
            ptx::mbarrier_wait(at(shared.q_full), items++ % 2);
            for (uint32_t round = 1; round <= item.rounds; ++round, ++number) {
                multiplier.round(number, round == item.rounds);
            }
            join(multiplier.state, shared.published, role, cache.selection(work, item.token));
            stage(shared, outputs, item, multiplier.o, multiplier.state, role);
        }
        store(shared, outputs, item, role);
        if (role == EVEN) store_scores(outputs, item, multiplier.state);
    }
}
