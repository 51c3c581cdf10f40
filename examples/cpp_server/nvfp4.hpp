// Grouped GEMM of bf16 tokens with NVFP4 weights:
// c[row, j] = expert_scales[e] * sum over x of a[row, x] * b[e, j, x] * scale of b's 16 around x.
// Rows without an expert are not written.
#pragma once

#include "request.hpp"

namespace server {

/// Experts' weights: two codes a byte, the first in the low bits; a scale for 16 of them.
struct Weights {
  std::int64_t e, n, k;
  std::vector<std::uint8_t> codes, scales;
  std::vector<float> expert_scales;

  Weights(Random& random, std::int64_t experts, std::int64_t columns, std::int64_t depth)
      : e(experts),
        n(columns),
        k(depth),
        codes(e * n * k / 2),
        scales(e * blocks() * atoms() * 512) {
    for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(random());
    for (std::int64_t expert = 0; expert < e; ++expert) {
      expert_scales.push_back(std::ldexp(1 + 0.125f * static_cast<float>(expert), -10));
      for (std::int64_t row = 0; row < n; ++row)
        for (std::int64_t block = 0; block < k / 16; ++block)
          scales[place(expert, row, block)] = static_cast<std::uint8_t>(random() % 0x7F);
    }
  }

  std::int64_t blocks() const { return (n + 127) / 128; }
  std::int64_t atoms() const { return (k + 63) / 64; }

  /// Scales lie in atoms of 128 rows and 4 blocks, as tensor memory wants them
  /// (PTX ISA 9.1, 9.7.16.10.7).
  std::int64_t place(std::int64_t expert, std::int64_t row, std::int64_t block) const {
    const std::int64_t atom = (expert * blocks() + row / 128) * atoms() + block / 4;
    return atom * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
  }

  std::vector<float> row(std::int64_t expert, std::int64_t column) const {
    std::vector<float> values(k);
    for (std::int64_t x = 0; x < k; ++x) {
      const unsigned pair = codes[((expert * n + column) * k + x) / 2];
      const float scale = from_e4m3(scales[place(expert, column, x / 16)]);
      values[x] = from_e2m1(x % 2 ? pair >> 4 : pair & 15) * scale;
    }
    return values;
  }
};

inline void multiply(Request& request, const Groups& groups, const std::vector<std::uint16_t>& a,
                     const Weights& weights) {
  for (std::size_t group = 0; group < groups.ids.size(); ++group) {
    const std::int64_t expert = groups.ids[group], k = weights.k;
    for (std::int64_t column = 0; expert >= 0 && column < weights.n; ++column) {
      const std::vector<float> right = weights.row(expert, column);
      for (std::int64_t row = groups.offsets[group]; row < groups.offsets[group + 1]; ++row) {
        double sum = 0, magnitude = 0;
        for (std::int64_t x = 0; x < k; ++x) {
          const double product = double{from_bf16(a[row * k + x])} * right[x];
          sum += product;
          magnitude += std::fabs(product);
        }
        const double scale = weights.expert_scales[expert];
        request.expected[row * weights.n + column] = sum * scale;
        request.magnitude[row * weights.n + column] = magnitude * scale;
      }
    }
  }
}

inline Request nvfp4_request(Random& random) {
  const Groups groups(random, static_cast<int>(random() % 5 + 1), 4, 20);
  const std::int64_t t = groups.rows(), n = pick(random, {72, 128, 256});
  const std::int64_t k = pick(random, {96, 512, 1024});
  const auto a = random_bf16(random, t * k, 1);
  const Weights weights(random, 4, n, k);
  Request request{"nvfp4_w4a16_grouped_gemm",
                  {{"t", t},
                   {"n", n},
                   {"k", k},
                   {"e", 4},
                   {"n_active", groups.ids.size()},
                   {"out_dtype", kBf16}},
                  {array("a", a), array("b", weights.codes), array("b_scales", weights.scales),
                   array("group_offsets", groups.offsets), array("expert_ids", groups.ids),
                   array("expert_scales", weights.expert_scales)},
                  std::vector<double>(t * n, NAN),
                  std::vector<double>(t * n)};
  multiply(request, groups, a, weights);
  return request;
}

}  // namespace server
