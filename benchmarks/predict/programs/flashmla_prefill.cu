// FlashMLA's sparse prefill on Hopper, launched by its own launcher, on zeros.
//   flashmla_prefill TOKENS HEADS TOPK POOL WIDTH
// Heads are a multiple of 64, the pool is 2^n rows, rows have 576 or 512 elements.
#include <sm90/prefill/sparse/phase1.cuh>

#include "flashmla.cuh"

using cutlass::bfloat16_t;

int main(int argc, char** argv) {
  const int t = number(argc, argv, 1, 2), h = number(argc, argv, 2, 64);
  const int topk = number(argc, argv, 3, 256), pool = number(argc, argv, 4, 512);
  const int d = number(argc, argv, 5, 576), latent = 512;
  int multiprocessors;
  ok(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  const float scale = 1 / sqrtf(d);

  SparseAttnFwdParams params{};
  params.s_q = t, params.s_kv = pool, params.h_q = h, params.h_kv = 1;
  params.d_qk = d, params.d_v = latent, params.topk = topk;
  params.sm_scale = scale, params.sm_scale_div_log2 = scale * 1.44269504f;
  params.q = zeros<bfloat16_t>(size_t(t) * h * d), params.kv = zeros<bfloat16_t>(size_t(pool) * d);
  params.indices = scattered(t, topk, pool);
  params.stride_q_s_q = h * d, params.stride_q_h_q = d;
  params.stride_kv_s_kv = params.stride_kv_h_kv = d;
  params.stride_indices_s_q = params.stride_indices_h_kv = topk;
  params.out = zeros<bfloat16_t>(size_t(t) * h * latent);
  params.max_logits = zeros<float>(size_t(t) * h), params.lse = zeros<float>(size_t(t) * h);
  params.num_sm = multiprocessors;

  if (d == 512)
    sm90::fwd::run_fwd_phase1_kernel<512, false>(params);
  else
    sm90::fwd::run_fwd_phase1_kernel<576, false>(params);
  ok(cudaDeviceSynchronize());
}
