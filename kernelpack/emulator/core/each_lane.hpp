// Rows of the kind `lanes`: a function of one lane's values, run for every lane of the mask.
//
// A function is a struct with `operator()`; what it needs of the instruction's form it takes in a
// constructor from `const Instr&`. `Each` runs it: all lanes in a loop that the compiler turns into
// vectors, a few lanes one by one. `Seldom` does only the latter, for forms that kernels hardly
// use.
#pragma once

#include <cmath>
#include <type_traits>
#include <utility>

#include "machine.hpp"
#include "views.hpp"

namespace kernelpack {

// Marks a source, or the result, that is a predicate.
struct Bit {};

// Up to so many lanes are computed one by one; with more of them it is faster to compute all.
constexpr int FEW = 6;

inline const Slot& slot_at(const Instr& instr, int position) {
  return *reinterpret_cast<const Slot*>(instr.arg[position]);
}

// Lanes of a source.
template <typename T>
struct Source {
  const T* lanes;
  T room[WIDTH];
  Source(Warp& warp, const Slot& slot) { lanes = values(warp, slot, room); }
  T operator[](int lane) const { return lanes[lane]; }
};

template <>
struct Source<Bit> {
  Mask mask;
  Source(Warp& warp, const Slot& slot) : mask(predicate(warp, slot)) {}
  bool operator[](int lane) const { return mask >> lane & 1; }
};

template <typename F>
F made_for(const Instr& instr) {
  if constexpr (std::is_constructible_v<F, const Instr&>) {
    return F(instr);
  } else {
    return F();
  }
}

// The bits of a NaN of f64 depend on how numpy's loops order their operands: nothing to rely on.
template <typename D>
void check_numbers(const D* results, Mask mask) {
  if constexpr (std::is_same_v<D, double>) {
    for (Mask left = mask; left; left &= left - 1)
      if (std::isnan(results[first_lane(left)])) doubt("a NaN of f64");
  }
}

// Stores results of a full warp that stand in `room`.
template <typename D>
void put_checked(Warp& warp, const Slot& slot, const D* results, Mask mask) {
  check_numbers(results, mask);
  put(warp, slot, results, mask);
}

template <bool FULL, typename F, typename D, typename... S>
struct Lanes {
  static void run(Warp& warp, const Instr& instr, Mask mask) {
    run_with(warp, instr, mask, std::index_sequence_for<S...>{});
  }

private:
  template <size_t... I>
  static void run_with(Warp& warp, const Instr& instr, Mask mask, std::index_sequence<I...>) {
    const F function = made_for<F>(instr);
    with(warp, slot_at(instr, 0), mask, function, Source<S>(warp, slot_at(instr, I + 1))...);
  }

  static void with(Warp& warp, const Slot& to, Mask mask, const F function,
                   const Source<S>&... sources) {
    if constexpr (std::is_same_v<D, Bit>) {
      put_predicate(warp, to, bits_of(mask, function, sources...), mask);
    } else {
      numbers(warp, to, mask, function, sources...);
    }
  }

  static bool is_few(Mask mask) { return !FULL || __builtin_popcount(mask) <= FEW; }

  static Mask bits_of(Mask mask, const F function, const Source<S>&... sources) {
    Mask found = 0;
    if (is_few(mask)) {
      for (Mask left = mask; left; left &= left - 1) {
        const int lane = first_lane(left);
        found |= static_cast<Mask>(function(sources[lane]...)) << lane;
      }
      return found;
    }
    for (int lane = 0; lane < WIDTH; ++lane)
      found |= static_cast<Mask>(function(sources[lane]...)) << lane;
    return found;
  }

  static void numbers(Warp& warp, const Slot& to, Mask mask, const F function,
                      const Source<S>&... sources) {
    const bool direct =
        to.of == Slot::REGISTER && to.bits == 8 * sizeof(D) && !std::is_same_v<D, double>;
    D room[WIDTH];
    D* results = direct && (mask == EVERY || is_few(mask)) ? warp.lanes<D>(to.offset) : room;
    if (is_few(mask)) {
      for (Mask left = mask; left; left &= left - 1) {
        const int lane = first_lane(left);
        results[lane] = function(sources[lane]...);
      }
    } else {
#pragma GCC ivdep
      for (int lane = 0; lane < WIDTH; ++lane) results[lane] = function(sources[lane]...);
    }
    if (results == room) put_checked(warp, to, room, mask);
  }
};

template <typename F, typename D, typename... S>
using Each = Lanes<true, F, D, S...>;
template <typename F, typename D, typename... S>
using Seldom = Lanes<false, F, D, S...>;

// Preparing -----------------------------------------------------------------------------------

// Keeps where the operands are: the target, then the sources; false where they are others.
inline bool bind(Instr& instr, size_t sources) {
  const Form& form = *instr.form;
  if (sources > 3 || form.sources.size() != sources || form.targets.size() != 1) return false;
  if (form.targets[0].items.size() != 1) return false;
  instr.arg[0] = reinterpret_cast<int64_t>(&form.targets[0].items[0]);
  for (size_t i = 0; i < sources; ++i) {
    if (form.sources[i].items.size() != 1 || form.sources[i].is_address) return false;
    instr.arg[i + 1] = reinterpret_cast<int64_t>(&form.sources[i].items[0]);
  }
  return true;
}

inline bool prepared(Instr& instr, size_t sources, Run run) {
  if (!bind(instr, sources)) return false;
  instr.run = run;
  return true;
}

// A function of a type by the type's width: each of these gives a Run, or null.
#define KERNELPACK_BY_WIDTH(bits, MAKE) \
  ((bits) == 16   ? MAKE(uint16_t)      \
   : (bits) == 32 ? MAKE(uint32_t)      \
   : (bits) == 64 ? MAKE(uint64_t)      \
                  : static_cast<Run>(nullptr))
// The same by name; only integers.
#define KERNELPACK_BY_INTEGER(name, MAKE) \
  ((name) == "u16"   ? MAKE(uint16_t)     \
   : (name) == "s16" ? MAKE(int16_t)      \
   : (name) == "u32" ? MAKE(uint32_t)     \
   : (name) == "s32" ? MAKE(int32_t)      \
   : (name) == "u64" ? MAKE(uint64_t)     \
   : (name) == "s64" ? MAKE(int64_t)      \
                     : static_cast<Run>(nullptr))

// Bits of a type's values (PTX ISA 5.2); 0 for those that are no operand of arithmetic.
inline int width_of(const std::string& type) {
  if (type == "pred") return 1;
  if (type == "f16" || type == "bf16") return 16;
  if (type.size() >= 5 && type.compare(type.size() - 2, 2, "x2") == 0)
    return type == "f32x2" ? 64 : 32;
  int bits = 0;
  for (size_t i = 1; i < type.size(); ++i) {
    if (type[i] < '0' || type[i] > '9') return 0;
    bits = 10 * bits + (type[i] - '0');
  }
  return bits;
}

inline bool is_integer(const std::string& type) {
  return (type[0] == 'u' || type[0] == 's') && width_of(type) > 0 &&
         type.find('x') == std::string::npos;
}

inline bool has_any(const Form& form, std::initializer_list<const char*> flags) {
  return !form.one_of(flags).empty();
}

}  // namespace kernelpack
