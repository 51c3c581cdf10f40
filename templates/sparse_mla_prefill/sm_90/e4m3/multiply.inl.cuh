{% include "sparse_mla_prefill/sm_90/e4m3/multiplier.inl.cuh" %}

template <uint32_t role>
__device__ __forceinline__ void multiply(Shared& shared, const Work& work, const Queries& queries,
                                         const Softmax& softmax, const Outputs& outputs) {
    Multiplier<role> multiplier{shared, {shared, queries, softmax}};
    uint32_t number = 0, items = 0;
    for (Item item(work); item.exists(work); item = item.after(work)) {
        if (item.rounds == 0) {
            store_nothing(outputs, item, role);
            continue;
        }
        multiplier.reset();
        ptx::mbarrier_wait(at(shared.q_full), items % 2);
        multiplier.weigher.begin(item, items++);
        multiplier.all_rounds(number, item.rounds);
        multiplier.weigher.join();
        multiplier.weigher.store(outputs, item, multiplier.o);
    }
}
