// Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5; semantics/floating.py). Where a type is an
// integer the rows hand over to integer.cpp.
#include "floating.hpp"

#include "integer.hpp"
#include "rounding.hpp"

namespace kernelpack {

namespace {

Rounding mode_of(const Instr& instr) {
  return rounding_of(instr.form->one_of({"rn", "rz", "rm", "rp"}));
}

struct Plus {
  template <typename T>
  T operator()(T a, T b) const {
    return a + b;
  }
};

struct Minus {
  template <typename T>
  T operator()(T a, T b) const {
    return a - b;
  }
};

struct Times {
  template <typename T>
  T operator()(T a, T b) const {
    return a * b;
  }
};

struct Over {
  template <typename T>
  T operator()(T a, T b) const {
    return a / b;
  }
};

struct TimesPlus {
  template <typename T>
  T operator()(T a, T b, T c) const {
    return std::fma(a, b, c);
  }
};

struct PlusIn {
  Rounding mode;
  explicit PlusIn(const Instr& instr) : mode(mode_of(instr)) {}
  float operator()(float a, float b) const { return narrow(two_sum(a, b), mode); }
};

struct MinusIn {
  Rounding mode;
  explicit MinusIn(const Instr& instr) : mode(mode_of(instr)) {}
  float operator()(float a, float b) const { return narrow(two_sum(a, -b), mode); }
};

struct TimesIn {
  Rounding mode;
  explicit TimesIn(const Instr& instr) : mode(mode_of(instr)) {}
  float operator()(float a, float b) const { return narrow({double{a} * b, 0.0}, mode); }
};

struct TimesPlusIn {
  Rounding mode;
  explicit TimesPlusIn(const Instr& instr) : mode(mode_of(instr)) {}
  float operator()(float a, float b, float c) const {
    return narrow(two_sum(double{a} * b, c), mode);
  }
};

// Of values that came from 16 bits: rounded to odd, for one more rounding to them.
struct HalfTimesPlus {
  float operator()(float a, float b, float c) const {
    return to_odd_f32(two_sum(double{a} * b, c));
  }
};

// A sum or a product whose first operands have 16 bits, the last one 32.
template <typename F, typename Half>
struct Mixed {
  Finished<F> single;
  explicit Mixed(const Instr& instr) : single(instr) {}
  float operator()(uint16_t a, float c) const { return single(Half::decode(a), c); }
  float operator()(uint16_t a, uint16_t b, float c) const {
    return single(Half::decode(a), Half::decode(b), c);
  }
};

template <typename F>
bool prepare_mixed_sum(Instr& instr) {
  const auto& types = instr.form->types;
  if (types.size() != 2 || types[0] != "f32") return false;
  if (types[1] == "f16")
    return prepared(instr, 2, Seldom<Mixed<F, F16>, float, uint16_t, float>::run);
  return types[1] == "bf16" &&
         prepared(instr, 2, Seldom<Mixed<F, Bf16>, float, uint16_t, float>::run);
}

template <typename F>
bool prepare_mixed_product_sum(Instr& instr) {
  const auto& types = instr.form->types;
  if (types.size() != 2 || types[0] != "f32") return false;
  if (types[1] == "f16")
    return prepared(instr, 3, Seldom<Mixed<F, F16>, float, uint16_t, uint16_t, float>::run);
  return types[1] == "bf16" &&
         prepared(instr, 3, Seldom<Mixed<F, Bf16>, float, uint16_t, uint16_t, float>::run);
}

// Whether it names a part of a product, which only integers have.
bool has_part(const Instr& instr) { return has_any(*instr.form, {"lo", "hi", "wide"}); }

bool is_directed(const Instr& instr) { return mode_of(instr) != Rounding::NEAREST; }

// F for every type of a sum or a product.
template <typename F, size_t N>
bool prepare_arithmetic(Instr& instr) {
  return prepare_single<F, N, true>(instr) || prepare_finished<F, N>(instr) ||
         prepare_plain_pairs<F, N>(instr) || prepare_halves<F, N>(instr) ||
         prepare_double<F, N>(instr);
}

bool prepare_sum(Instr& instr) {
  const Form& form = *instr.form;
  if (form.types.size() > 1)
    return is_directed(instr) ? prepare_mixed_sum<PlusIn>(instr) : prepare_mixed_sum<Plus>(instr);
  if (is_integer(form.type())) return prepare_integer_sum(instr);
  return is_directed(instr) ? prepare_finished<PlusIn, 2>(instr)
                            : prepare_arithmetic<Plus, 2>(instr);
}

bool prepare_difference(Instr& instr) {
  const Form& form = *instr.form;
  if (form.types.size() > 1)
    return is_directed(instr) ? prepare_mixed_sum<MinusIn>(instr) : prepare_mixed_sum<Minus>(instr);
  if (is_integer(form.type())) return prepare_integer_difference(instr);
  return is_directed(instr) ? prepare_finished<MinusIn, 2>(instr)
                            : prepare_arithmetic<Minus, 2>(instr);
}

bool prepare_product(Instr& instr) {
  if (instr.form->types.size() != 1) return false;
  if (is_integer(instr.form->type())) return prepare_integer_product(instr);
  if (has_part(instr)) return false;
  return is_directed(instr) ? prepare_finished<TimesIn, 2>(instr)
                            : prepare_arithmetic<Times, 2>(instr);
}

bool prepare_fused(Instr& instr) {
  const Form& form = *instr.form;
  const bool directed = is_directed(instr);
  if (form.types.size() > 1)
    return directed ? prepare_mixed_product_sum<TimesPlusIn>(instr)
                    : prepare_mixed_product_sum<TimesPlus>(instr);
  if (directed) return prepare_finished<TimesPlusIn, 3>(instr);
  return prepare_single<TimesPlus, 3, true>(instr) || prepare_finished<TimesPlus, 3>(instr) ||
         prepare_plain_pairs<HalfTimesPlus, 3>(instr) || prepare_halves<HalfTimesPlus, 3>(instr) ||
         prepare_double<TimesPlus, 3>(instr);
}

bool prepare_product_sum(Instr& instr) {
  if (instr.form->types.size() != 1) return false;
  if (is_integer(instr.form->type())) return prepare_integer_product_sum(instr);
  return !has_part(instr) && prepare_fused(instr);
}

// `.approx` and `.full` are computed exactly too.
bool prepare_quotient(Instr& instr) {
  if (instr.form->types.size() != 1) return false;
  if (is_integer(instr.form->type())) return prepare_integer_quotient(instr);
  return !is_directed(instr) &&
         (prepare_single<Over, 2, true>(instr) || prepare_double<Over, 2>(instr));
}

struct Magnitude {
  float operator()(float a) const { return std::fabs(a); }
};

struct Negative {
  float operator()(float a) const { return -a; }
};

template <typename T>
struct IntegerMagnitude {
  T operator()(T a) const {
    const auto bits = static_cast<BitsOf<T>>(a);
    return static_cast<T>(a < 0 ? static_cast<BitsOf<T>>(0 - bits) : bits);
  }
};

template <typename T>
struct IntegerNegative {
  T operator()(T a) const { return static_cast<T>(BitsOf<T>{0} - static_cast<BitsOf<T>>(a)); }
};

constexpr uint64_t SIGN_64 = uint64_t{1} << 63;

struct DoubleMagnitude {
  uint64_t operator()(uint64_t a) const { return a & ~SIGN_64; }
};

// A NaN keeps its sign.
struct DoubleNegative {
  uint64_t operator()(uint64_t a) const {
    return (a & ~SIGN_64) > 0x7ffull << 52 ? a : a ^ SIGN_64;
  }
};

bool prepare_magnitude(Instr& instr) {
#define MAGNITUDE(T) Each<IntegerMagnitude<T>, T, T>::run
  const std::string& type = instr.form->type();
  if (type[0] == 's') return prepared(instr, 1, KERNELPACK_BY_INTEGER(type, MAGNITUDE));
  if (type == "f64") return prepared(instr, 1, Seldom<DoubleMagnitude, uint64_t, uint64_t>::run);
  return prepare_single<Magnitude, 1>(instr) || prepare_halves<Magnitude, 1>(instr);
#undef MAGNITUDE
}

bool prepare_negative(Instr& instr) {
#define NEGATIVE(T) Each<IntegerNegative<T>, T, T>::run
  const std::string& type = instr.form->type();
  if (type[0] == 's') return prepared(instr, 1, KERNELPACK_BY_INTEGER(type, NEGATIVE));
  if (type == "f64") return prepared(instr, 1, Seldom<DoubleNegative, uint64_t, uint64_t>::run);
  return prepare_single<Negative, 1>(instr) || prepare_halves<Negative, 1>(instr);
#undef NEGATIVE
}

// b with the sign of a.
template <typename T>
struct CopySign {
  T operator()(T a, T b) const {
    constexpr T SIGN = T{1} << (8 * sizeof(T) - 1);
    return (b & ~SIGN) | (a & SIGN);
  }
};

bool prepare_copy_sign(Instr& instr) {
  return prepared(instr, 2,
                  instr.form->type() == "f32"
                      ? Seldom<CopySign<uint32_t>, uint32_t, uint32_t, uint32_t>::run
                      : Seldom<CopySign<uint64_t>, uint64_t, uint64_t, uint64_t>::run);
}

struct HasProperty {
  bool finite, infinite, number, normal, subnormal;
  explicit HasProperty(const Instr& instr)
      : finite(instr.form->has("finite")),
        infinite(instr.form->has("infinite")),
        number(instr.form->has("number")),
        normal(instr.form->has("normal")),
        subnormal(instr.form->has("subnormal")) {}
  template <typename T>
  bool operator()(T a) const {
    if (finite) return std::isfinite(a);
    if (infinite) return std::isinf(a);
    if (number) return !std::isnan(a);
    if (normal) return std::isnormal(a) || a == 0;
    if (subnormal) return std::fpclassify(a) == FP_SUBNORMAL;
    return std::isnan(a);
  }
};

bool prepare_property(Instr& instr) {
  if (instr.form->flags.size() != 1) return false;
  return prepared(instr, 1,
                  instr.form->type() == "f32" ? Seldom<HasProperty, Bit, float>::run
                                              : Seldom<HasProperty, Bit, double>::run);
}

}  // namespace

ROW("add", prepare_sum);
ROW("sub", prepare_difference);
ROW("mul", prepare_product);
ROW("mad", prepare_product_sum);
ROW("fma", prepare_fused);
ROW("div", prepare_quotient);
ROW("abs", prepare_magnitude);
ROW("neg", prepare_negative);
ROW("copysign", prepare_copy_sign);
ROW("testp", prepare_property);

}  // namespace kernelpack
