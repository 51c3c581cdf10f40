// FlashMLA's dense decoding of bf16 rows on Hopper, launched by its own launchers, on zeros.
//   flashmla_dense BATCH HEADS KEYS POOL
// Three launches: the plan of splits, which servers make once a step, attention, and the combine.
// A sequence has one new token and KEYS keys, which end with it; its pages of 64 rows are scattered
// over a pool of 2^n rows.
#include <params.h>
#include <sm90/decode/dense/splitkv_mla.h>
#include <smxx/decode/combine/combine.h>
#include <smxx/decode/get_decoding_sched_meta/get_decoding_sched_meta.h>

#include <algorithm>

#include "flashmla.cuh"

using cutlass::bfloat16_t;

constexpr int PAGE = 64, LATENT = 512, DEPTH = 576;
constexpr int BLOCK = 64, OVERHEAD_BLOCKS = 5;  // of a split, as the interface has them

static DenseAttnDecodeParams attention(int b, int h, int keys, int pool, int parts) {
  const int pages = (keys + PAGE - 1) / PAGE;
  const float scale = 0.07216878f;  // 192^-0.5
  DenseAttnDecodeParams params{};
  params.b = b, params.s_q = 1, params.q_seq_per_hk = h, params.d = DEPTH, params.d_v = LATENT;
  params.h_q = h, params.h_k = 1, params.num_blocks = pool / PAGE, params.q_head_per_hk = h;
  params.is_causal = true;
  params.scale_softmax = scale, params.scale_softmax_log2 = scale * 1.44269504f;
  params.q_ptr = zeros<bfloat16_t>(size_t(b) * h * DEPTH);
  params.k_ptr = zeros<bfloat16_t>(size_t(pool) * DEPTH);
  params.o_ptr = zeros<bfloat16_t>(size_t(b) * h * LATENT);
  params.softmax_lse_ptr = zeros<float>(size_t(b) * h);
  params.q_batch_stride = h * DEPTH, params.q_row_stride = params.q_head_stride = DEPTH;
  params.k_batch_stride = PAGE * DEPTH, params.k_row_stride = params.k_head_stride = DEPTH;
  params.o_batch_stride = params.o_head_stride = h * LATENT, params.o_row_stride = LATENT;
  params.block_table = scattered(b, pages, pool / PAGE), params.block_table_batch_stride = pages;
  params.page_block_size = PAGE;
  params.seqlens_k_ptr = copied(std::vector<int>(b, keys));
  params.tile_scheduler_metadata_ptr = zeros<DecodingSchedMeta>(parts);
  params.num_sm_parts = parts, params.num_splits_ptr = zeros<int>(b + 1);
  params.total_num_splits = b + parts;
  params.softmax_lseaccum_ptr = zeros<float>(size_t(b + parts) * h);
  params.oaccum_ptr = zeros<float>(size_t(b + parts) * h * LATENT);
  return params;
}

static void plan(const DenseAttnDecodeParams& of) {
  GetDecodeSchedMetaParams params{};
  params.b = of.b, params.s_q = 1, params.block_size_n = BLOCK;
  params.fixed_overhead_num_blocks = OVERHEAD_BLOCKS;
  params.topk = params.extra_topk = -1;
  params.seqlens_k_ptr = of.seqlens_k_ptr;
  params.tile_scheduler_metadata_ptr = of.tile_scheduler_metadata_ptr;
  params.num_splits_ptr = of.num_splits_ptr;
  params.num_sm_parts = of.num_sm_parts;
  smxx::decode::run_get_decoding_sched_meta_kernel(params);
}

static void combine(const DenseAttnDecodeParams& of) {
  const int h = of.h_q;
  CombineParams params{};
  params.b = of.b, params.s_q = 1, params.h_q = h, params.d_v = LATENT;
  params.lse = of.softmax_lse_ptr, params.out = of.o_ptr;
  params.stride_lse_b = params.stride_lse_s_q = h;
  params.stride_o_b = params.stride_o_s_q = h * LATENT, params.stride_o_h_q = LATENT;
  params.lse_accum = of.softmax_lseaccum_ptr, params.o_accum = of.oaccum_ptr;
  params.stride_lse_accum_split = params.stride_lse_accum_s_q = h;
  params.stride_o_accum_split = params.stride_o_accum_s_q = h * LATENT;
  params.stride_o_accum_h_q = LATENT;
  params.tile_scheduler_metadata_ptr = of.tile_scheduler_metadata_ptr;
  params.num_splits_ptr = of.num_splits_ptr, params.num_sm_parts = of.num_sm_parts;
  smxx::decode::run_flash_mla_combine_kernel<bfloat16_t>(params);
}

int main(int argc, char** argv) {
  const int b = number(argc, argv, 1, 2), h = number(argc, argv, 2, 64);
  const int keys = number(argc, argv, 3, 192), pool = number(argc, argv, 4, 512);
  int multiprocessors;
  ok(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0));
  const int parts = std::max(multiprocessors / ((h + 63) / 64), 1);
  DenseAttnDecodeParams params = attention(b, h, keys, pool, parts);
  plan(params);
  sm90::run_flash_splitkv_mla_kernel<bfloat16_t>(params);
  combine(params);
  ok(cudaDeviceSynchronize());
}
