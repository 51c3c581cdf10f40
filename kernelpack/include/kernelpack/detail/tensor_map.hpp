// Tensor maps with every number known. Every rule of the TMA unit is checked here, once, before
// any driver is asked. Source: CUDA driver API, `cuTensorMapEncodeTiled`; PTX ISA, "Tensor maps".
#pragma once

#include <string>
#include <vector>

#include "variant.hpp"

namespace kernelpack::detail {

/// Elements for `dims` and `box`, bytes for strides.
struct TensorMap {
  std::string_view name;
  Encoding encoding;
  Wide address;
  std::vector<std::int64_t> dims, strides_bytes, box, element_strides;
};

constexpr int kElementBits[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
constexpr const char* kElementNames[] = {
    "U8",   "U16",  "U32",      "I32",  "U64",      "I64",       "FP16",       "FP32",
    "FP64", "BF16", "FP32_FTZ", "TF32", "TF32_FTZ", "U4_ALIGN8", "U4_ALIGN16", "U6_ALIGN16"};
constexpr const char* kSwizzleNames[] = {
    "NONE", "B32", "B64", "B128", "B128_ATOM32", "B128_ATOM32_FLIP8", "B128_ATOM64"};
constexpr const char* kInterleaveNames[] = {"NONE", "B16", "B32"};
/// The widest inner box of each swizzle, bytes; without one there is no limit.
constexpr int kSpanBytes[] = {0, 32, 64, 128, 128, 128, 128};

inline bool is_padded(Element element) {
  return element == Element::kU4Align16 || element == Element::kU6Align16;
}

/// Whether the TMA unit has a swizzle for a padded type.
inline bool is_swizzled(Element padded, Swizzle swizzle) {
  return swizzle == Swizzle::kNone || swizzle == Swizzle::kB128 ||
         swizzle == Swizzle::kB128Atom32 ||
         (swizzle == Swizzle::kB128Atom64 && padded == Element::kU6Align16);
}

inline bool is_float(Element element) {
  return (Element::kFp16 <= element && element <= Element::kTf32Ftz);
}

/// A rule that a map breaks, and the value that breaks it.
inline Error broken(const TensorMap& map, const std::string& rule, const std::string& value) {
  return {ErrorKind::kTensorMap, rule + ", not " + value, "tensor map " + quoted(map.name), {}};
}

inline Status check_shape(const TensorMap& m) {
  const std::size_t rank = m.dims.size();
  if (rank < 1 || rank > 5) return broken(m, "the rank must be 1 to 5", decimal(rank));
  if (m.strides_bytes.size() != rank - 1)
    return broken(m, "strides: one fewer than dims", tuple(m.strides_bytes));
  if (m.box.size() != rank) return broken(m, "the box must have the rank of dims", tuple(m.box));
  if (m.element_strides.size() != rank)
    return broken(m, "element strides: one a dim", tuple(m.element_strides));
  for (const std::int64_t size : m.dims)
    if (size < 1 || size > std::int64_t{1} << 32)
      return broken(m, "a dimension must be 1 to 2^32 elements", decimal(size));
  for (const std::int64_t stride : m.element_strides)
    if (stride < 1 || stride > 8)
      return broken(m, "an element stride must be 1 to 8", decimal(stride));
  return {};
}

inline Status check_memory(const TensorMap& m) {
  const bool is_wide = m.encoding.interleave == Interleave::kB32 || is_padded(m.encoding.element);
  const int align = is_wide ? 32 : 16;
  const std::string multiple = " must be a multiple of " + decimal(align) + " bytes";
  if (m.address < 0 || m.address >> 64)
    return broken(m, "the address must fit in 64 bits", hexadecimal(m.address));
  if (m.address % align) return broken(m, "the address" + multiple, hexadecimal(m.address));
  for (const std::int64_t stride : m.strides_bytes) {
    if (stride % align) return broken(m, "a stride" + multiple, decimal(stride));
    if (stride < 0 || stride >> 40)
      return broken(m, "a stride must be below 2^40 bytes", decimal(stride));
  }
  return {};
}

inline Status check_box(const TensorMap& m) {
  const Encoding& encoding = m.encoding;
  for (const std::int64_t size : m.box)
    if (size < 1 || size > 256)
      return broken(m, "a box side must be 1 to 256 elements", decimal(size));
  if (encoding.interleave != Interleave::kNone) return {};
  const std::int64_t bits = m.box[0] * kElementBits[static_cast<std::uint32_t>(encoding.element)];
  if (bits % 128)
    return broken(m, "the inner box must be a multiple of 16 bytes",
                  general(static_cast<double>(bits) / 8));
  const auto swizzle = static_cast<std::uint32_t>(encoding.swizzle);
  const std::int64_t held = is_padded(encoding.element) ? 128 : bits / 8;
  if (encoding.swizzle != Swizzle::kNone && held > kSpanBytes[swizzle])
    return broken(m,
                  std::string("the inner box must fit the ") + kSwizzleNames[swizzle] +
                      " swizzle's " + decimal(kSpanBytes[swizzle]) + " bytes",
                  decimal(held));
  return {};
}

inline Status check_element(const TensorMap& m) {
  const Element element = m.encoding.element;
  if (is_padded(element)) {
    if (m.box[0] != 128)
      return broken(m, "the inner box of a padded type must be 128", decimal(m.box[0]));
    if (m.dims[0] % 128)
      return broken(m, "dim 0 of a padded type: multiple of 128", decimal(m.dims[0]));
    if (!is_swizzled(element, m.encoding.swizzle))
      return broken(m,
                    std::string("the swizzle of ") +
                        kElementNames[static_cast<std::uint32_t>(element)] +
                        " must be one of NONE, B128, B128_ATOM32" +
                        (element == Element::kU6Align16 ? ", B128_ATOM64" : ""),
                    kSwizzleNames[static_cast<std::uint32_t>(m.encoding.swizzle)]);
  }
  if (element == Element::kU4Align8 && m.dims[0] % 2)
    return broken(m, "dimension 0 of packed nibbles must be even", decimal(m.dims[0]));
  if (m.encoding.fill == Fill::kNan && !is_float(element))
    return broken(m, "NaN fill needs a float element",
                  kElementNames[static_cast<std::uint32_t>(element)]);
  return {};
}

inline Status check_interleave(const TensorMap& m) {
  const Encoding& encoding = m.encoding;
  if (encoding.interleave == Interleave::kNone) return {};
  if (m.dims.size() < 3)
    return broken(m, "the rank of an interleaved map must be 3 to 5", decimal(m.dims.size()));
  if (is_padded(encoding.element))
    return broken(m, "a padded type must not be interleaved",
                  kInterleaveNames[static_cast<std::uint32_t>(encoding.interleave)]);
  if (encoding.interleave == Interleave::kB32 && encoding.swizzle != Swizzle::kB32)
    return broken(m, "the swizzle of interleave B32 must be B32",
                  kSwizzleNames[static_cast<std::uint32_t>(encoding.swizzle)]);
  return {};
}

/// PTX ISA, 5.5.3.4: four rows of a 2D tensor, each named by an int32, in boxes of one row.
inline Status check_gather4(const TensorMap& m) {
  if (m.dims.size() != 2)
    return broken(m, "the rank of a map for gather4 must be 2", decimal(m.dims.size()));
  if (m.box[1] != 1)
    return broken(m, "a box of a map for gather4 must be of one row", decimal(m.box[1]));
  if (m.dims[1] > std::int64_t{1} << 31)
    return broken(m, "rows of a map for gather4 must be numbers below 2^31", decimal(m.dims[1]));
  return {};
}

/// Check a map against every rule of the TMA unit.
inline Status check(const TensorMap& map) {
  KERNELPACK_CHECK(check_shape(map));
  KERNELPACK_CHECK(check_memory(map));
  KERNELPACK_CHECK(check_box(map));
  KERNELPACK_CHECK(check_element(map));
  KERNELPACK_CHECK(check_interleave(map));
  return map.encoding.is_for_gather4 ? check_gather4(map) : Status{};
}

inline Result<std::vector<std::int64_t>> evaluate_all(const Expressions& expressions,
                                                      const Values& sizes) {
  std::vector<std::int64_t> numbers;
  for (const Expression* expression : expressions) {
    KERNELPACK_TRY(number, evaluate(*expression, sizes));
    numbers.push_back(number);
  }
  return numbers;
}

/// The map of one call, over an argument at a device address.
inline Result<TensorMap> resolve(const MapSpec& spec, const Values& sizes, std::uint64_t address) {
  KERNELPACK_TRY(offset_bytes, evaluate(*spec.offset_bytes, sizes));
  KERNELPACK_TRY(dims, evaluate_all(spec.dims, sizes));
  KERNELPACK_TRY(strides_bytes, evaluate_all(spec.strides_bytes, sizes));
  KERNELPACK_TRY(box, evaluate_all(spec.box, sizes));
  KERNELPACK_TRY(element_strides, evaluate_all(spec.element_strides, sizes));
  if (element_strides.empty()) element_strides.assign(dims.size(), 1);
  TensorMap map{spec.name,
                spec.encoding,
                Wide{address} + offset_bytes,
                std::move(dims),
                std::move(strides_bytes),
                std::move(box),
                std::move(element_strides)};
  KERNELPACK_CHECK(check(map));
  return map;
}

}  // namespace kernelpack::detail
