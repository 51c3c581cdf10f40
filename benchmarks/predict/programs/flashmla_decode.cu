// FlashMLA's sparse decoding of 656-byte rows on Hopper, launched by its own launchers, on zeros.
//   flashmla_decode TOKENS HEADS TOPK POOL
// Three launches: the plan of splits, which servers make once a step, attention, and the combine.
// Heads are 64 or 128, the pool is 2^n rows in pages of 64. A token is a sequence of its own.
#include <smxx/decode/combine/combine.h>
#include <smxx/decode/get_decoding_sched_meta/get_decoding_sched_meta.h>
#include <sm90/decode/sparse_fp8/splitkv_mla.cuh>

#include <algorithm>

#include "flashmla.cuh"

using cutlass::bfloat16_t;

constexpr int PAGE = 64, LATENT = 512, DEPTH = 576, ROW_BYTES = 656;
constexpr int BLOCK = 64, OVERHEAD_BLOCKS = 5;  // of a split, as the interface has them

static SparseAttnDecodeParams attention(int b, int h, int topk, int pool, int parts) {
  const float scale = 0.07216878f;  // 192^-0.5
  SparseAttnDecodeParams params{};
  params.b = b, params.s_q = 1, params.h_q = h, params.h_kv = 1;
  params.d_qk = DEPTH, params.d_v = LATENT, params.topk = topk;
  params.sm_scale = scale, params.sm_scale_div_log2 = scale * 1.44269504f;
  params.num_blocks = pool / PAGE, params.page_block_size = PAGE;
  params.model_type = ModelType::V32;
  params.q = zeros<bfloat16_t>(size_t(b) * h * DEPTH);
  params.kv = reinterpret_cast<bfloat16_t*>(zeros<char>(size_t(pool) * ROW_BYTES));
  params.indices = scattered(b, topk, pool);
  params.lse = zeros<float>(size_t(b) * h);
  params.out = zeros<bfloat16_t>(size_t(b) * h * LATENT);
  params.stride_q_b = params.stride_q_s_q = h * DEPTH, params.stride_q_h_q = DEPTH;
  params.stride_kv_block = PAGE * ROW_BYTES, params.stride_kv_row = ROW_BYTES;
  params.stride_indices_b = params.stride_indices_s_q = topk;
  params.stride_lse_b = params.stride_lse_s_q = h;
  params.stride_o_b = params.stride_o_s_q = h * LATENT, params.stride_o_h_q = LATENT;
  params.lse_accum = zeros<float>(size_t(b + parts) * h);
  params.o_accum = zeros<float>(size_t(b + parts) * h * LATENT);
  params.stride_lse_accum_split = params.stride_lse_accum_s_q = h;
  params.stride_o_accum_split = params.stride_o_accum_s_q = h * LATENT;
  params.stride_o_accum_h_q = LATENT;
  params.tile_scheduler_metadata_ptr = zeros<DecodingSchedMeta>(parts);
  params.num_splits_ptr = zeros<int>(b + 1);
  params.num_sm_parts = parts;
  return params;
}

static void plan(const SparseAttnDecodeParams& of) {
  GetDecodeSchedMetaParams params{};
  params.b = of.b, params.s_q = 1, params.block_size_n = BLOCK;
  params.fixed_overhead_num_blocks = OVERHEAD_BLOCKS;
  params.topk = of.topk;
  params.tile_scheduler_metadata_ptr = of.tile_scheduler_metadata_ptr;
  params.num_splits_ptr = of.num_splits_ptr;
  params.num_sm_parts = of.num_sm_parts;
  smxx::decode::run_get_decoding_sched_meta_kernel(params);
}

static void combine(const SparseAttnDecodeParams& of) {
  CombineParams params{};
  params.b = of.b, params.s_q = 1, params.h_q = of.h_q, params.d_v = LATENT;
  params.lse = of.lse, params.out = of.out;
  params.stride_lse_b = of.stride_lse_b, params.stride_lse_s_q = of.stride_lse_s_q;
  params.stride_o_b = of.stride_o_b, params.stride_o_s_q = of.stride_o_s_q;
  params.stride_o_h_q = of.stride_o_h_q;
  params.lse_accum = of.lse_accum, params.o_accum = of.o_accum;
  params.stride_lse_accum_split = of.stride_lse_accum_split;
  params.stride_lse_accum_s_q = of.stride_lse_accum_s_q;
  params.stride_o_accum_split = of.stride_o_accum_split;
  params.stride_o_accum_s_q = of.stride_o_accum_s_q;
  params.stride_o_accum_h_q = of.stride_o_accum_h_q;
  params.tile_scheduler_metadata_ptr = of.tile_scheduler_metadata_ptr;
  params.num_splits_ptr = of.num_splits_ptr, params.num_sm_parts = of.num_sm_parts;
  smxx::decode::run_flash_mla_combine_kernel<bfloat16_t>(params);
}

int main(int argc, char** argv) {
  const int b = number(argc, argv, 1, 1), h = number(argc, argv, 2, 64);
  const int topk = number(argc, argv, 3, 128), pool = number(argc, argv, 4, 512);
  int multiprocessors;
  ok(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  const int parts = std::max(multiprocessors / (h / 64), 1);
  const SparseAttnDecodeParams params = attention(b, h, topk, pool, parts);
  plan(params);
  if (h == 128)
    sm90::decode::sparse_fp8::run_flash_splitkv_mla_fp8_sparse_kernel<ModelType::V32, 128>(params);
  else
    sm90::decode::sparse_fp8::run_flash_splitkv_mla_fp8_sparse_kernel<ModelType::V32, 64>(params);
  combine(params);
  ok(cudaDeviceSynchronize());
}
