// A function of f32 as a row: `.ftz`, `.sat`, 16-bit numbers and pairs of them are put around it
// (semantics/floating.py).
#pragma once

#include "each_lane.hpp"
#include "halves.hpp"

namespace kernelpack {

constexpr float SMALLEST_NORMAL = 0x1p-126f;

// Subnormal f32 become zeros of the same sign.
inline float flush(float value) {
  const uint32_t bits = bits_as<uint32_t>(value);
  return bits_as<float>((bits & 0x7f800000u) ? bits : bits & 0x80000000u);
}

// Clamped to [0, 1]; NaN and -0 become +0.
inline float saturate(float value) { return value > 0.0f ? (value < 1.0f ? value : 1.0f) : 0.0f; }

inline double saturate(double value) { return value > 0.0 ? (value < 1.0 ? value : 1.0) : 0.0; }

// max(value, 0), NaN kept.
inline float relu(float value) { return value != value ? value : (value > 0.0f ? value : 0.0f); }

// All NaN of f32 are the one that PTX gives. It is chosen among bits: of two numbers that are NaN a
// compiler may take either, and clang does.
inline float one_nan(float value) {
  const uint32_t bits = bits_as<uint32_t>(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return bits_as<float>(is_nan ? 0x7fffffffu : bits);
}

// The same of one that becomes an f32 later.
inline double one_nan(double value) {
  const uint64_t bits = bits_as<uint64_t>(value);
  const bool is_nan = (bits & 0x7fffffffffffffffull) > 0x7ff0000000000000ull;
  return bits_as<double>(is_nan ? 0x7fffffffe0000000ull : bits);
}

// F with `.ftz` or without, whose flags cost nothing in its loop.
template <typename F, bool FTZ>
struct Single {
  template <typename... S>
  float operator()(S... sources) const {
    if constexpr (FTZ) return flush(one_nan(F()(flush(sources)...)));
    return one_nan(F()(sources...));
  }
};

// The same with all flags looked at in each lane.
template <typename F>
struct Finished {
  F function;
  bool flushes, saturates;
  explicit Finished(const Instr& instr)
      : function(made_for<F>(instr)),
        flushes(instr.form->has("ftz")),
        saturates(instr.form->has("sat")) {}
  template <typename... S>
  float operator()(S... sources) const {
    const float value =
        flushes ? flush(one_nan(function(flush(sources)...))) : one_nan(function(sources...));
    return saturates ? saturate(value) : value;
  }
};

// Numbers of 16 bits: computed in f32 and rounded once more. `.sat` clamps, `.relu` cuts.
template <typename F, typename Half>
struct OnHalves {
  F function;
  bool saturates, cuts;
  explicit OnHalves(const Instr& instr)
      : function(made_for<F>(instr)),
        saturates(instr.form->has("sat")),
        cuts(instr.form->has("relu")) {}
  template <typename... S>
  uint16_t operator()(S... sources) const {
    const float value = function(Half::decode(static_cast<uint16_t>(sources))...);
    return Half::encode(saturates ? saturate(value) : cuts ? relu(value) : value);
  }
};

template <typename Half>
struct OnPairs {
  Half half;
  explicit OnPairs(const Instr& instr) : half(instr) {}
  template <typename... S>
  uint32_t operator()(S... sources) const {
    const uint32_t low = half(static_cast<uint16_t>(sources)...);
    return low | static_cast<uint32_t>(half(static_cast<uint16_t>(sources >> 16)...)) << 16;
  }
};

// Pairs without `.sat` and `.relu`, as vectors.
template <typename F, typename Half>
struct OnPlainPairs {
  template <typename... S>
  uint32_t operator()(S... sources) const {
    const uint32_t low = Half::encode(F()(Half::decode(static_cast<uint16_t>(sources))...));
    const uint32_t high = Half::encode(F()(Half::decode(static_cast<uint16_t>(sources >> 16))...));
    return low | high << 16;
  }
};

template <typename F>
struct OnSinglePairs {
  Finished<F> single;
  explicit OnSinglePairs(const Instr& instr) : single(instr) {}
  template <typename... S>
  uint32_t one(S... bits) const {
    return bits_as<uint32_t>(single(bits_as<float>(bits)...));
  }
  template <typename... S>
  uint64_t operator()(S... sources) const {
    const uint64_t low = one(static_cast<uint32_t>(sources)...);
    return low | static_cast<uint64_t>(one(static_cast<uint32_t>(sources >> 32)...)) << 32;
  }
};

template <bool FULL, typename F, typename D, typename Indices>
struct SameSources;
template <bool FULL, typename F, typename D, size_t... I>
struct SameSources<FULL, F, D, std::index_sequence<I...>> {
  template <size_t>
  using Same = D;
  static constexpr Handler run = Lanes < FULL && IS_OFTEN<D>, F, D, Same<I>... > ::run;
};

// F of N sources, all of the result's type.
template <typename F, typename D, size_t N, bool FULL = true>
constexpr Handler run_of() {
  return SameSources<FULL, F, D, std::make_index_sequence<N>>::run;
}

// F for f32. What a row does not take is not compiled: SAT is whether it takes `.sat`.
template <typename F, size_t N, bool SAT = false>
bool prepare_single(Instr& instr) {
  const Form& form = *instr.form;
  if (form.type() != "f32") return false;
  if constexpr (SAT) {
    if (form.has("sat")) return prepared(instr, N, run_of<Finished<F>, float, N, false>());
  }
  return prepared(
      instr, N,
      form.has("ftz") ? run_of<Single<F, true>, float, N>() : run_of<Single<F, false>, float, N>());
}

// F for f32 and pairs of them, in a form that kernels hardly use.
template <typename F, size_t N>
bool prepare_finished(Instr& instr) {
  const std::string& type = instr.form->type();
  if (type == "f32") return prepared(instr, N, run_of<Finished<F>, float, N, false>());
  if (type == "f32x2") return prepared(instr, N, run_of<OnSinglePairs<F>, uint64_t, N, false>());
  return false;
}

// F for numbers of 16 bits and pairs of them.
template <typename F, size_t N>
bool prepare_halves(Instr& instr) {
  const std::string& type = instr.form->type();
  using OfF16 = OnHalves<F, F16>;
  using OfBf16 = OnHalves<F, Bf16>;
  if (type == "f16x2") return prepared(instr, N, run_of<OnPairs<OfF16>, uint32_t, N, false>());
  if (type == "bf16x2") return prepared(instr, N, run_of<OnPairs<OfBf16>, uint32_t, N, false>());
  if (type == "f16") return prepared(instr, N, run_of<OfF16, uint16_t, N, false>());
  if (type == "bf16") return prepared(instr, N, run_of<OfBf16, uint16_t, N, false>());
  return false;
}

template <typename F, size_t N>
bool prepare_plain_pairs(Instr& instr) {
  const Form& form = *instr.form;
  if (has_any(form, {"sat", "relu"})) return false;
  if (form.type() == "f16x2")
    return prepared(instr, N, run_of<OnPlainPairs<F, F16>, uint32_t, N>());
  return form.type() == "bf16x2" &&
         prepared(instr, N, run_of<OnPlainPairs<F, Bf16>, uint32_t, N>());
}

template <typename F, size_t N>
bool prepare_double(Instr& instr) {
  return instr.form->type() == "f64" && prepared(instr, N, run_of<F, double, N, false>());
}

}  // namespace kernelpack
