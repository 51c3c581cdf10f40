// FlashMLA's sparse prefill for sm_100a: `flashmla_sm100 HEADS TOKENS ROWS TOPK [check]`.
//
// HEADS is 64 or 128. Each token attends to TOPK random rows of 576 values out of ROWS.
#include "host.cuh"
#include "sm100/prefill/sparse/fwd/head128/phase1.cuh"
#include "sm100/prefill/sparse/fwd/head64/phase1.cuh"

using bf16 = cutlass::bfloat16_t;
constexpr int D_QK = 576, D_V = 512;
constexpr float LOG2_E = 1.4426950408889634f, SCALE = 1 / 24.f;  // 24 is the root of 576

struct Problem {
  int heads, tokens, rows, topk;
  std::vector<bf16> q, kv;
  std::vector<int> indices;

  size_t queries() const { return size_t(tokens) * heads * D_QK; }
  size_t outputs() const { return size_t(tokens) * heads * D_V; }

  void draw(bool values) {
    std::mt19937 engine(3);
    indices.resize(size_t(tokens) * topk);
    for (int& index : indices) index = int(engine() % unsigned(rows));
    if (!values) return;
    q = eighths<bf16>(queries(), 1);
    kv = eighths<bf16>(size_t(rows) * D_QK, 2);
  }

  SparseAttnFwdParams parameters(bool values) const {
    SparseAttnFwdParams p{};
    p.s_q = tokens, p.s_kv = rows, p.h_q = heads, p.h_kv = 1;
    p.d_qk = D_QK, p.d_v = D_V, p.topk = topk, p.num_sm = 148;
    p.sm_scale = SCALE, p.sm_scale_div_log2 = SCALE * LOG2_E;
    p.q = values ? put(q) : room<bf16>(queries());
    p.kv = values ? put(kv) : room<bf16>(size_t(rows) * D_QK);
    p.indices = put(indices);
    p.out = room<bf16>(outputs());
    p.max_logits = room<float>(size_t(tokens) * heads);
    p.lse = room<float>(size_t(tokens) * heads);
    p.stride_q_s_q = heads * D_QK, p.stride_q_h_q = D_QK;
    p.stride_kv_s_kv = p.stride_kv_h_kv = D_QK;
    p.stride_indices_s_q = p.stride_indices_h_kv = topk;
    return p;
  }

  // What one head of one token gives.
  std::vector<float> meant(int token, int head) const {
    const bf16* query = &q[(size_t(token) * heads + head) * D_QK];
    std::vector<float> sums(D_V);
    float total = 0;
    for (int i = 0; i < topk; ++i) {
      const bf16* row = &kv[size_t(indices[size_t(token) * topk + i]) * D_QK];
      float score = 0;
      for (int d = 0; d < D_QK; ++d) score += float(query[d]) * float(row[d]);
      const float weight = std::exp(score * SCALE);
      total += weight;
      for (int d = 0; d < D_V; ++d) sums[d] += weight * float(row[d]);
    }
    for (float& sum : sums) sum /= total;
    return sums;
  }

  int check(const bf16* out) const {
    const auto stored = get(out, outputs());
    std::vector<float> all;
    for (int token = 0; token < tokens; ++token)
      for (int head = 0; head < heads; ++head)
        for (float value : meant(token, head)) all.push_back(value);
    return compare(all, {stored.begin(), stored.end()}, 0.004f);
  }
};

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  Problem problem{std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4])};
  const bool checked = argc > 5;
  problem.draw(checked);
  const SparseAttnFwdParams parameters = problem.parameters(checked);
  if (problem.heads == 64)
    sm100::fwd::head64::run_fwd_phase1_kernel<D_QK>(parameters);
  else
    sm100::fwd::head128::run_fwd_phase1_kernel<D_QK>(parameters);
  ok(cudaGetLastError());
  ok(cudaDeviceSynchronize());
  return checked ? problem.check(parameters.out) : 0;
}
