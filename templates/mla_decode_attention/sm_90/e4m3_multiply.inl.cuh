{% include "sparse_mla_prefill/sm_90/e4m3/multiplier.inl.cuh" %}

template <uint32_t role>
__device__ __forceinline__ void multiply(Shared& shared, const Work& work, const Queries& queries,
                                         const Softmax& softmax, const Outputs& outputs) {
    Multiplier<role> multiplier{shared, {shared, queries, softmax}};
    uint32_t number = 0;
    for (uint32_t items = 0;; ++items) {
        const Item item = work.await(items);
        if (item.rounds == 0) return;
        multiplier.reset();
        multiplier.weigher.begin(item, items);
        multiplier.all_rounds(number, item.rounds);
        multiplier.weigher.join();
        multiplier.weigher.store(outputs, item, multiplier.o);
    }
}
