// The arithmetic of reducing copies (models/reduction.py): old and new elements to what memory then
// holds. Halves are left to Python, and so is a result that is not a number.
#pragma once

#include <cmath>
#include <type_traits>

#include "program.hpp"

namespace kernelpack {

// Reduces `bytes` of new elements into old ones.
using Reduce = void (*)(uint8_t* old, const uint8_t* fresh, size_t bytes);

namespace reductions {

enum class Do { ADD, MIN, MAX, INC, DEC, AND, OR, XOR };

template <typename T, Do what>
T combined(T old, T fresh) {
  if constexpr (std::is_floating_point_v<T>) {
    const T sum = old + fresh;
    if (std::isnan(sum)) doubt("a reduction whose result is not a number");
    return sum;
  } else {
    using Bits = std::make_unsigned_t<T>;
    switch (what) {
      case Do::ADD: return static_cast<T>(static_cast<Bits>(old) + static_cast<Bits>(fresh));
      case Do::MIN: return old < fresh ? old : fresh;
      case Do::MAX: return old > fresh ? old : fresh;
      case Do::INC: return old >= fresh ? 0 : old + 1;
      case Do::DEC: return old == 0 || old > fresh ? fresh : old - 1;
      case Do::AND: return old & fresh;
      case Do::OR: return old | fresh;
      case Do::XOR: return old ^ fresh;
    }
  }
}

template <typename T, Do what>
void reduce(uint8_t* old, const uint8_t* fresh, size_t bytes) {
  for (size_t at = 0; at < bytes; at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, old + at, sizeof a);
    std::memcpy(&b, fresh + at, sizeof b);
    a = combined<T, what>(a, b);
    std::memcpy(old + at, &a, sizeof a);
  }
}

template <typename T>
Reduce of_whole(const std::string& what) {
  if (what == "add") return reduce<T, Do::ADD>;
  if (what == "min") return reduce<T, Do::MIN>;
  if (what == "max") return reduce<T, Do::MAX>;
  if (what == "and") return reduce<T, Do::AND>;
  if (what == "or") return reduce<T, Do::OR>;
  if (what == "xor") return reduce<T, Do::XOR>;
  return nullptr;
}

}  // namespace reductions

// The reduction of a PTX type (`b32`: unsigned); null where the core has none.
inline Reduce reduction_of(const std::string& what, const std::string& type) {
  using namespace reductions;
  if (type == "f32") return what == "add" ? reduce<float, Do::ADD> : nullptr;
  if (type == "f64") return what == "add" ? reduce<double, Do::ADD> : nullptr;
  if (type == "u32" && what == "inc") return reduce<uint32_t, Do::INC>;
  if (type == "u32" && what == "dec") return reduce<uint32_t, Do::DEC>;
  if (type == "u32" || type == "b32") return of_whole<uint32_t>(what);
  if (type == "u64" || type == "b64") return of_whole<uint64_t>(what);
  if (type == "s32") return of_whole<int32_t>(what);
  if (type == "s64") return of_whole<int64_t>(what);
  return nullptr;
}

// Which of the operations a form names.
inline std::string operation_of(const Form& form) {
  return form.one_of({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
}

}  // namespace kernelpack
