// Integer arithmetic (PTX ISA 9.7.1; semantics/integer.py).
#include "integer.hpp"

#include "each_lane.hpp"

namespace kernelpack {

namespace {

using Int128 = __int128;

// As wide as a product of T.
template <typename T>
struct TwiceOf;
template <>
struct TwiceOf<uint16_t> {
  using type = uint32_t;
};
template <>
struct TwiceOf<int16_t> {
  using type = int32_t;
};
template <>
struct TwiceOf<uint32_t> {
  using type = uint64_t;
};
template <>
struct TwiceOf<int32_t> {
  using type = int64_t;
};
template <>
struct TwiceOf<uint64_t> {
  using type = unsigned __int128;
};
template <>
struct TwiceOf<int64_t> {
  using type = Int128;
};
template <typename T>
using Twice = typename TwiceOf<T>::type;

// In which T's sums and products wrap around: no narrower than an int, whose overflow is undefined.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) < 4, uint32_t, BitsOf<T>>;

template <typename T>
T wrapped_product(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
}

template <typename T>
T wrapped_sum(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
}

template <typename T>
T wrapped_difference(T a, T b) {
  return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
}

template <typename T>
struct Sum {
  T operator()(T a, T b) const { return wrapped_sum(a, b); }
};

template <typename T>
struct Difference {
  T operator()(T a, T b) const { return wrapped_difference(a, b); }
};

int32_t clamped(int64_t value) {
  return static_cast<int32_t>(value < INT32_MIN   ? INT32_MIN
                              : value > INT32_MAX ? INT32_MAX
                                                  : value);
}

struct SaturatedSum {
  int32_t operator()(int32_t a, int32_t b) const { return clamped(int64_t{a} + b); }
};

struct SaturatedDifference {
  int32_t operator()(int32_t a, int32_t b) const { return clamped(int64_t{a} - b); }
};

template <typename T>
struct LowProduct {
  T operator()(T a, T b) const { return wrapped_product(a, b); }
};

template <typename T>
T high_half(T a, T b) {
  return static_cast<T>((static_cast<Twice<T>>(a) * static_cast<Twice<T>>(b)) >> (8 * sizeof(T)));
}

template <typename T>
struct HighProduct {
  T operator()(T a, T b) const { return high_half(a, b); }
};

template <typename T>
struct WideProduct {
  Twice<T> operator()(T a, T b) const {
    return static_cast<Twice<T>>(a) * static_cast<Twice<T>>(b);
  }
};

template <typename T>
struct LowProductSum {
  T operator()(T a, T b, T c) const { return wrapped_sum(wrapped_product(a, b), c); }
};

template <typename T>
struct HighProductSum {
  T operator()(T a, T b, T c) const { return wrapped_sum(high_half(a, b), c); }
};

template <typename T>
struct WideProductSum {
  Twice<T> operator()(T a, T b, Twice<T> c) const { return wrapped_sum(WideProduct<T>()(a, b), c); }
};

// Quotients of 32 bits are exact when divided as doubles and cut: a quotient that is no integer is
// further from one than a double's rounding. Division by zero gives all ones.
template <typename T>
T quotient(T a, T b) {
  if constexpr (sizeof(T) < 8) {
    const double divisor = b == 0 ? 1.0 : static_cast<double>(b);
    const auto whole = static_cast<int64_t>(static_cast<double>(a) / divisor);
    return b == 0 ? static_cast<T>(-1) : static_cast<T>(whole);
  } else {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return wrapped_difference(T{0}, a);
    return a / b;
  }
}

template <typename T>
struct Quotient {
  T operator()(T a, T b) const { return quotient(a, b); }
};

template <typename T>
struct Remainder {
  T operator()(T a, T b) const {
    const T rest = wrapped_difference(a, wrapped_product(quotient(a, b), b));
    return b == 0 ? static_cast<T>(-1) : rest;
  }
};

template <typename T>
struct DistanceSum {
  T operator()(T a, T b, T c) const {
    return wrapped_sum(c, a < b ? wrapped_difference(b, a) : wrapped_difference(a, b));
  }
};

// A part of the product of the operands' low 24 bits.
template <typename T, int SHIFT>
struct Product24 {
  static int64_t low(T a) {
    const uint32_t shifted = static_cast<uint32_t>(a) << 8;
    return static_cast<int64_t>(static_cast<T>(shifted) >> 8);
  }
  T operator()(T a, T b) const { return static_cast<T>((low(a) * low(b)) >> SHIFT); }
};

template <typename A, typename B>
struct ByteDot {
  int32_t operator()(uint32_t a, uint32_t b, int32_t c) const {
    int64_t total = c;
    for (int k = 0; k < 32; k += 8)
      total += int64_t{static_cast<A>(a >> k)} * static_cast<B>(b >> k);
    return static_cast<int32_t>(total);
  }
};

// Two halves of a, and the bytes of b from START on.
template <typename A, typename B, int START>
struct HalfDot {
  int32_t operator()(uint32_t a, uint32_t b, int32_t c) const {
    int64_t total = c;
    for (int k = 0; k < 2; ++k)
      total += int64_t{static_cast<A>(a >> 16 * k)} * static_cast<B>(b >> 8 * (START + k));
    return static_cast<int32_t>(total);
  }
};

}  // namespace

#define SUM(T) Each<Sum<T>, T, T, T>::run
#define DIFFERENCE(T) Each<Difference<T>, T, T, T>::run
#define LOW(T) Each<LowProduct<T>, T, T, T>::run
#define HIGH(T) Each<HighProduct<T>, T, T, T>::run
#define LOW_SUM(T) Each<LowProductSum<T>, T, T, T, T>::run
#define HIGH_SUM(T) Each<HighProductSum<T>, T, T, T, T>::run
#define QUOTIENT(T) Each<Quotient<T>, T, T, T>::run
#define REMAINDER(T) Each<Remainder<T>, T, T, T>::run
#define DISTANCE(T) Seldom<DistanceSum<T>, T, T, T, T>::run

// The rows add, sub, mul, mad and div hand over here where their type is an integer.
bool prepare_integer_sum(Instr& instr) {
  const Form& form = *instr.form;
  if (form.has("sat"))
    return form.type() == "s32" &&
           prepared(instr, 2, Seldom<SaturatedSum, int32_t, int32_t, int32_t>::run);
  return prepared(instr, 2, KERNELPACK_BY_WIDTH(width_of(form.type()), SUM));
}

bool prepare_integer_difference(Instr& instr) {
  const Form& form = *instr.form;
  if (form.has("sat"))
    return form.type() == "s32" &&
           prepared(instr, 2, Seldom<SaturatedDifference, int32_t, int32_t, int32_t>::run);
  return prepared(instr, 2, KERNELPACK_BY_WIDTH(width_of(form.type()), DIFFERENCE));
}

static Handler wide_product_of(const std::string& type) {
#define WIDE(T) Each<WideProduct<T>, Twice<T>, T, T>::run
  return type == "u32"   ? WIDE(uint32_t)
         : type == "s32" ? WIDE(int32_t)
         : type == "u16" ? WIDE(uint16_t)
         : type == "s16" ? WIDE(int16_t)
                         : Handler();
#undef WIDE
}

static Handler wide_product_sum_of(const std::string& type) {
#define WIDE(T) Each<WideProductSum<T>, Twice<T>, T, T, Twice<T>>::run
  return type == "u32"   ? WIDE(uint32_t)
         : type == "s32" ? WIDE(int32_t)
         : type == "u16" ? WIDE(uint16_t)
         : type == "s16" ? WIDE(int16_t)
                         : Handler();
#undef WIDE
}

bool prepare_integer_product(Instr& instr) {
  const Form& form = *instr.form;
  const std::string& type = form.type();
  if (form.has("wide")) return prepared(instr, 2, wide_product_of(type));
  if (form.has("hi")) return prepared(instr, 2, KERNELPACK_BY_INTEGER(type, HIGH));
  return prepared(instr, 2, KERNELPACK_BY_WIDTH(width_of(type), LOW));
}

bool prepare_integer_product_sum(Instr& instr) {
  const Form& form = *instr.form;
  const std::string& type = form.type();
  if (has_any(form, {"sat", "cc"})) return false;
  if (form.has("wide")) return prepared(instr, 3, wide_product_sum_of(type));
  if (form.has("hi")) return prepared(instr, 3, KERNELPACK_BY_INTEGER(type, HIGH_SUM));
  return prepared(instr, 3, KERNELPACK_BY_WIDTH(width_of(type), LOW_SUM));
}

bool prepare_integer_quotient(Instr& instr) {
  return prepared(instr, 2, KERNELPACK_BY_INTEGER(instr.form->type(), QUOTIENT));
}

static bool prepare_remainder(Instr& instr) {
  return prepared(instr, 2, KERNELPACK_BY_INTEGER(instr.form->type(), REMAINDER));
}

static bool prepare_distance(Instr& instr) {
  return prepared(instr, 3, KERNELPACK_BY_INTEGER(instr.form->type(), DISTANCE));
}

static bool prepare_product_24(Instr& instr) {
  const bool high = instr.form->has("hi");
  if (instr.form->type() == "u32")
    return prepared(instr, 2,
                    high ? Seldom<Product24<uint32_t, 16>, uint32_t, uint32_t, uint32_t>::run
                         : Seldom<Product24<uint32_t, 0>, uint32_t, uint32_t, uint32_t>::run);
  return prepared(instr, 2,
                  high ? Seldom<Product24<int32_t, 16>, int32_t, int32_t, int32_t>::run
                       : Seldom<Product24<int32_t, 0>, int32_t, int32_t, int32_t>::run);
}

template <template <typename, typename> class F, typename U, typename S>
static Handler dot_of(const Form& form) {
#define DOT(A, B) Seldom<F<A, B>, int32_t, uint32_t, uint32_t, int32_t>::run
  const bool a = form.types[0] == "s32", b = form.types[1] == "s32";
  return a ? (b ? DOT(S, int8_t) : DOT(S, uint8_t)) : (b ? DOT(U, int8_t) : DOT(U, uint8_t));
#undef DOT
}

template <typename A, typename B>
using LowHalfDot = HalfDot<A, B, 0>;
template <typename A, typename B>
using HighHalfDot = HalfDot<A, B, 2>;

static bool prepare_byte_dot(Instr& instr) {
  if (instr.form->types.size() != 2) return false;
  return prepared(instr, 3, dot_of<ByteDot, uint8_t, int8_t>(*instr.form));
}

static bool prepare_half_dot(Instr& instr) {
  const Form& form = *instr.form;
  if (form.types.size() != 2) return false;
  return prepared(instr, 3,
                  form.has("hi") ? dot_of<HighHalfDot, uint16_t, int16_t>(form)
                                 : dot_of<LowHalfDot, uint16_t, int16_t>(form));
}

#undef SUM
#undef DIFFERENCE
#undef LOW
#undef HIGH
#undef LOW_SUM
#undef HIGH_SUM
#undef QUOTIENT
#undef REMAINDER
#undef DISTANCE

ROW("rem", prepare_remainder);
ROW("sad", prepare_distance);
ROW("mul24", prepare_product_24);
ROW("dp4a", prepare_byte_dot);
ROW("dp2a", prepare_half_dot);

}  // namespace kernelpack
