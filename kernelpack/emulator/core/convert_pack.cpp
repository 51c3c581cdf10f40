// Integers cut to narrow ones that lie side by side (PTX ISA 9.7.9.23; semantics/convert_pack.py).
#include "each_lane.hpp"

namespace kernelpack {

namespace {

template <int BITS, bool IS_SIGNED>
uint32_t narrow_bits(int32_t value) {
  constexpr int32_t LEAST = IS_SIGNED ? -(1 << (BITS - 1)) : 0;
  constexpr int32_t MASK = (1 << BITS) - 1;
  return static_cast<uint32_t>(std::clamp(value, LEAST, LEAST + MASK) & MASK);
}

template <int BITS, bool IS_SIGNED>
struct Pack {
  uint32_t operator()(int32_t a, int32_t b) const {
    return narrow_bits<BITS, IS_SIGNED>(b) | narrow_bits<BITS, IS_SIGNED>(a) << BITS;
  }
};

template <int BITS, bool IS_SIGNED>
struct PackBelow {
  uint32_t operator()(int32_t a, int32_t b, uint32_t c) const {
    return Pack<BITS, IS_SIGNED>()(a, b) | c << 2 * BITS;
  }
};

template <bool IS_SIGNED>
bool prepare_pack(Instr& instr, const std::string& bits) {
  if (bits == "16")
    return prepared(instr, 2, Seldom<Pack<16, IS_SIGNED>, uint32_t, int32_t, int32_t>::run);
#define BELOW(BITS) Seldom<PackBelow<BITS, IS_SIGNED>, uint32_t, int32_t, int32_t, uint32_t>::run
  return prepared(instr, 3, bits == "8" ? BELOW(8) : bits == "4" ? BELOW(4) : BELOW(2));
#undef BELOW
}

// `cvt.pack.sat.TO.s32{.b32}`; Python refuses other orders.
bool prepare_convert_pack(Instr& instr) {
  const std::string& to = instr.form->modifiers[2];
  const std::string bits = to.substr(1);
  return to[0] == 's' ? prepare_pack<true>(instr, bits) : prepare_pack<false>(instr, bits);
}

ROW("cvt.pack", prepare_convert_pack);

}  // namespace

}  // namespace kernelpack
