// Grouped GEMMs with NVFP4 weights, of bf16 or of NVFP4 tokens:
// c[row, j] = expert_scales[e] * sum over x of a[row, x] * b[e, j, x], where 16 numbers of NVFP4
// along x share a scale. Rows without an expert are not written.
#pragma once

#include "request.hpp"

namespace server {

/// Matrices of NVFP4: two codes a byte, the first in the low bits; a scale for 16 of them.
///
/// Scales lie in atoms of 128 rows and 4 blocks, as tensor memory wants them
/// (PTX ISA 9.1, 9.7.16.10.7); `scale_rows` counts their rows, as a multiple of 128.
struct Nvfp4 {
  std::int64_t k, scale_rows;
  std::vector<std::uint8_t> codes, scales;

  Nvfp4(Random& random, std::int64_t rows, std::int64_t depth, std::int64_t rows_of_scales)
      : k(depth),
        scale_rows(rows_of_scales),
        codes(rows * k / 2),
        scales(scale_rows * atoms() * 4) {
    for (std::uint8_t& code : codes) code = static_cast<std::uint8_t>(random());
    for (std::int64_t row = 0; row < scale_rows; ++row)
      for (std::int64_t block = 0; block < k / 16; ++block)
        scales[place(row, block)] = static_cast<std::uint8_t>(random() % 0x7F);
  }

  std::int64_t atoms() const { return (k + 63) / 64; }

  std::int64_t place(std::int64_t row, std::int64_t block) const {
    const std::int64_t atom = row / 128 * atoms() + block / 4;
    return atom * 512 + row % 32 * 16 + row % 128 / 32 * 4 + block % 4;
  }

  /// The numbers of a row whose scales lie at `scale_row`.
  std::vector<float> row(std::int64_t row, std::int64_t scale_row) const {
    std::vector<float> values(k);
    for (std::int64_t x = 0; x < k; ++x) {
      const unsigned pair = codes[(row * k + x) / 2];
      const float scale = from_e4m3(scales[place(scale_row, x / 16)]);
      values[x] = from_e2m1(x % 2 ? pair >> 4 : pair & 15) * scale;
    }
    return values;
  }
};

constexpr std::int64_t rounded_up(std::int64_t rows) { return (rows + 127) / 128 * 128; }

/// Experts' weights.
struct Weights {
  std::int64_t e, n;
  Nvfp4 numbers;
  std::vector<float> expert_scales;

  Weights(Random& random, std::int64_t experts, std::int64_t columns, std::int64_t depth)
      : e(experts), n(columns), numbers(random, e * n, depth, e * rounded_up(n)) {
    for (std::int64_t expert = 0; expert < e; ++expert)
      expert_scales.push_back(std::ldexp(1 + 0.125f * static_cast<float>(expert), -10));
  }

  std::vector<float> row(std::int64_t expert, std::int64_t column) const {
    return numbers.row(expert * n + column, expert * rounded_up(n) + column);
  }
};

using Rows = std::vector<std::vector<float>>;

/// What must come back for tokens whose numbers are known.
inline void multiply(Request& request, const Groups& groups, const Rows& tokens,
                     const Weights& weights) {
  request.expected.assign(tokens.size() * weights.n, NAN);
  request.magnitude.assign(tokens.size() * weights.n, 0);
  for (std::size_t group = 0; group < groups.ids.size(); ++group) {
    const std::int64_t expert = groups.ids[group];
    for (std::int64_t column = 0; expert >= 0 && column < weights.n; ++column) {
      const std::vector<float> right = weights.row(expert, column);
      for (std::int64_t row = groups.offsets[group]; row < groups.offsets[group + 1]; ++row) {
        double sum = 0, magnitude = 0;
        for (std::size_t x = 0; x < right.size(); ++x) {
          const double product = double{tokens[row][x]} * right[x];
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

/// What requests of both kinds send.
inline Request gemm_request(const char* kernel, const Groups& groups, const Weights& weights) {
  return {kernel,
          {{"t", groups.rows()},
           {"n", weights.n},
           {"k", weights.numbers.k},
           {"e", weights.e},
           {"n_active", groups.ids.size()},
           {"choose_for", 0},
           {"out_dtype", kBf16}},
          {array("b", weights.numbers.codes), array("b_scales", weights.numbers.scales),
           array("group_offsets", groups.offsets), array("expert_ids", groups.ids),
           array("expert_scales", weights.expert_scales)},
          {},
          {},
          "c",
          2};
}

/// Tokens of bf16: W4A16.
inline Request w4a16_request(Random& random) {
  const Groups groups(random, static_cast<int>(random() % 5 + 1), 4, 20);
  const std::int64_t n = pick(random, {72, 128, 256}), k = pick(random, {96, 512, 1024});
  const auto a = random_bf16(random, groups.rows() * k, 1);
  const Weights weights(random, 4, n, k);
  Request request = gemm_request("nvfp4_w4a16_grouped_gemm", groups, weights);
  request.inputs.push_back(array("a", a));
  Rows tokens(groups.rows());
  for (std::size_t at = 0; at < a.size(); ++at) tokens[at / k].push_back(from_bf16(a[at]));
  multiply(request, groups, tokens, weights);
  return request;
}

/// Tokens of NVFP4: W4A4. Each group's scales begin a fresh block of 128 rows.
inline Request w4a4_request(Random& random) {
  const Groups groups(random, static_cast<int>(random() % 5 + 1), 4, 150);
  const std::int64_t n = pick(random, {72, 128, 256}), k = pick(random, {96, 512, 1024});
  std::vector<std::uint32_t> scale_offsets;
  std::vector<std::int64_t> scale_rows;  // of each token row
  std::int64_t next = 0;
  for (std::size_t group = 0; group < groups.ids.size(); ++group) {
    const std::uint32_t first = groups.offsets[group], count = groups.offsets[group + 1] - first;
    scale_offsets.push_back(static_cast<std::uint32_t>(next / 128) - first / 128);
    for (std::uint32_t row = 0; row < count; ++row) scale_rows.push_back(next + row);
    next += rounded_up(count);
  }
  const Nvfp4 a(random, groups.rows(), k, next);
  const Weights weights(random, 4, n, k);
  Request request = gemm_request("nvfp4_grouped_gemm", groups, weights);
  request.sizes.emplace_back("scale_blocks", next / 128);
  request.inputs.push_back(array("a", a.codes));
  request.inputs.push_back(array("a_scales", a.scales));
  request.inputs.push_back(array("group_scale_offsets", scale_offsets));
  Rows tokens;
  for (const std::int64_t scale_row : scale_rows)
    tokens.push_back(a.row(static_cast<std::int64_t>(tokens.size()), scale_row));
  multiply(request, groups, tokens, weights);
  return request;
}

}  // namespace server
