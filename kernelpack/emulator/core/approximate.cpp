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
  double operator()(double a) const { return std::log2(a); }
};

struct BinaryPower {
  double operator()(double a) const { return std::exp2(a); }
};

struct HyperbolicTangent {
  double operator()(double a) const { return std::tanh(a); }
};

template <bool FTZ>
float rounded(double value) {
  const float single = one_nan(static_cast<float>(value));
  return FTZ ? flush(single) : single;
}

// The nearest f32, and whether each f64 close by has the same.
template <bool FTZ>
float nearest(double value, bool& is_certain) {
  const float found = rounded<FTZ>(value);
  const auto bits = bits_as<int64_t>(value);
  const int64_t magnitude = bits & INT64_MAX;
  if (magnitude == 0 || magnitude >= 0x7ff0000000000000) return found;
  const int64_t below = magnitude > ULPS ? bits - ULPS : bits - magnitude;
  const bool same = rounded<FTZ>(bits_as<double>(below)) == found &&
                    rounded<FTZ>(bits_as<double>(bits + ULPS)) == found;
  is_certain = is_certain && same;
  return found;
}

template <typename F, bool FTZ>
void approximate(Warp& warp, const Instr& instr, Mask mask) {
  const Source<float> from(warp, slot_at(instr, 1));
  float room[WIDTH];
  bool is_certain = true;
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    const float source = FTZ ? flush(from[lane]) : from[lane];
    room[lane] = nearest<FTZ>(F()(source), is_certain);
  }
  if (!is_certain) doubt("an approximation whose rounding hangs on its last bits");
  put(warp, slot_at(instr, 0), room, mask);
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
