// Bits of integers: how many, the highest, fields of them, masks (PTX ISA 9.7.1.15 to 9.7.1.23;
// semantics/bit_fields.py).
#include <algorithm>

#include "each_lane.hpp"

namespace kernelpack {

namespace {

template <typename T>
struct Population {
  uint32_t operator()(T a) const {
    return static_cast<uint32_t>(sizeof(T) == 8 ? __builtin_popcountll(a) : __builtin_popcount(a));
  }
};

// The position of the highest set bit; all ones when there is none.
template <typename T>
uint32_t highest_bit(T a) {
  if (a == 0) return ~0u;
  return sizeof(T) == 8 ? 63 - __builtin_clzll(a) : 31 - __builtin_clz(static_cast<uint32_t>(a));
}

template <typename T>
struct LeadingZeros {
  uint32_t operator()(T a) const {
    constexpr uint32_t TOP = 8 * sizeof(T) - 1;
    return a == 0 ? TOP + 1 : TOP - highest_bit(a);
  }
};

template <typename T, bool FROM_TOP>
struct FindHighest {
  uint32_t operator()(T a) const {
    const auto bits = static_cast<BitsOf<T>>(a < 0 ? ~a : a);
    const uint32_t found = highest_bit(bits);
    return bits == 0 || !FROM_TOP ? found : static_cast<uint32_t>(8 * sizeof(T) - 1) - found;
  }
};

// The position of the n-th set bit of the mask, counted from a base, up or down.
struct FindNth {
  uint32_t operator()(uint32_t mask, uint32_t base, int32_t offset) const {
    if (offset == 0) return base < 32 && mask >> base & 1 ? base : ~0u;
    const int64_t step = offset > 0 ? 1 : -1;
    int64_t left = offset > 0 ? int64_t{offset} : -int64_t{offset};
    for (int64_t position = base; 0 <= position && position < 32; position += step)
      if (mask >> position & 1 && --left == 0) return static_cast<uint32_t>(position);
    return ~0u;
  }
};

template <typename T>
struct Reverse {
  T operator()(T a) const {
    const auto swap = [&a](int by, uint64_t low) {
      a = static_cast<T>((a >> by & static_cast<T>(low)) | (a & static_cast<T>(low)) << by);
    };
    swap(1, 0x5555555555555555ull);
    swap(2, 0x3333333333333333ull);
    swap(4, 0x0f0f0f0f0f0f0f0full);
    return sizeof(T) == 8 ? static_cast<T>(__builtin_bswap64(a))
                          : static_cast<T>(__builtin_bswap32(static_cast<uint32_t>(a)));
  }
};

// `count` low bits; all of them from 64 on.
uint64_t ones(uint64_t count) { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

// A bit field of a, filled with zeros or, signed, with its top bit.
template <typename T>
struct Extract {
  static constexpr uint64_t BITS = 8 * sizeof(T);
  T operator()(T a, uint32_t position, uint32_t length) const {
    const uint64_t at = position & 255, count = length & 255;
    const uint64_t whole = static_cast<BitsOf<T>>(a);
    uint64_t field = (at >= 64 ? 0 : whole >> at) & ones(count);
    if constexpr (std::is_signed_v<T>) {
      const uint64_t sign = whole >> std::min(at + count - 1, BITS - 1) & 1;
      const uint64_t kept = std::min(count, at < BITS ? BITS - at : 0);
      if (count > 0 && sign) field |= ~ones(kept);
    }
    return static_cast<T>(field);
  }
};

// b with the low bits of a put into a field of it.
template <typename T>
struct Insert {
  T operator()(T a, T b, uint32_t position, uint32_t length) const {
    const uint64_t at = position & 255, count = length & 255;
    const uint64_t mask = at >= 64 ? 0 : ones(count) << at;
    const uint64_t value = at >= 64 ? 0 : static_cast<uint64_t>(a) << at;
    return static_cast<T>((b & ~mask) | (value & mask));
  }
};

template <bool WRAP>
struct BitMask {
  uint32_t operator()(uint32_t a, uint32_t b) const {
    const uint64_t at = WRAP ? a & 31 : std::min(a, 32u), count = WRAP ? b & 31 : std::min(b, 32u);
    return static_cast<uint32_t>(ones(count) << at);
  }
};

// The low b bits of a, extended by zeros or by their sign.
template <typename T, bool WRAP>
struct ExtendFrom {
  T operator()(T a, uint32_t b) const {
    const uint64_t count = WRAP ? b & 31 : std::min(b, 32u);
    uint64_t wide = static_cast<uint32_t>(a) & ones(count);
    if (std::is_signed_v<T> && count > 0 && wide >> (count - 1) & 1) wide |= ~ones(count);
    return static_cast<T>(static_cast<uint32_t>(wide));
  }
};

// Four operands: one more than `Each` holds.
template <typename T>
void insert_fields(Warp& warp, const Instr& instr, Mask mask) {
  const Source<T> a(warp, instr.source(0)), b(warp, instr.source(1));
  const Source<uint32_t> position(warp, instr.source(2)), length(warp, instr.source(3));
  T room[WIDTH];
  if (__builtin_popcount(mask) > FEW) {
    for (int lane = 0; lane < WIDTH; ++lane)
      room[lane] = Insert<T>()(a[lane], b[lane], position[lane], length[lane]);
  } else {
    for (Mask left = mask; left; left &= left - 1) {
      const int lane = first_lane(left);
      room[lane] = Insert<T>()(a[lane], b[lane], position[lane], length[lane]);
    }
  }
  put(warp, instr.target(), room, mask);
}

bool is_wide(const Instr& instr) { return width_of(instr.form->type()) == 64; }

bool prepare_population(Instr& instr) {
  return prepared(instr, 1,
                  is_wide(instr) ? Each<Population<uint64_t>, uint32_t, uint64_t>::run
                                 : Each<Population<uint32_t>, uint32_t, uint32_t>::run);
}

bool prepare_leading_zeros(Instr& instr) {
  return prepared(instr, 1,
                  is_wide(instr) ? Each<LeadingZeros<uint64_t>, uint32_t, uint64_t>::run
                                 : Each<LeadingZeros<uint32_t>, uint32_t, uint32_t>::run);
}

bool prepare_find_highest(Instr& instr) {
#define FIND(T)                                            \
  (from_top ? Each<FindHighest<T, true>, uint32_t, T>::run \
            : Each<FindHighest<T, false>, uint32_t, T>::run)
  const bool from_top = instr.form->has("shiftamt");
  const std::string& type = instr.form->type();
  return prepared(instr, 1,
                  type == "u32"   ? FIND(uint32_t)
                  : type == "s32" ? FIND(int32_t)
                  : type == "u64" ? FIND(uint64_t)
                  : type == "s64" ? FIND(int64_t)
                                  : Handler());
#undef FIND
}

bool prepare_find_nth(Instr& instr) {
  return prepared(instr, 3, Seldom<FindNth, uint32_t, uint32_t, uint32_t, int32_t>::run);
}

bool prepare_reverse(Instr& instr) {
  return prepared(instr, 1,
                  is_wide(instr) ? Each<Reverse<uint64_t>, uint64_t, uint64_t>::run
                                 : Each<Reverse<uint32_t>, uint32_t, uint32_t>::run);
}

bool prepare_extract(Instr& instr) {
#define EXTRACT(T) Seldom<Extract<T>, T, T, uint32_t, uint32_t>::run
  const std::string& type = instr.form->type();
  return width_of(type) != 16 && prepared(instr, 3, KERNELPACK_BY_INTEGER(type, EXTRACT));
#undef EXTRACT
}

bool prepare_insert(Instr& instr) {
  if (instr.form->sources.size() != 4) return false;
  instr.run = is_wide(instr) ? insert_fields<uint64_t> : insert_fields<uint32_t>;
  return true;
}

bool prepare_bit_mask(Instr& instr) {
  return prepared(instr, 2,
                  instr.form->has("wrap")
                      ? Seldom<BitMask<true>, uint32_t, uint32_t, uint32_t>::run
                      : Seldom<BitMask<false>, uint32_t, uint32_t, uint32_t>::run);
}

bool prepare_extend(Instr& instr) {
#define EXTEND(T)                                           \
  (wraps ? Seldom<ExtendFrom<T, true>, T, T, uint32_t>::run \
         : Seldom<ExtendFrom<T, false>, T, T, uint32_t>::run)
  const bool wraps = instr.form->has("wrap");
  return prepared(instr, 2, instr.form->type() == "s32" ? EXTEND(int32_t) : EXTEND(uint32_t));
#undef EXTEND
}

}  // namespace

ROW("popc", prepare_population);
ROW("clz", prepare_leading_zeros);
ROW("bfind", prepare_find_highest);
ROW("fns", prepare_find_nth);
ROW("brev", prepare_reverse);
ROW("bfe", prepare_extract);
ROW("bfi", prepare_insert);
ROW("bmsk", prepare_bit_mask);
ROW("szext", prepare_extend);

}  // namespace kernelpack
