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

// The target, then the sources.
inline const Slot& slot_at(const Instr& instr, int position) { return instr.slots[position]; }

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
};

// What a loop reads of a source: a copy, which no store of the loop can change.
template <typename T>
struct View {
  const T* lanes;
  T operator[](int lane) const { return lanes[lane]; }
};

template <>
struct View<Bit> {
  Mask mask;
  uint32_t operator[](int lane) const { return mask >> lane & 1; }
};

template <typename T>
View<T> viewed(const Source<T>& source) {
  return {source.lanes};
}

inline View<Bit> viewed(const Source<Bit>& source) { return {source.mask}; }

// A function that needs others which may look at the form.
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

// Results of some lanes into a register.
template <typename D>
[[gnu::noinline]] void blend(D* to, const D* results, Mask mask) {
  for (int lane = 0; lane < WIDTH; ++lane) to[lane] = mask >> lane & 1 ? results[lane] : to[lane];
}

// How a row runs, and what makes the function that it keeps in the instruction's plan.
struct Handler {
  Run run = nullptr;
  void (*plan)(Instr&) = nullptr;
  constexpr Handler() = default;
  constexpr Handler(Run of) : run(of) {}
  constexpr Handler(Run of, void (*with)(Instr&)) : run(of), plan(with) {}
};

template <bool FULL, typename F, typename D, typename... S>
struct Lanes {
private:
  static constexpr bool IS_PLANNED = std::is_constructible_v<F, const Instr&>;

  static void make_plan(Instr& instr) {
    if constexpr (IS_PLANNED) instr.plan = std::make_shared<F>(instr);
  }

  static F function_of(const Instr& instr) {
    if constexpr (IS_PLANNED) {
      return *static_cast<const F*>(instr.plan.get());
    } else {
      return F();
    }
  }

  static void run_all(Warp& warp, const Instr& instr, Mask mask) {
    run_with(warp, instr, mask, std::index_sequence_for<S...>{});
  }

  template <size_t... I>
  static void run_with(Warp& warp, const Instr& instr, Mask mask, std::index_sequence<I...>) {
    with(warp, slot_at(instr, 0), mask, function_of(instr),
         Source<S>(warp, slot_at(instr, I + 1))...);
  }

  static void with(Warp& warp, const Slot& to, Mask mask, const F function,
                   const Source<S>&... sources) {
    if constexpr (std::is_same_v<D, Bit>) {
      put_predicate(warp, to, bits_of(mask, function, viewed(sources)...), mask);
    } else {
      numbers(warp, to, mask, function, viewed(sources)...);
    }
  }

  static bool is_few(Mask mask) { return !FULL || __builtin_popcount(mask) <= FEW; }

  static Mask bits_of(Mask mask, const F function, const View<S>... sources) {
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

  static void some(Mask mask, D* results, const F function, const View<S>... sources) {
    for (Mask left = mask; left; left &= left - 1) {
      const int lane = first_lane(left);
      results[lane] = function(sources[lane]...);
    }
  }

  // Apart, so that it is there once: much of the code of a row are its vectors.
  [[gnu::noinline]] static void all(D* results, const F function, const View<S>... sources) {
#pragma GCC ivdep
    for (int lane = 0; lane < WIDTH; ++lane) results[lane] = function(sources[lane]...);
  }

  static void numbers(Warp& warp, const Slot& to, Mask mask, const F function,
                      const View<S>... sources) {
    const bool is_direct =
        to.of == Slot::REGISTER && to.bits == 8 * sizeof(D) && !std::is_same_v<D, double>;
    const bool few = is_few(mask);
    D room[WIDTH];
    D* results = is_direct && (few || mask == EVERY) ? warp.lanes<D>(to.offset) : room;
    if (few) {
      some(mask, results, function, sources...);
    } else {
      all(results, function, sources...);
    }
    if (results != room) return;
    check_numbers(room, mask);
    if (is_direct) return blend(warp.lanes<D>(to.offset), room, mask);
    put(warp, to, room, mask);
  }

public:
  static constexpr Handler run{run_all, IS_PLANNED ? make_plan : nullptr};
};

// Results of 16 bits are rare: their loops are not worth the time to compile them.
template <typename D>
constexpr bool IS_OFTEN = !std::is_same_v<D, uint16_t> && !std::is_same_v<D, int16_t>;

template <typename F, typename D, typename... S>
using Each = Lanes<IS_OFTEN<D>, F, D, S...>;
template <typename F, typename D, typename... S>
using Always = Lanes<true, F, D, S...>;
template <typename F, typename D, typename... S>
using Seldom = Lanes<false, F, D, S...>;

// Preparing -----------------------------------------------------------------------------------

// Keeps where the operands are: the target, then the sources; false where they are others.
inline bool bind(Instr& instr, size_t sources) {
  const Form& form = *instr.form;
  if (sources > 3 || form.sources.size() != sources || form.targets.size() != 1) return false;
  if (form.targets[0].items.size() != 1) return false;
  instr.slots[0] = form.targets[0].items[0];
  for (size_t i = 0; i < sources; ++i) {
    if (form.sources[i].items.size() != 1 || form.sources[i].is_address) return false;
    instr.slots[i + 1] = form.sources[i].items[0];
  }
  return true;
}

inline bool prepared(Instr& instr, size_t sources, const Handler& handler) {
  if (!handler.run || !bind(instr, sources)) return false;
  instr.run = handler.run;
  if (handler.plan) handler.plan(instr);
  return true;
}

// A function of a type by the type's width: each of these gives a Handler, or none.
#define KERNELPACK_BY_WIDTH(bits, MAKE) \
  ((bits) == 16   ? MAKE(uint16_t)      \
   : (bits) == 32 ? MAKE(uint32_t)      \
   : (bits) == 64 ? MAKE(uint64_t)      \
                  : Handler())
// The same by name; only integers.
#define KERNELPACK_BY_INTEGER(name, MAKE) \
  ((name) == "u16"   ? MAKE(uint16_t)     \
   : (name) == "s16" ? MAKE(int16_t)      \
   : (name) == "u32" ? MAKE(uint32_t)     \
   : (name) == "s32" ? MAKE(int32_t)      \
   : (name) == "u64" ? MAKE(uint64_t)     \
   : (name) == "s64" ? MAKE(int64_t)      \
                     : Handler())

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
