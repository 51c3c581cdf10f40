// Times that were measured on a device, and how a choice is made of them: spec/tuned.py's rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "variant.hpp"

namespace kernelpack::detail {

/// What times are of: devices that are called so, have this capability and so many SMs.
struct TunedDevice {
  std::string name;
  Capability capability;
  std::int64_t sm_count;

  std::string text() const {
    return name + " (compute capability " + capability.text() + ", " + decimal(sm_count) +
           " multiprocessors)";
  }
};

/// A problem that was measured; nanoseconds are in the order of the kernel's variants, 0 is none.
struct Measured {
  std::vector<std::pair<std::string, std::int64_t>> sizes;
  std::vector<std::int64_t> nanoseconds;
};

/// A kernel's times, and what was measured: the digest of each variant's machine code.
struct TunedKernel {
  std::string stem;
  std::vector<std::pair<std::string, std::string>> images;
  std::unordered_map<std::string, std::size_t> places;  // of ids, among the images
  std::vector<Measured> problems;

  /// The time of a variant on a problem; 0 where there is none.
  std::int64_t time(const Measured& problem, std::string_view id) const {
    const auto place = places.find(std::string(id));
    return place == places.end() ? 0 : problem.nanoseconds[place->second];
  }
};

struct Overlay {
  std::string path;
  TunedDevice device;
  std::vector<TunedKernel> kernels;

  const TunedKernel* find(std::string_view stem) const {
    for (const TunedKernel& kernel : kernels)
      if (kernel.stem == stem) return &kernel;
    return nullptr;
  }
};

constexpr std::int64_t kOctave = 256;

/// The logarithm to base two in 256ths, cut; of a number above 0.
inline std::int64_t log2_256(std::int64_t number) {
  const auto value = static_cast<std::uint64_t>(number);
  int exponent = 63;
  while (!(value >> exponent)) --exponent;
  std::uint64_t mantissa = exponent <= 31 ? value << (31 - exponent) : value >> (exponent - 31);
  std::int64_t result = exponent;
  for (int bits = 0; bits < 8; ++bits) {
    mantissa = mantissa * mantissa >> 31;
    const std::uint64_t bit = mantissa >> 32;
    result = 2 * result + static_cast<std::int64_t>(bit);
    mantissa >>= bit;
  }
  return result;
}

/// How far a problem is from a measured one; none where it is not near.
inline std::optional<std::int64_t> distance(const Sizes& sizes, const Measured& measured) {
  std::int64_t total = 0;
  for (const auto& [name, value] : measured.sizes) {
    std::int64_t here = 0;
    for (const auto& [known, size] : sizes)
      if (known == name) here = size;
    if (here == value) continue;
    if (here <= 0 || value <= 0) return {};
    const std::int64_t apart = log2_256(here) - log2_256(value);
    if (apart > kOctave || apart < -kOctave) return {};
    total += apart < 0 ? -apart : apart;
  }
  return total;
}

/// The nearest measured problem with a time of one of these variants; null where none is near.
inline const Measured* nearest_measured(const TunedKernel& kernel, const Sizes& sizes,
                                        const std::vector<const Variant*>& serving) {
  const Measured* best = nullptr;
  std::int64_t least = 0;
  for (const Measured& problem : kernel.problems) {
    const auto apart = distance(sizes, problem);
    if (!apart || (best && least <= *apart)) continue;
    bool has_time = false;
    for (const Variant* variant : serving) has_time |= kernel.time(problem, variant->id) > 0;
    if (!has_time) continue;
    best = &problem;
    least = *apart;
  }
  return best;
}

/// The variant of least time near a problem, of equal times the first by id; null where the
/// manifests' costs are to choose.
inline const Variant* fastest(const TunedKernel& kernel, const Sizes& sizes,
                              const std::vector<const Variant*>& serving) {
  const Measured* problem = nearest_measured(kernel, sizes, serving);
  const Variant* best = nullptr;
  std::int64_t least = 0;
  for (const Variant* variant : serving) {
    const std::int64_t time = problem ? kernel.time(*problem, variant->id) : 0;
    if (!time) continue;
    if (best && (least < time || (least == time && best->id <= variant->id))) continue;
    best = variant;
    least = time;
  }
  return best;
}

}  // namespace kernelpack::detail
