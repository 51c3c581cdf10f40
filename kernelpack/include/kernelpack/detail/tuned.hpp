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

/// The device of some times: its name, capability and number of SMs.
struct TunedDevice {
  std::string name;
  Capability capability;
  std::int64_t sm_count;

  std::string text() const {
    return name + " (compute capability " + capability.text() + ", " + decimal(sm_count) +
           " multiprocessors)";
  }
};

/// A problem that was measured; nanoseconds are in the order of the kernel's variants, 0 if not
/// measured.
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

constexpr std::int64_t kNear = 256 / 2;  // half an octave
constexpr int kClear = 32;

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

/// Where a measured problem lies: how far, and whether no size of it is larger, or smaller.
struct Place {
  std::int64_t apart;
  bool is_below, is_above;
};

/// Where a measured problem lies from one of some sizes; none where it is not near.
inline std::optional<Place> place_of(const Sizes& sizes, const Measured& measured) {
  Place place{0, true, true};
  for (const auto& [name, value] : measured.sizes) {
    std::int64_t here = 0;
    for (const auto& [known, size] : sizes)
      if (known == name) here = size;
    if (here == value) continue;
    if (here <= 0 || value <= 0) return {};
    const std::int64_t far = log2_256(here) - log2_256(value);
    if (far > kNear || far < -kNear) return {};
    place.apart += far < 0 ? -far : far;
    place.is_below &= value < here;
    place.is_above &= value > here;
  }
  return place;
}

/// The variant of the least time among those that serve, of equals the first by id; null where none
/// has a time.
inline const Variant* fastest(const TunedKernel& kernel, const Measured& problem,
                              const std::vector<const Variant*>& serving) {
  const Variant* best = nullptr;
  std::int64_t least = 0;
  for (const Variant* variant : serving) {
    const std::int64_t time = kernel.time(problem, variant->id);
    if (!time) continue;
    if (best && (least < time || (least == time && best->id <= variant->id))) continue;
    best = variant;
    least = time;
  }
  return best;
}

/// What is clearly the fastest in two problems; `usual` where nothing is.
inline const Variant* agreed(const TunedKernel& kernel, const Measured& below,
                             const Measured& above, const std::vector<const Variant*>& serving,
                             const Variant* usual) {
  const Variant* best = fastest(kernel, below, serving);
  for (const Measured* problem : {&below, &above}) {
    const Variant* here = fastest(kernel, *problem, serving);
    const UnsignedWide time = kernel.time(*problem, here->id),
                       usual_time = kernel.time(*problem, usual->id);
    if (here != best || time * (kClear + 1) > usual_time * kClear) return usual;
  }
  return best;
}

/// The variant to take among those that serve: where a problem was measured the fastest, between
/// two that were what both agree on; else `usual`, what the manifest's costs choose.
inline const Variant* chosen(const TunedKernel& kernel, const Sizes& sizes,
                             const std::vector<const Variant*>& serving, const Variant* usual) {
  const Measured *below = nullptr, *above = nullptr;
  std::int64_t far_below = 0, far_above = 0;
  for (const Measured& problem : kernel.problems) {
    const auto place = place_of(sizes, problem);
    const Variant* best = place ? fastest(kernel, problem, serving) : nullptr;
    if (!best) continue;
    if (place->is_below && place->is_above) return best;
    if (!kernel.time(problem, usual->id)) continue;
    if (place->is_below && (!below || place->apart < far_below)) {
      below = &problem;
      far_below = place->apart;
    }
    if (place->is_above && (!above || place->apart < far_above)) {
      above = &problem;
      far_above = place->apart;
    }
  }
  return below && above ? agreed(kernel, *below, *above, serving, usual) : usual;
}

}  // namespace kernelpack::detail
