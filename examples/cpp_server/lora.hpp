// LoRA shrink: c[p, row, j] = sum over x of a[row, x] * b[adapter of row, p * n + j, x], in planes
// for Q, K and V; rows without an adapter are zero.
#pragma once

#include "request.hpp"

namespace server {

inline void shrink(Request& request, const Groups& groups, const std::vector<std::uint16_t>& a,
                   const std::vector<std::uint16_t>& b, std::int64_t n, std::int64_t k) {
  const std::int64_t m = groups.rows();
  for (std::size_t group = 0; group < groups.ids.size(); ++group) {
    if (groups.ids[group] < 0) continue;
    for (std::int64_t row = groups.offsets[group]; row < groups.offsets[group + 1]; ++row)
      for (std::int64_t flat = 0; flat < 3 * n; ++flat) {
        const std::uint16_t* left = &a[row * k];
        const std::uint16_t* right = &b[(groups.ids[group] * 3 * n + flat) * k];
        const std::size_t at = (flat / n * m + row) * n + flat % n;
        for (std::int64_t x = 0; x < k; ++x) {
          const double product = double{from_bf16(left[x])} * from_bf16(right[x]);
          request.expected[at] += product;
          request.magnitude[at] += std::fabs(product);
        }
      }
  }
}

inline Request lora_request(Random& random) {
  const int g = 4;
  const Groups groups(random, static_cast<int>(random() % 6 + 1), g, 24);
  const std::int64_t m = groups.rows(), n = pick(random, {8, 16, 64});
  const std::int64_t k = pick(random, {136, 1024, 4096});
  const auto a = random_bf16(random, m * k, 1);
  const auto b = random_bf16(random, g * 3 * n * k, 1 / std::sqrt(static_cast<float>(k)));
  Request request{"lora_shrink_qkv",
                  {{"m", m},
                   {"n", n},
                   {"k", k},
                   {"g", g},
                   {"n_active", groups.ids.size()},
                   {"choose_for", 0},
                   {"a_dtype", kBf16},
                   {"out_dtype", kBf16}},
                  {array("a", a), array("b", b), array("a_offsets", groups.offsets),
                   array("expert_ids", groups.ids)},
                  std::vector<double>(3 * m * n),
                  std::vector<double>(3 * m * n)};
  shrink(request, groups, a, b, n, k);
  request.abi = 2;
  return request;
}

}  // namespace server
