// What numbers have in common: their exponents, which say whether sums of products are exact; the
// NaNs among them.
#pragma once

#include "vectors.hpp"

namespace kernelpack {

// The exponents of finite numbers, without zeros; `fraction` as `fraction_bits`.
struct Range {
  int least = 0x7ff, most = 0;
  int fraction = 0;
  bool finite = true;

  void add(const double* values, size_t count) {
    // Zero is left out of `low`, what is not finite of both.
    Bits low = Bits{} + MAGNITUDE, high = {}, others = {};
    each_bits(values, count, [&](Bits raw) {
      const Bits bits = raw & MAGNITUDE, other = bits >= INFINITE_BITS;
      others |= other;
      high = most_of(high, bits & ~other);
      low = least_of(low, ((bits - 1) | other) & MAGNITUDE);
    });
    finite = finite && !least_of(others);
    const int64_t largest = most_of(high);
    if (largest == 0) return;
    most = std::max(most, static_cast<int>(largest >> 52));
    least = std::min(least, std::max(static_cast<int>((least_of(low) + 1) >> 52), 1));
  }
  bool is_empty() const { return least > most; }
};

// Whether sums of k products are exact in double in any order: every partial sum is a multiple of
// the least product's last bit, and smaller than 53 of them.
inline bool sums_are_exact(const Range& a, const Range& b, int k) {
  if (a.is_empty() || b.is_empty()) return true;
  const int carries = 32 - __builtin_clz(static_cast<unsigned>(k - 1) | 1);
  const int top = a.most + b.most + 2 + carries;
  return top - (a.least - a.fraction + b.least - b.fraction) <= 53;
}

// Whether all NaNs that a product can have are the same one, so that the order of additions does
// not choose between them: those of its operands, and the one that infinities make.
class OneNan {
public:
  void look(const double* values, size_t count) {
    constexpr int64_t MADE = static_cast<int64_t>(0xfff8000000000000ull);
    Bits least = Bits{} + INT64_MAX, most = Bits{} + INT64_MIN;
    each_bits(values, count, [&](Bits bits) {
      const Bits plain = bits & MAGNITUDE;
      const Bits nan = plain > INFINITE_BITS ? bits : Bits{} + MADE;
      const Bits is_any = plain >= INFINITE_BITS;
      least = least_of(least, is_any ? nan : Bits{} + INT64_MAX);
      most = most_of(most, is_any ? nan : Bits{} + INT64_MIN);
    });
    least_ = std::min(least_, least_of(least));
    most_ = std::max(most_, most_of(most));
  }
  bool is_one() const { return least_ >= most_; }

private:
  int64_t least_ = INT64_MAX, most_ = INT64_MIN;
};

}  // namespace kernelpack
