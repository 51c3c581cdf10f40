// The smaller or larger of values (PTX ISA 9.7.1.12, 9.7.3.11; semantics/choice.py).
#include <algorithm>

#include "floating.hpp"

namespace kernelpack {

namespace {

template <bool SMALLEST>
struct Chosen {
  template <typename T>
  T operator()(T a, T b) const {
    return SMALLEST ? std::min(a, b) : std::max(a, b);
  }
};

template <bool SMALLEST>
struct ChosenAboveZero {
  template <typename... S>
  auto operator()(S... sources) const {
    const auto chosen = Chosen<SMALLEST>()(sources...);
    return std::max(chosen, decltype(chosen){0});
  }
};

template <bool SMALLEST, typename Half>
struct ChosenHalves {
  template <typename... S>
  uint32_t operator()(S... sources) const {
    const Chosen<SMALLEST> chosen;
    const auto low = static_cast<uint16_t>(chosen(static_cast<Half>(sources)...));
    const auto high = static_cast<uint16_t>(chosen(static_cast<Half>(sources >> 16)...));
    return low | static_cast<uint32_t>(high) << 16;
  }
};

// Of floats, where -0 is less than +0. A NaN loses; LOUD: it wins.
template <bool SMALLEST, bool LOUD>
struct ChosenFloat {
  template <typename T>
  T operator()(T a, T b) const {
    const auto x = bits_as<BitsOf<T>>(a), y = bits_as<BitsOf<T>>(b);
    const T zero = bits_as<T>(SMALLEST ? x | y : x & y);
    T chosen = (SMALLEST ? a < b : a > b) ? a : b;
    chosen = a == 0 && b == 0 ? zero : chosen;
    if (LOUD) return a != a ? a : chosen;
    return b != b ? a : chosen;
  }
  template <typename T>
  T operator()(T a, T b, T c) const {
    return (*this)((*this)(a, b), c);
  }
};

// The same of the absolute values.
template <typename F>
struct OfMagnitudes {
  template <typename... S>
  auto operator()(S... sources) const {
    return F()(std::fabs(sources)...);
  }
};

template <bool SMALLEST>
bool prepare_integers(Instr& instr) {
#define CHOSEN(T) run_of<Chosen<SMALLEST>, T, 2>()
#define CHOSEN_ABOVE(T) run_of<ChosenAboveZero<SMALLEST>, T, 2, false>()
  const std::string& type = instr.form->type();
  if (instr.form->has("relu")) return prepared(instr, 2, KERNELPACK_BY_INTEGER(type, CHOSEN_ABOVE));
  return prepared(instr, 2, KERNELPACK_BY_INTEGER(type, CHOSEN));
#undef CHOSEN
#undef CHOSEN_ABOVE
}

// Of three numbers, or of absolute values: f32 alone (PTX ISA 9.7.3.11).
template <typename F, size_t N>
bool prepare_singles(Instr& instr) {
  return instr.form->has("abs") ? prepare_single<OfMagnitudes<F>, N>(instr)
                                : prepare_single<F, N>(instr);
}

template <typename F>
bool prepare_floats(Instr& instr) {
  if (instr.form->sources.size() == 3) return prepare_singles<F, 3>(instr);
  if (instr.form->type() == "f32" || instr.form->has("abs")) return prepare_singles<F, 2>(instr);
  return prepare_halves<F, 2>(instr) || prepare_double<F, 2>(instr);
}

template <bool SMALLEST>
bool prepare_choice(Instr& instr) {
  const Form& form = *instr.form;
  const std::string& type = form.type();
  if (form.has("xorsign")) return false;
  if (is_integer(type)) return prepare_integers<SMALLEST>(instr);
  if (type == "u16x2")
    return prepared(instr, 2, run_of<ChosenHalves<SMALLEST, uint16_t>, uint32_t, 2, false>());
  if (type == "s16x2")
    return prepared(instr, 2, run_of<ChosenHalves<SMALLEST, int16_t>, uint32_t, 2, false>());
  return form.has("NaN") ? prepare_floats<ChosenFloat<SMALLEST, true>>(instr)
                         : prepare_floats<ChosenFloat<SMALLEST, false>>(instr);
}

}  // namespace

ROW("min", prepare_choice<true>);
ROW("max", prepare_choice<false>);

}  // namespace kernelpack
