{% from "macros/wgmma.j2" import wgmma_function -%}
{% set QUERY = "bf16" -%}
{% set SCORES_AHEAD = false -%}
// Warp roles of FP8 attention, swap-AB: rows of e4m3 with one scale or none are multiplied as they
// are, by quantised Q and weights; heads are the columns of an MMA.
constexpr bool QUANTISES = true;
{% include "sparse_mla_prefill/sm_90/e4m3/tiles.inl.cuh" %}
{% include "mla_decode_attention/sm_90/gathering.inl.cuh" %}
{% include "sparse_mla_prefill/sm_90/few/scores.inl.cuh" %}

{{ wgmma_function("multiply_rope", HEADS) }}

{{ wgmma_function("multiply_scores", HEADS, type="e4m3", k=32) }}

{{ wgmma_function("multiply_values", 32 if HEADS > 32 else HEADS, type="e4m3", k=32, registers=true) }}

{% include "sparse_mla_prefill/sm_90/e4m3/quantise.inl.cuh" %}
{% include "sparse_mla_prefill/sm_90/e4m3/weights.inl.cuh" %}
{% include "mla_decode_attention/sm_90/e4m3_store.inl.cuh" %}
{% if HEADS == 64 -%}
{% include "sparse_mla_prefill/sm_90/e4m3/wide.inl.cuh" %}
{%- else -%}
{% include "sparse_mla_prefill/sm_90/e4m3/few.inl.cuh" %}
{%- endif %}
{% include "mla_decode_attention/sm_90/e4m3_multiply.inl.cuh" %}

__device__ __forceinline__ void attend(Memory& memory, const Plan& plan, const Outputs& outputs,
                                       uint32_t scale_log2e, const TensorMap& q_map) {
    const Softmax softmax(scale_log2e, false);
    const Queries queries{nullptr, outputs.heads};
    const uint32_t role = threadIdx.x / 128;
    if (role == EVEN) {
        ptx::increase_registers<EVEN_REGISTERS>();
        multiply<EVEN>(memory.tiles, Work{memory}, queries, softmax, outputs);
    } else if (role == ODD) {
        ptx::increase_registers<ODD_REGISTERS>();
        multiply<ODD>(memory.tiles, Work{memory}, queries, softmax, outputs);
    } else {
        ptx::decrease_registers<GATHER_REGISTERS>();
        gather(memory, plan, outputs, q_map);
    }
}
