// A variant: one kernel with all its constants, and everything needed to choose and launch it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "expression.hpp"
#include "targets.hpp"

namespace kernelpack {

class Bundle;

/// A device's compute capability, such as 9.0.
struct Capability {
  int major_number, minor_number;

  bool operator==(const Capability& other) const {
    return major_number == other.major_number && minor_number == other.minor_number;
  }
  std::string text() const {
    return std::to_string(major_number) + "." + std::to_string(minor_number);
  }
};

/// An element type; the numbers are those of bundles.
// clang-format off
enum class DType : std::uint32_t {
  kU8, kI8, kU16, kI16, kU32, kI32, kU64, kI64, kFp16, kBf16, kFp32, kFp64, kTf32,
  kE4m3, kE5m2, kE2m3, kE3m2, kE2m1, kUe8m0, kUe4m3
};
// clang-format on

namespace detail {

struct DTypeFacts {
  const char* label;
  int bits;
  bool is_signed;

  bool is_integer() const { return label[0] == 'i' || (label[0] == 'u' && label[1] != 'e'); }
};
constexpr DTypeFacts kDTypes[] = {
    {"u8", 8, false},   {"i8", 8, true},    {"u16", 16, false},  {"i16", 16, true},
    {"u32", 32, false}, {"i32", 32, true},  {"u64", 64, false},  {"i64", 64, true},
    {"fp16", 16, true}, {"bf16", 16, true}, {"fp32", 32, true},  {"fp64", 64, true},
    {"tf32", 32, true}, {"e4m3", 8, true},  {"e5m2", 8, true},   {"e2m3", 6, true},
    {"e3m2", 6, true},  {"e2m1", 4, true},  {"ue8m0", 8, false}, {"ue4m3", 8, false}};
constexpr std::uint32_t kDTypeCount = 20;

inline const DTypeFacts& facts(DType dtype) { return kDTypes[static_cast<std::uint32_t>(dtype)]; }

constexpr std::uint64_t kTensorMapBytes = 128, kTensorMapAlign = 64, kPointerBytes = 8;

// The numbers of elements, swizzles and the rest are the driver's (CUtensorMap…).
// clang-format off
enum class Element : std::uint32_t {
  kU8, kU16, kU32, kI32, kU64, kI64, kFp16, kFp32, kFp64, kBf16, kFp32Ftz, kTf32, kTf32Ftz,
  kU4Align8, kU4Align16, kU6Align16
};
enum class Swizzle : std::uint32_t {
  kNone, kB32, kB64, kB128, kB128Atom32, kB128Atom32Flip8, kB128Atom64
};
enum class Interleave : std::uint32_t { kNone, kB16, kB32 };
enum class Fill : std::uint32_t { kZero, kNan };
enum class Promotion : std::uint32_t { kNone, kL2By64, kL2By128, kL2By256 };
// clang-format on

constexpr std::uint32_t kElements = 16, kSwizzles = 7, kInterleaves = 3, kFills = 2,
                        kPromotions = 4;

/// What stays the same whatever the problem is.
struct Encoding {
  Element element;
  Swizzle swizzle;
  Interleave interleave;
  Fill fill;
  Promotion promotion;
  bool is_for_gather4;  // rows are copied by tile::gather4 or scatter4, which have rules of their
                        // own
};

using Expressions = std::vector<const Expression*>;

/// A tensor map as a manifest describes it; dimension 0 is innermost, strides those of 1 and up.
struct MapSpec {
  std::string_view name;
  Encoding encoding;
  Expressions dims, strides_bytes, box, element_strides;
  const Expression* offset_bytes;
};

/// Where a parameter lies in the kernel's parameter block; bytes.
struct Slot {
  std::uint64_t offset, size;

  bool operator==(const Slot& other) const { return offset == other.offset && size == other.size; }
};

/// Where a parameter's value comes from: an argument's address, an integer computed from the
/// sizes, a number of the call, or a tensor map over an argument. Arguments and numbers are named
/// by their place.
struct PointerParam {
  std::uint32_t argument;
};
struct ScalarParam {
  DType dtype;
  const Expression* value;
};
struct NumberParam {
  DType dtype;
  std::uint32_t number;
};
struct MapParam {
  std::uint32_t argument;
  MapSpec map;
};

struct Param {
  std::string_view name;
  Slot slot;  // as the cubin has it
  std::variant<PointerParam, ScalarParam, NumberParam, MapParam> source;

  /// Its size and alignment in the C ABI, which are one number but for tensor maps.
  std::pair<std::uint64_t, std::uint64_t> size_and_align() const {
    if (std::holds_alternative<MapParam>(source)) return {kTensorMapBytes, kTensorMapAlign};
    std::uint64_t bytes = kPointerBytes;
    if (const auto* scalar = std::get_if<ScalarParam>(&source))
      bytes = facts(scalar->dtype).bits / 8;
    if (const auto* number = std::get_if<NumberParam>(&source))
      bytes = facts(number->dtype).bits / 8;
    return {bytes, bytes};
  }
};

/// The C ABI's places of a signature: each parameter at the next multiple of its alignment.
///
/// Machine code aligns addresses in its constant bank, where the parameters begin at `base`.
inline std::vector<Slot> layout(const std::vector<const Param*>& params, std::uint64_t base) {
  std::vector<Slot> slots;
  std::uint64_t end = 0;
  for (const Param* param : params) {
    const auto [size, align] = param->size_and_align();
    const std::uint64_t offset = (base + end + align - 1) / align * align - base;
    slots.push_back({offset, size});
    end = offset + size;
  }
  return slots;
}

/// A claim that a problem must meet to be served, and why, for the one who is refused.
struct Guard {
  const Expression* when;
  std::string_view reason;
};

/// Grid, block and cluster, and dynamic shared memory in bytes.
struct LaunchSpec {
  const Expression* grid[3];
  const Expression* block[3];
  const Expression* cluster[3];
  const Expression* shared_bytes;
  bool is_programmatic;
};

/// An axis or a constant: an integer, or a text.
struct Constant {
  std::string_view name;
  std::variant<std::int64_t, std::string_view> value;

  std::string value_text() const {
    const auto* number = std::get_if<std::int64_t>(&value);
    return number ? decimal(*number) : std::string(std::get<std::string_view>(value));
  }
};

/// A real number of a call, what it means, and what it is where it is not given.
struct Number {
  std::string_view name, doc;
  std::optional<double> otherwise;
};

/// What the variants of one kernel have in common.
struct Kernel {
  std::string_view stem;
  std::uint32_t abi;
  std::uint32_t sizes;                  // how many names are those of sizes
  std::vector<std::string_view> names;  // the problem's sizes, then the device's
  std::vector<Number> numbers;
};

}  // namespace detail

/// What a kernel does with an argument's memory.
enum class Access : std::uint32_t { kRead, kWrite, kReadWrite };

/// An array that the caller gives.
struct Argument {
  std::string_view name;
  DType dtype;
  detail::Expressions shape;
  Access access;
  std::uint32_t align_bytes;
};

/// One kernel with its constants. Its texts lie in the bundle, which must outlive it.
struct Variant {
  std::string_view id, symbol, target;
  const detail::Limits* limits;  // of a launch on that target
  const detail::Kernel* kernel;
  std::vector<Capability> capabilities;       // of the devices that its machine code runs on
  std::vector<const detail::Constant*> axes;  // what makes it this variant
  std::vector<const Argument*> arguments;
  std::vector<const detail::Param*> params;
  std::vector<const detail::Guard*> guards;
  detail::LaunchSpec launch;
  const detail::Expression* cost;
  const detail::Expression* workspace_bytes;
  std::int64_t static_shared_bytes;
  const Bundle* bundle;  // that holds it
  std::uint64_t row;     // in the bundle's table of entries

  bool runs_on(Capability capability) const {
    for (const Capability& known : capabilities)
      if (known == capability) return true;
    return false;
  }
};

}  // namespace kernelpack
