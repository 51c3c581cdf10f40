// Sparse MLA prefill: every head of a token attends the rows of a paged cache that its indices
// choose. A row is 512 latent numbers, K and V at once, and 64 rope numbers of K.
#pragma once

#include <algorithm>
#include <limits>

#include "request.hpp"

namespace server {

constexpr std::int64_t kLatent = 512, kDepth = 576, kPage = 64;

/// The bits of a number, as kernels take fp32 scalars.
inline std::int64_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

/// What one head of one token must give: the weighted sum of the chosen rows' latents.
inline void attend(Request& request, const std::uint16_t* q, const std::vector<std::uint16_t>& kv,
                   const std::vector<std::int64_t>& rows, double scale) {
  std::vector<double> scores;
  for (const std::int64_t row : rows) {
    double score = 0;
    for (std::int64_t x = 0; x < kDepth; ++x)
      score += double{from_bf16(q[x])} * from_bf16(kv[row * kDepth + x]);
    scores.push_back(scale * score);
  }
  const double largest = rows.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - largest);
  for (std::int64_t x = 0; x < kLatent; ++x) {
    double sum = 0, magnitude = 0;
    for (std::size_t key = 0; key < rows.size(); ++key) {
      const double product = scores[key] / total * from_bf16(kv[rows[key] * kDepth + x]);
      sum += product;
      magnitude += std::fabs(product);
    }
    request.expected.push_back(sum);
    // Weights are rounded to bf16 before they are multiplied; `wrong` allows 2^-18 of this.
    request.magnitude.push_back(std::ldexp(magnitude, 18 - 8));
  }
}

/// Tokens of few heads over a cache of which a layer among several is theirs. Some entries are -1,
/// and each token has a length of its own.
inline Request mla_request(Random& random) {
  const std::int64_t t = static_cast<std::int64_t>(random() % 3 + 1), h = pick(random, {5, 16, 64}),
                     topk = pick(random, {37, 128, 300}), blocks = 6, layers = 2;
  const float scale = 1 / std::sqrt(192.0f);
  const auto q = random_bf16(random, t * h * kDepth, 1);
  const auto kv = random_bf16(random, blocks * layers * kPage * kDepth, 1);
  std::vector<std::int32_t> indices, lengths;
  for (std::int64_t entry = 0; entry < t * topk; ++entry)
    indices.push_back(static_cast<std::int32_t>(random() % (blocks * kPage + 20)) - 20);
  for (std::int64_t token = 0; token < t; ++token)
    lengths.push_back(static_cast<std::int32_t>(random() % (topk + 1)));
  Request request{
      "sparse_mla_prefill",
      {{"t", t},
       {"h", h},
       {"row_bytes", 2 * kDepth},
       {"q_bytes", 2},
       {"topk", topk},
       {"indices_stride", topk},
       {"page", kPage},
       {"blocks", blocks},
       {"block_stride", layers * kPage},
       {"q_token_stride", h * kDepth},
       {"q_head_stride", kDepth},
       {"scale_log2e", bits_of(scale * 1.44269504f)},
       {"dead_lse", bits_of(std::numeric_limits<float>::infinity())},
       {"has_lse", 0},
       {"has_max_logits", 0},
       {"has_lengths", 1},
       {"has_sink", 0},
       {"kv_scales", 0}},
      {array("q", q), array("kv", kv), array("indices", indices), array("topk_lengths", lengths)},
      {},
      {},
      "out",
      2};
  for (std::int64_t token = 0; token < t; ++token) {
    std::vector<std::int64_t> rows;  // of the first layer
    for (std::int64_t entry = 0; entry < lengths[token]; ++entry)
      if (const std::int32_t e = indices[token * topk + entry]; e >= 0)
        rows.push_back(e / kPage * layers * kPage + e % kPage);
    for (std::int64_t head = 0; head < h; ++head)
      attend(request, &q[(token * h + head) * kDepth], kv, rows, scale);
  }
  return request;
}

}  // namespace server
