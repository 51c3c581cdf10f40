// What a register's lanes are seen as (semantics/views.py).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace kernelpack {

// A lane of 128 bits.
struct Wide {
  uint64_t low, high;
};

template <size_t BYTES>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = uint64_t;
};

// The unsigned integer as wide as T.
template <typename T>
using BitsOf = typename UnsignedOf<sizeof(T)>::type;

// The same bits as another type of the same size.
template <typename To, typename From>
inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "another size");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace kernelpack
