// Functions that hardware approximates (PTX ISA 9.7.3.13 to 9.7.3.22; semantics/approximate.py).
//
// Python takes the nearest f32 of what numpy computes in f64. The last bits of that f64 are its
// own; where they decide which f32 is nearest, the core doubts.
#include "floating.hpp"

namespace kernelpack {

namespace {

constexpr int64_t ULPS = 6;  // by which numpy's f64 and ours may differ

struct Reciprocal {
  template <typename T>
  T operator()(T a) const {
    return T{1} / a;
  }
};

struct SquareRoot {
  template <typename T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};

struct ReciprocalRoot {
  template <typename T>
  T operator()(T a) const {
    return static_cast<T>(1.0 / std::sqrt(static_cast<double>(a)));
  }
};

struct BinaryLogarithm {
  static constexpr bool IS_VECTOR = false;
  double operator()(double a) const { return std::log2(a); }
};

struct HyperbolicTangent {
  static constexpr bool IS_VECTOR = false;
  double operator()(double a) const { return std::tanh(a); }
};

// 2^a for any f32, without branches, to within 2 ulp: softmax is made of it. 2^n comes from the
// exponent's bits, and 2^r of the rest, at most 1/2, from Taylor's series in r ln 2.
struct BinaryPower {
  static constexpr bool IS_VECTOR = true;
  static constexpr double MOST = 1000;  // far beyond what f32 holds, well within f64
  double operator()(double a) const {
    const double bounded = a < -MOST ? -MOST : a > MOST ? MOST : a;
    const double whole = std::nearbyint(bounded);
    const double x = (bounded - whole) * 0.693147180559945309417;
    double sum = 1.0 / 6227020800.0;  // 1 / 13!
    for (double over : OVER_FACTORIALS) sum = sum * x + over;
    const double scale = bits_as<double>((static_cast<int64_t>(whole) + 1023) << 52);
    return a != a ? a : sum * scale;
  }
  static constexpr double OVER_FACTORIALS[] = {1.0 / 479001600.0,
                                               1.0 / 39916800.0,
                                               1.0 / 3628800.0,
                                               1.0 / 362880.0,
                                               1.0 / 40320.0,
                                               1.0 / 5040.0,
                                               1.0 / 720.0,
                                               1.0 / 120.0,
                                               1.0 / 24.0,
                                               1.0 / 6.0,
                                               1.0 / 2.0,
                                               1.0,
                                               1.0};
};

template <bool FTZ>
float rounded(double value) {
  const float single = one_nan(static_cast<float>(value));
  return FTZ ? flush(single) : single;
}

// Whether the f64 close by have the same nearest f32.
template <bool FTZ>
bool is_certain(double value, float found) {
  const auto bits = bits_as<int64_t>(value);
  const int64_t magnitude = bits & INT64_MAX;
  const bool is_number = magnitude > ULPS && magnitude < 0x7ff0000000000000;
  const float below = rounded<FTZ>(bits_as<double>(bits - ULPS));
  const float above = rounded<FTZ>(bits_as<double>(bits + ULPS));
  return !is_number || (bits_as<uint32_t>(below) == bits_as<uint32_t>(found) &&
                        bits_as<uint32_t>(above) == bits_as<uint32_t>(found));
}

template <typename F, bool FTZ>
void approximate(Warp& warp, const Instr& instr, Mask mask) {
  const Source<float> from(warp, slot_at(instr, 1));
  float results[WIDTH];
  Mask certain = 0;
  const auto one = [&](int lane) {
    const double value = F()(FTZ ? flush(from[lane]) : from[lane]);
    results[lane] = rounded<FTZ>(value);
    certain |= static_cast<Mask>(is_certain<FTZ>(value, results[lane])) << lane;
  };
  if (F::IS_VECTOR && __builtin_popcount(mask) > FEW) {
    for (int lane = 0; lane < WIDTH; ++lane) one(lane);
  } else {
    for (Mask left = mask; left; left &= left - 1) one(first_lane(left));
  }
  if (mask & ~certain) doubt("an approximation whose rounding hangs on its last bits");
  put(warp, slot_at(instr, 0), results, mask);
}

bool is_directed(const Form& form) { return has_any(form, {"rz", "rm", "rp"}); }

template <typename F>
bool prepare_exact(Instr& instr) {
  return !is_directed(*instr.form) && (prepare_single<F, 1>(instr) || prepare_double<F, 1>(instr));
}

template <typename F>
bool prepare_approximate(Instr& instr) {
  const Form& form = *instr.form;
  if (is_directed(form) || form.type() != "f32") return false;
  return prepared(instr, 1, form.has("ftz") ? approximate<F, true> : approximate<F, false>);
}

}  // namespace

ROW("rcp", prepare_exact<Reciprocal>);
ROW("sqrt", prepare_exact<SquareRoot>);
ROW("rsqrt", prepare_exact<ReciprocalRoot>);
ROW("lg2", prepare_approximate<BinaryLogarithm>);
ROW("ex2", prepare_approximate<BinaryPower>);
ROW("tanh", prepare_approximate<HyperbolicTangent>);

}  // namespace kernelpack
