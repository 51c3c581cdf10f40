// The end of an MLA decode step: outputs of attention, out of the latent space by W_UV, in fp8.
// out[t, h, v] = sum over x of x[t, h, x] * w[h, v, x]; 128 numbers of a token share a scale, and
// so do 128 by 128 of weights.
#pragma once

#include <algorithm>
#include <array>

#include "request.hpp"

namespace server {

constexpr std::int64_t kGroup = 128, kProjectedFrom = 512, kProjected = 128;

/// Numbers of a token that share a scale: as e4m3 codes would have them, and the scale.
struct TokenGroup {
  std::array<float, kGroup> values;
  float scale;

  explicit TokenGroup(const std::uint16_t* x) {
    float largest = 0;
    for (std::int64_t i = 0; i < kGroup; ++i)
      largest = std::max(largest, std::fabs(from_bf16(x[i])));
    scale = std::min(largest, 1200.0f) / 448.0f;
    const float inverse = scale > 0 ? 1 / scale : 0;
    for (std::int64_t i = 0; i < kGroup; ++i)
      values[i] = from_signed_e4m3(to_e4m3(from_bf16(x[i]) * inverse));
  }
};

/// Few tokens of few heads, as a step has them.
inline Request project_request(Random& random) {
  constexpr std::int64_t kGroups = kProjectedFrom / kGroup;
  const std::int64_t t = static_cast<std::int64_t>(random() % 20 + 1), h = pick(random, {1, 3, 16});
  const auto x = random_bf16(random, t * h * kProjectedFrom, 1);
  std::vector<std::uint8_t> w(h * kProjected * kProjectedFrom);
  for (std::uint8_t& code : w) {
    const unsigned any = static_cast<unsigned>(random());
    code = static_cast<std::uint8_t>((any & 0x80) | (any & 0x7F) % 0x7F);
  }
  std::vector<float> scales(h * kGroups);
  for (float& scale : scales) scale = std::ldexp(1 + 0.001f * float(random() % 1000), -8);
  Request request{"mla_decode_project",
                  {{"t", t},
                   {"h", h},
                   {"x_token_stride", h * kProjectedFrom},
                   {"x_head_stride", kProjectedFrom}},
                  {array("x", x), array("w_uv", w), array("w_uv_scale", scales)},
                  {},
                  {},
                  "out"};
  for (std::int64_t row = 0; row < t * h; ++row) {
    std::vector<TokenGroup> groups;
    for (std::int64_t group = 0; group < kGroups; ++group)
      groups.emplace_back(&x[row * kProjectedFrom + group * kGroup]);
    for (std::int64_t v = 0; v < kProjected; ++v) {
      double sum = 0, magnitude = 0;
      for (std::int64_t i = 0; i < kProjectedFrom; ++i) {
        const TokenGroup& group = groups[i / kGroup];
        const double weight = from_signed_e4m3(w[(row % h * kProjected + v) * kProjectedFrom + i]);
        const double scale = double{group.scale} * scales[row % h * kGroups + i / kGroup];
        const double product = group.values[i % kGroup] * weight * scale;
        sum += product;
        magnitude += std::fabs(product);
      }
      request.expected.push_back(sum);
      request.magnitude.push_back(magnitude);
    }
  }
  return request;
}

}  // namespace server
