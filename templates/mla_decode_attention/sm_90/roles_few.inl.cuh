{% from "macros/wgmma.j2" import wgmma_function -%}
// Warp roles with heads as the columns of an MMA (swap-AB).
{% include "sparse_mla_prefill/sm_90/few/tiles.inl.cuh" %}
{% include "mla_decode_attention/sm_90/gathering.inl.cuh" %}

{{ wgmma_function("multiply_scores", HEADS) }}

{{ wgmma_function("multiply_values", HEADS, a_major=1) }}

{% include "sparse_mla_prefill/sm_90/few/scores.inl.cuh" %}
{% include "sparse_mla_prefill/sm_90/few/softmax.inl.cuh" %}
{% include "mla_decode_attention/sm_90/few_store.inl.cuh" %}
{% include "mla_decode_attention/sm_90/few_multiply.inl.cuh" %}

__device__ __forceinline__ void attend(Memory& memory, const Plan& plan, const Outputs& outputs,
                                       uint32_t scale_log2e, const TensorMap& q_map) {
    const Softmax softmax(scale_log2e, false);
    const uint32_t role = threadIdx.x / 128;
    if (role == EVEN) {
        multiply<EVEN>(memory.tiles, Work{memory}, softmax, outputs);
    } else if (role == ODD) {
        multiply<ODD>(memory.tiles, Work{memory}, softmax, outputs);
    } else {
        gather(memory, plan, outputs, q_map);
    }
}
