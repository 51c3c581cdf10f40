{% from "macros/wgmma.j2" import wgmma_function -%}
// Warp roles with heads as the rows of an MMA: two consumer warpgroups, one producer warpgroup.
{% include "sparse_mla_prefill/sm_90/tiles.inl.cuh" %}
{% include "mla_decode_attention/sm_90/registers.inl.cuh" %}
{% include "mla_decode_attention/sm_90/gathering.inl.cuh" %}

{{ wgmma_function("multiply_scores", 64) }}

{{ wgmma_function("multiply_values", 128, b_major=1) }}

{{ wgmma_function("multiply_values", 256, b_major=1) }}

{{ wgmma_function("multiply_values", 128, registers=true, b_major=1) }}

{{ wgmma_function("multiply_values", 256, registers=true, b_major=1) }}

{% include "sparse_mla_prefill/sm_90/scores.inl.cuh" %}
{% include "sparse_mla_prefill/sm_90/values.inl.cuh" %}
{% include "mla_decode_attention/sm_90/store.inl.cuh" %}
{% include "mla_decode_attention/sm_90/rounds.inl.cuh" %}
{% include "sparse_mla_prefill/sm_90/even.inl.cuh" %}
{% include "sparse_mla_prefill/sm_90/odd.inl.cuh" %}

__device__ __forceinline__ void attend(Memory& memory, const Plan& plan, const Outputs& outputs,
                                       uint32_t scale_log2e, const TensorMap& q_map) {
    const Softmax softmax(scale_log2e, false);
    const CountedOfItems counted{outputs.is_partial()};
    const uint32_t role = threadIdx.x / 128;
    if (role == EVEN) {
        ptx::increase_registers<EVEN_REGISTERS>();
        multiply_even(memory.tiles, Work{memory}, counted, softmax, outputs);
    } else if (role == ODD) {
        ptx::increase_registers<ODD_REGISTERS>();
        multiply_odd(memory.tiles, Work{memory}, counted, softmax, outputs);
    } else {
        ptx::decrease_registers<GATHER_REGISTERS>();
        gather(memory, plan, outputs, q_map);
    }
}
