// A request to serve: the problem, what is sent, and what must come back.
#pragma once

#include <cmath>
#include <cstdint>
#include <kernelpack/loader.hpp>
#include <random>
#include <string>
#include <vector>

#include "numbers.hpp"

namespace server {

constexpr std::int64_t kBf16 = static_cast<std::int64_t>(kernelpack::DType::kBf16);

/// An argument in host memory.
struct Array {
  const char* name;
  std::vector<std::uint8_t> bytes;
};

template <class Number>
Array array(const char* name, const std::vector<Number>& numbers) {
  Array made{name, std::vector<std::uint8_t>(numbers.size() * sizeof(Number))};
  if (!numbers.empty()) std::memcpy(made.bytes.data(), numbers.data(), made.bytes.size());
  return made;
}

struct Request {
  const char* kernel;
  kernelpack::Sizes sizes;
  std::vector<Array> inputs;
  std::vector<double> expected;   // of the output, bf16; NaN: not written
  std::vector<double> magnitude;  // the sum of the products' magnitudes
  const char* output = "c";
  std::uint32_t abi = 1;  // of the kernel, as its arguments above are
};

using Random = std::mt19937;

inline std::vector<std::uint16_t> random_bf16(Random& random, std::size_t count, float scale) {
  std::normal_distribution<float> normal(0, scale);
  std::vector<std::uint16_t> codes(count);
  for (std::uint16_t& code : codes) code = to_bf16(normal(random));
  return codes;
}

inline std::int64_t pick(Random& random, const std::vector<std::int64_t>& from) {
  return from[random() % from.size()];
}

/// Groups of token rows: the first row of each and the number of rows, and the adapter or expert
/// of each, or -1 for none.
struct Groups {
  std::vector<std::uint32_t> offsets{0};
  std::vector<std::int32_t> ids;

  Groups(Random& random, int count, int owners, int longest) {
    for (int group = 0; group < count; ++group) {
      offsets.push_back(offsets.back() + random() % static_cast<unsigned>(longest + 1));
      ids.push_back(static_cast<std::int32_t>(random() % static_cast<unsigned>(owners + 1)) - 1);
    }
    if (!offsets.back()) ++offsets.back();
  }
  std::int64_t rows() const { return offsets.back(); }
};

/// How many elements of the output are further from what was expected than sums in fp32 and one
/// rounding explain.
inline std::size_t wrong(const Request& request, const std::vector<std::uint16_t>& c) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < c.size(); ++i) {
    const double value = request.expected[i];
    const double bound = std::ldexp(std::fabs(value), -8) + std::ldexp(request.magnitude[i], -18);
    count += !std::isnan(value) && !(std::fabs(from_bf16(c[i]) - value) <= bound);
  }
  return count;
}

}  // namespace server
