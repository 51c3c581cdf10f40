// The bytes of a `.kpk` file, version 1.2, as docs/reference/bundle.md lists them: every row and
// record has the layout of a struct here, so reading one is a copy. Numbers are little-endian, as
// is every host that has an NVIDIA GPU.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "sha256.hpp"

namespace kernelpack::detail {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "bundles are read by copying");

constexpr std::string_view kMagic = "\x89KPK\r\n\x1a\n";
constexpr std::uint16_t kMajor = 1;
constexpr std::uint64_t kAlign = 8;
constexpr std::uint64_t kDigestBytes = 32;
constexpr std::uint64_t kPageBytes = 1024;
constexpr std::uint64_t kFanOut = 16;
constexpr std::uint32_t kRequired = 1;

constexpr std::uint64_t kMaxHeaderBytes = 4096;
constexpr std::uint64_t kMaxImageBytes = 256 << 20;
constexpr std::uint64_t kMaxDictionaryBytes = 16 << 20;
constexpr std::uint64_t kMaxDocumentsBytes = 256 << 20;
constexpr std::uint32_t kMaxItems = 1024;
constexpr std::uint32_t kMaxTextBytes = 4096;
constexpr std::uint32_t kMaxTargets = 1024;
constexpr std::uint32_t kMaxWords = 4096;
constexpr std::uint32_t kMaxDepth = 64;
constexpr std::uint32_t kMaxSections = 64;
constexpr std::uint64_t kMaxStride = 4096;

constexpr const char* kDamaged = "the file is damaged: fetch it or build it again";

// clang-format off
enum class Part : std::uint32_t {
  kIndex = 1, kTree, kFrames, kDictionary, kDocuments, kImages, kSignature
};
enum class Section : std::uint32_t {
  kTargets = 1, kKernels, kProvenance, kStrings, kEntries, kImages, kRecords, kNumbers
};
enum class Kind : std::uint32_t {
  kExpression = 1, kName, kArgument, kPointer, kScalar, kMap, kGuard, kConstant, kLaunch, kVariant,
  kNumber, kNumberParam
};

/// Names of parts, sections and kinds, for messages; the first number is 1.
constexpr const char* kPartNames[] = {"index",     "tree",   "frames",   "dictionary",
                                      "documents", "images", "signature"};
constexpr const char* kSectionNames[] = {"targets", "kernels", "provenance", "strings",
                                         "entries", "images",  "records",    "numbers"};
constexpr const char* kKindNames[] = {"expression", "name",  "argument", "pointer", "scalar",
                                      "map",        "guard", "constant", "launch",  "variant",
                                      "number",     "number_param"};
constexpr std::uint32_t kParts = 7, kSections = 8;

/// A string: where it lies in `strings`.
struct Text { std::uint32_t offset, size; };
/// Numbers: where they lie in `records`.
struct List { std::uint32_t offset, count; };
/// The place of a record in `records`.
using Ref = std::uint32_t;

struct HeaderRow {
  char magic[8];
  std::uint16_t format_major, format_minor;
  std::uint32_t size;
  std::uint64_t file_size;
  std::uint32_t parts, page_bytes, fan_out, compressor;
  Digest root;
};
struct PartRow { std::uint32_t tag, flags; std::uint64_t offset, size; Digest digest; };
struct FrameRow { std::uint64_t offset, size; };

struct IndexHead {
  std::uint32_t holds, sections;
  std::uint64_t size, documents_bytes;
  Digest documents_digest;
};
struct SectionRow { std::uint32_t tag, flags; std::uint64_t offset, count, stride; };

struct TargetRow { Text name; List capabilities; };
struct KernelRow { Text stem; std::uint32_t abi, sizes; List names, entries; };
struct ProvenanceRow { Text key, value; };
struct EntryRow {
  Digest id_digest, source_digest, ptx_digest;
  std::uint32_t image, kernel, target;
  Ref variant;
  Text id, symbol;
  std::uint32_t registers, shared_bytes, stack_bytes, spill_bytes, parameter_bytes, zero;
};
struct ImageRow { Digest digest; std::uint64_t size; };
struct NumberRow { std::uint32_t kernel, zero; List numbers; };

using PublicKey = std::array<std::uint8_t, 32>;
using Signature = std::array<std::uint8_t, 64>;
struct SignatureRow { std::uint32_t algorithm, zero; PublicKey owner; Signature signature; };

struct RecordHead { std::uint32_t kind, size; };
struct ExpressionFields { Text text; std::uint32_t words, depth; };
struct NameFields { Text name, doc; };
struct ArgumentFields { Text name; std::uint32_t dtype, access, align_bytes, zero; List shape; };
struct PointerFields { Text name; std::uint32_t offset, size, argument, zero; };
struct ScalarFields { Text name; std::uint32_t offset, size, dtype; Ref value; };
struct MapFields {
  Text name, map_name;
  std::uint32_t offset, size, argument, element, swizzle, interleave, fill, promotion;
  Ref offset_bytes;
  std::uint32_t flags;
  List dims, strides_bytes, box, element_strides;
};
struct GuardFields { Ref when; std::uint32_t zero; Text reason; };
struct ConstantFields { Text name; std::uint32_t is_text, zero; std::int64_t value; };
struct LaunchFields {
  std::uint32_t flags;
  Ref shared_bytes, grid[3], block[3], cluster[3];
  std::uint32_t zero;
};
struct VariantFields {
  std::uint32_t kernel;
  Ref launch, cost, workspace_bytes;
  Text template_path;
  List axes, constants, arguments, params, guards;
  std::int64_t registers, shared_bytes, tensor_memory_columns;
};
struct NumberFields { Text name, doc; std::uint32_t has_default, zero; double default_value; };
struct NumberParamFields { Text name; std::uint32_t offset, size, dtype, number; };
struct Word { std::uint8_t op, wide; std::uint16_t zero; std::int32_t operand; };
// clang-format on

static_assert(sizeof(HeaderRow) == 72 && sizeof(PartRow) == 56 && sizeof(FrameRow) == 16);
static_assert(sizeof(SignatureRow) == 104);
static_assert(sizeof(IndexHead) == 56 && sizeof(SectionRow) == 32);
static_assert(sizeof(TargetRow) == 16 && sizeof(KernelRow) == 32 && sizeof(ProvenanceRow) == 16);
static_assert(sizeof(EntryRow) == 152 && sizeof(ImageRow) == 40 && sizeof(RecordHead) == 8);
static_assert(sizeof(ExpressionFields) == 16 && sizeof(NameFields) == 16 && sizeof(Word) == 8);
static_assert(sizeof(ArgumentFields) == 32 && sizeof(PointerFields) == 24);
static_assert(sizeof(ScalarFields) == 24 && sizeof(MapFields) == 88 && sizeof(GuardFields) == 16);
static_assert(sizeof(NumberRow) == 16 && sizeof(NumberFields) == 32);
static_assert(sizeof(NumberParamFields) == 24);
static_assert(sizeof(ConstantFields) == 24 && sizeof(LaunchFields) == 48 &&
              sizeof(VariantFields) == 88);

// clang-format off
/// Which section a row is of, and which kind a record's fields are of.
template <class Row> struct SectionOf;
template <> struct SectionOf<TargetRow> { static constexpr Section value = Section::kTargets; };
template <> struct SectionOf<KernelRow> { static constexpr Section value = Section::kKernels; };
template <> struct SectionOf<ProvenanceRow> { static constexpr Section value = Section::kProvenance; };
template <> struct SectionOf<EntryRow> { static constexpr Section value = Section::kEntries; };
template <> struct SectionOf<ImageRow> { static constexpr Section value = Section::kImages; };
template <> struct SectionOf<NumberRow> { static constexpr Section value = Section::kNumbers; };

template <class Fields> struct KindOf;
template <> struct KindOf<ExpressionFields> { static constexpr Kind value = Kind::kExpression; };
template <> struct KindOf<NameFields> { static constexpr Kind value = Kind::kName; };
template <> struct KindOf<ArgumentFields> { static constexpr Kind value = Kind::kArgument; };
template <> struct KindOf<PointerFields> { static constexpr Kind value = Kind::kPointer; };
template <> struct KindOf<ScalarFields> { static constexpr Kind value = Kind::kScalar; };
template <> struct KindOf<MapFields> { static constexpr Kind value = Kind::kMap; };
template <> struct KindOf<GuardFields> { static constexpr Kind value = Kind::kGuard; };
template <> struct KindOf<ConstantFields> { static constexpr Kind value = Kind::kConstant; };
template <> struct KindOf<LaunchFields> { static constexpr Kind value = Kind::kLaunch; };
template <> struct KindOf<VariantFields> { static constexpr Kind value = Kind::kVariant; };
template <> struct KindOf<NumberFields> { static constexpr Kind value = Kind::kNumber; };
template <> struct KindOf<NumberParamFields> { static constexpr Kind value = Kind::kNumberParam; };
// clang-format on

/// A struct of this file, or a number, from its bytes.
template <class Value>
Value read_as(const void* bytes) {
  static_assert(std::is_trivially_copyable_v<Value>);
  Value value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace kernelpack::detail
