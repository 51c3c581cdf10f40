{% include "mla_decode_attention/sm_90/work.inl.cuh" %}
{% include "mla_decode_attention/sm_90/outputs.inl.cuh" %}
{% include "sparse_mla_prefill/sm_90/entries.inl.cuh" %}
{% include "mla_decode_attention/sm_90/ahead.inl.cuh" %}
{% if WIDENS %}{% include "sparse_mla_prefill/sm_90/widen.inl.cuh" %}
{% include "mla_decode_attention/sm_90/gather_scaled.inl.cuh" %}
{% else %}{% include "sparse_mla_prefill/sm_90/copies.inl.cuh" %}
{% if FP8 %}{% include "sparse_mla_prefill/sm_90/e4m3/fill.inl.cuh" %}
{% else %}{% include "sparse_mla_prefill/sm_90/fill.inl.cuh" %}
{% endif %}{% include "mla_decode_attention/sm_90/gather.inl.cuh" %}
{% endif %}