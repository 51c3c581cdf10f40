// Operands at run time: registers, constants and special registers as 32 lanes of a type
// (semantics/views.py and generate.py are the definition), and destinations under a mask.
#include "machine.hpp"
#include "views.hpp"

namespace kernelpack {

namespace {

uint64_t rank_base(const Warp& warp) { return static_cast<uint64_t>(warp.cta->rank) << RANK_SHIFT; }

// Lanes of U as lanes of T: the low bits, or with zeros above.
template <typename T, typename U>
void resize(const void* from, T* to) {
  const U* lanes = static_cast<const U*>(from);
  for (int lane = 0; lane < WIDTH; ++lane) {
    const auto bits = static_cast<BitsOf<T>>(lanes[lane]);
    std::memcpy(&to[lane], &bits, sizeof bits);
  }
}

template <typename T>
void resize_from(int bits, const void* from, T* to) {
  switch (bits) {
    case 8: return resize<T, uint8_t>(from, to);
    case 16: return resize<T, uint16_t>(from, to);
    case 32: return resize<T, uint32_t>(from, to);
    case 64: return resize<T, uint64_t>(from, to);
    default: doubt("a register of another width than its operand's");
  }
}

// Lanes at hand of any width, read as T.
template <typename T>
const T* seen(int bits, const void* from, T (&room)[WIDTH]) {
  if (bits == 8 * sizeof(T)) return static_cast<const T*>(from);
  if constexpr (sizeof(T) > 8) {
    doubt("a register of another width than its operand's");
  } else {
    resize_from(bits, from, room);
    return room;
  }
}

template <typename T>
const T* shared_address(const Warp& warp, const Slot& slot, T (&room)[WIDTH]) {
  if constexpr (sizeof(T) > 8 || !std::is_integral_v<T>) {
    doubt("the address of a shared variable as a value of this type");
  } else {
    for (T& lane : room) lane = static_cast<T>(slot.value + rank_base(warp));
    return room;
  }
}

template <typename T>
const T* negative(const T* from, T (&room)[WIDTH]) {
  if constexpr (sizeof(T) > 8) {
    doubt("a negated operand of 128 bits");
  } else {
    for (int lane = 0; lane < WIDTH; ++lane) room[lane] = static_cast<T>(T{} - from[lane]);
    return room;
  }
}

template <>
const float* negative(const float* from, float (&room)[WIDTH]) {
  for (int lane = 0; lane < WIDTH; ++lane) room[lane] = -from[lane];
  return room;
}

template <>
const double* negative(const double* from, double (&room)[WIDTH]) {
  for (int lane = 0; lane < WIDTH; ++lane) room[lane] = -from[lane];
  return room;
}

template <typename T>
const T* plain_values(Warp& warp, const Slot& slot, T (&room)[WIDTH]) {
  switch (slot.of) {
    case Slot::REGISTER: return seen(slot.bits, warp.file.data() + slot.offset, room);
    case Slot::CONSTANT: return reinterpret_cast<const T*>(slot.lanes);
    case Slot::SPECIAL: {
      const uint8_t* lanes = special(warp, slot.index);
      return seen(static_cast<int>(warp.specials[slot.index].size()) * 8 / WIDTH, lanes, room);
    }
    case Slot::SHARED: return shared_address(warp, slot, room);
    case Slot::SINK: break;
  }
  doubt("a source that is none");
}

// A value as a wider register holds it: signed types fill with their sign, all others with zeros.
template <typename T>
uint64_t widened(T value) {
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  } else {
    BitsOf<T> bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
  }
}

template <typename U, typename T>
void put_wider(U* to, const T* values, Mask mask) {
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    to[lane] = static_cast<U>(widened(values[lane]));
  }
}

template <typename T>
[[gnu::noinline]] void put_in_other(Warp& warp, const Slot& slot, const T* values, Mask mask) {
  if constexpr (sizeof(T) <= 8) {
    if (slot.of == Slot::REGISTER && slot.bits > 8 * sizeof(T)) {
      if (slot.bits == 16) return put_wider(warp.lanes<uint16_t>(slot.offset), values, mask);
      if (slot.bits == 32) return put_wider(warp.lanes<uint32_t>(slot.offset), values, mask);
      if (slot.bits == 64) return put_wider(warp.lanes<uint64_t>(slot.offset), values, mask);
    }
  }
  doubt("a destination that does not hold a value of this type");
}

}  // namespace

template <typename T>
const T* other_values(Warp& warp, const Slot& slot, T (&room)[WIDTH]) {
  const T* found = plain_values(warp, slot, room);
  return slot.negated ? negative(found, room) : found;
}

Mask predicate(Warp& warp, const Slot& slot) {
  Mask found = 0;
  if (slot.of == Slot::REGISTER && slot.bits == 1) {
    found = warp.predicate(slot.offset);
  } else if (slot.of == Slot::CONSTANT) {
    found = slot.value & 1 ? EVERY : 0;
  } else if (slot.of == Slot::SPECIAL) {
    const uint8_t* lanes = special(warp, slot.index);
    if (warp.specials[slot.index].size() != WIDTH) doubt("a number as a predicate");
    found = lanes[0] ? EVERY : 0;
  } else {
    doubt("a predicate that is none");
  }
  return slot.negated ? ~found : found;
}

template <typename T>
[[gnu::noinline]] void put(Warp& warp, const Slot& slot, const T* values, Mask mask) {
  if (slot.of == Slot::SINK) return;
  if (slot.of != Slot::REGISTER || slot.bits != 8 * sizeof(T))
    return put_in_other(warp, slot, values, mask);
  T* to = warp.lanes<T>(slot.offset);
  if (mask == EVERY) {
    std::memmove(to, values, WIDTH * sizeof(T));
    return;
  }
  for (Mask left = mask; left; left &= left - 1) to[first_lane(left)] = values[first_lane(left)];
}

void put_predicate(Warp& warp, const Slot& slot, Mask value, Mask mask) {
  if (slot.of == Slot::SINK) return;
  if (slot.of != Slot::REGISTER || slot.bits != 1) doubt("a predicate's destination is none");
  Mask& to = warp.predicate(slot.offset);
  to = (to & ~mask) | (value & mask);
}

// generate.address: a base of 64 bits is cut to 32 in the spaces whose addresses are offsets.
void addresses(Warp& warp, const Operand& operand, uint64_t (&out)[WIDTH]) {
  const Slot& base = operand.items[0];
  const uint64_t offset = operand.offset;
  if (base.of == Slot::REGISTER && base.bits == 32 && !base.negated) {
    const uint32_t* from = warp.lanes<uint32_t>(base.offset);
    for (int lane = 0; lane < WIDTH; ++lane) out[lane] = from[lane] + offset;
    return;
  }
  uint64_t room[WIDTH];
  const uint64_t* from = values(warp, base, room);
  const bool cut = base.of == Slot::REGISTER && base.bits == 64 &&
                   (operand.type == "shared" || operand.type == "tensor");
  const uint64_t kept = cut ? 0xffffffffull : ~0ull;
  for (int lane = 0; lane < WIDTH; ++lane) out[lane] = (from[lane] & kept) + offset;
}

#define KERNELPACK_OPERANDS(T)                                        \
  template const T* other_values<T>(Warp&, const Slot&, T(&)[WIDTH]); \
  template void put<T>(Warp&, const Slot&, const T*, Mask)
KERNELPACK_OPERANDS(uint8_t);
KERNELPACK_OPERANDS(int8_t);
KERNELPACK_OPERANDS(uint16_t);
KERNELPACK_OPERANDS(int16_t);
KERNELPACK_OPERANDS(uint32_t);
KERNELPACK_OPERANDS(int32_t);
KERNELPACK_OPERANDS(uint64_t);
KERNELPACK_OPERANDS(int64_t);
KERNELPACK_OPERANDS(float);
KERNELPACK_OPERANDS(double);
KERNELPACK_OPERANDS(Wide);
#undef KERNELPACK_OPERANDS

}  // namespace kernelpack
