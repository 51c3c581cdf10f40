// Logic, shifts and bytes (PTX ISA 9.7.8, 9.7.9.7; semantics/bitwise.py).
#include <algorithm>

#include "each_lane.hpp"

namespace kernelpack {

namespace {

struct And {
  template <typename T>
  T operator()(T a, T b) const {
    return a & b;
  }
};

struct Or {
  template <typename T>
  T operator()(T a, T b) const {
    return a | b;
  }
};

struct ExclusiveOr {
  template <typename T>
  T operator()(T a, T b) const {
    return a ^ b;
  }
};

struct Complement {
  template <typename T>
  T operator()(T a) const {
    return ~a;
  }
};

struct IsZero {
  template <typename T>
  T operator()(T a) const {
    return a == 0;
  }
};

// Of predicates: all lanes at once.
template <typename F>
void combine_masks(Warp& warp, const Instr& instr, Mask mask) {
  const Mask a = predicate(warp, slot_at(instr, 1)), b = predicate(warp, slot_at(instr, 2));
  put_predicate(warp, slot_at(instr, 0), F()(a, b), mask);
}

void complement_mask(Warp& warp, const Instr& instr, Mask mask) {
  put_predicate(warp, slot_at(instr, 0), ~predicate(warp, slot_at(instr, 1)), mask);
}

template <typename F>
bool prepare_logic(Instr& instr) {
#define LOGIC(T) Each<F, T, T, T>::run
  const std::string& type = instr.form->type();
  if (type == "pred") return prepared(instr, 2, combine_masks<F>);
  return prepared(instr, 2, KERNELPACK_BY_WIDTH(width_of(type), LOGIC));
#undef LOGIC
}

bool prepare_complement(Instr& instr) {
#define COMPLEMENT(T) Each<Complement, T, T>::run
  const std::string& type = instr.form->type();
  if (type == "pred") return prepared(instr, 1, complement_mask);
  return prepared(instr, 1, KERNELPACK_BY_WIDTH(width_of(type), COMPLEMENT));
#undef COMPLEMENT
}

bool prepare_is_zero(Instr& instr) {
#define IS_ZERO(T) Seldom<IsZero, T, T>::run
  return prepared(instr, 1, KERNELPACK_BY_WIDTH(width_of(instr.form->type()), IS_ZERO));
#undef IS_ZERO
}

// Any function of three bits: bit 4a + 2b + c of the table, which is the last operand.
struct LookUp {
  uint32_t table;
  explicit LookUp(const Instr& instr) : table(static_cast<uint32_t>(instr.form->constants[4])) {}
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    uint32_t result = 0;
    for (uint32_t term = 0; term < 8; ++term) {
      const uint32_t is_there = 0u - (table >> term & 1);
      result |= is_there & (term & 4 ? a : ~a) & (term & 2 ? b : ~b) & (term & 1 ? c : ~c);
    }
    return result;
  }
};

bool prepare_look_up(Instr& instr) {
  const auto& constants = instr.form->constants;
  if (constants.size() < 5 || constants[4] == NO_CONSTANT) return false;
  return prepared(instr, 3, Each<LookUp, uint32_t, uint32_t, uint32_t, uint32_t>::run);
}

struct ShiftLeft {
  template <typename T>
  T operator()(T a, uint32_t by) const {
    constexpr uint32_t BITS = 8 * sizeof(T);
    return by < BITS ? static_cast<T>(a << (by & (BITS - 1))) : T{0};
  }
};

// Signed: filled with the sign, also past the width.
struct ShiftRight {
  template <typename T>
  T operator()(T a, uint32_t by) const {
    constexpr uint32_t BITS = 8 * sizeof(T);
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a >> std::min(by, BITS - 1));
    } else {
      return by < BITS ? static_cast<T>(a >> (by & (BITS - 1))) : T{0};
    }
  }
};

bool prepare_shift_left(Instr& instr) {
#define SHIFT(T) Each<ShiftLeft, T, T, uint32_t>::run
  return prepared(instr, 2, KERNELPACK_BY_WIDTH(width_of(instr.form->type()), SHIFT));
#undef SHIFT
}

bool prepare_shift_right(Instr& instr) {
#define SHIFT(T) Each<ShiftRight, T, T, uint32_t>::run
  const std::string& type = instr.form->type();
  if (type[0] == 's') return prepared(instr, 2, KERNELPACK_BY_INTEGER(type, SHIFT));
  return prepared(instr, 2, KERNELPACK_BY_WIDTH(width_of(type), SHIFT));
#undef SHIFT
}

// 32 bits of b:a shifted left (the upper half) or right (the lower half).
template <bool LEFT, bool WRAP>
struct FunnelShift {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t by) const {
    const uint64_t both = a | static_cast<uint64_t>(b) << 32;
    const uint32_t amount = WRAP ? by & 31 : std::min(by, 32u);
    return static_cast<uint32_t>(LEFT ? both << amount >> 32 : both >> amount);
  }
};

bool prepare_funnel_shift(Instr& instr) {
#define FUNNEL(LEFT, WRAP) \
  Each<FunnelShift<LEFT, WRAP>, uint32_t, uint32_t, uint32_t, uint32_t>::run
  const bool wraps = instr.form->has("wrap");
  if (instr.form->has("l"))
    return prepared(instr, 3, wraps ? FUNNEL(true, true) : FUNNEL(true, false));
  return prepared(instr, 3, wraps ? FUNNEL(false, true) : FUNNEL(false, false));
#undef FUNNEL
}

// Four bytes chosen from the eight of b:a by a selector of four bits each, lowest first; bit 3 of
// one repeats its byte's sign.
uint32_t permuted(uint32_t a, uint32_t b, uint32_t select) {
  const uint64_t both = a | static_cast<uint64_t>(b) << 32;
  uint32_t result = 0;
  for (uint32_t k = 0; k < 4; ++k) {
    const uint32_t chosen = select >> 4 * k;
    const auto byte = static_cast<uint32_t>(both >> 8 * (chosen & 7)) & 0xff;
    const uint32_t sign = 0u - (byte >> 7);
    result |= (chosen & 8 ? sign & 0xff : byte) << 8 * k;
  }
  return result;
}

struct Permute {
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t select) const {
    return permuted(a, b, select);
  }
};

// The modes: the low two bits of c name one of four selectors.
struct PermuteByMode {
  uint32_t selectors[4];
  explicit PermuteByMode(const Instr& instr) {
    const std::string mode = instr.form->one_of({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
    for (uint32_t low = 0; low < 4; ++low) {
      selectors[low] = 0;
      for (uint32_t k = 0; k < 4; ++k) selectors[low] |= byte_of(mode, low, k) << 4 * k;
    }
  }
  static uint32_t byte_of(const std::string& mode, uint32_t low, uint32_t k) {
    if (mode == "f4e") return low + k;
    if (mode == "b4e") return (low - k) & 7;
    if (mode == "rc8") return low;
    if (mode == "ecl") return std::max(k, low);
    if (mode == "ecr") return std::min(k, low);
    return 2 * (low & 1) + k % 2;
  }
  uint32_t operator()(uint32_t a, uint32_t b, uint32_t c) const {
    return permuted(a, b, selectors[c & 3]);
  }
};

bool prepare_permute(Instr& instr) {
  if (instr.form->flags.empty())
    return prepared(instr, 3, Each<Permute, uint32_t, uint32_t, uint32_t, uint32_t>::run);
  return prepared(instr, 3, Seldom<PermuteByMode, uint32_t, uint32_t, uint32_t, uint32_t>::run);
}

}  // namespace

ROW("and", prepare_logic<And>);
ROW("or", prepare_logic<Or>);
ROW("xor", prepare_logic<ExclusiveOr>);
ROW("not", prepare_complement);
ROW("cnot", prepare_is_zero);
ROW("lop3", prepare_look_up);
ROW("shl", prepare_shift_left);
ROW("shr", prepare_shift_right);
ROW("shf", prepare_funnel_shift);
ROW("prmt", prepare_permute);

}  // namespace kernelpack
