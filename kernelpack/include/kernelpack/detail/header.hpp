// The header of a file: which parts it has and where, checked against the file before any is used.
#pragma once

#include <algorithm>
#include <vector>

#include "file.hpp"
#include "format.hpp"
#include "result.hpp"
#include "text.hpp"

namespace kernelpack::detail {

/// Where a part lies in the file; bytes.
struct Extent {
  std::uint64_t offset, size;
};

struct Header {
  Digest root;
  Extent parts[kParts];

  const Extent& at(Part part) const { return parts[static_cast<std::uint32_t>(part) - 1]; }
};

inline bool holds(const std::vector<std::uint32_t>& tags, std::uint32_t tag) {
  return std::find(tags.begin(), tags.end(), tag) != tags.end();
}

/// Names of the tags that were not found, in order.
template <std::size_t Count>
std::string missing(const std::vector<std::uint32_t>& found, const char* const (&names)[Count]) {
  std::string text;
  for (std::uint32_t tag = 1; tag <= Count; ++tag)
    if (!holds(found, tag)) text += (text.empty() ? "" : ", ") + std::string(names[tag - 1]);
  return text;
}

inline Status check_version(const HeaderRow& row, const std::string& where) {
  if (row.format_major == kMajor) return {};
  const std::string found = decimal(row.format_major) + "." + decimal(row.format_minor);
  const std::string known = decimal(kMajor) + ".x";
  return Error{
      ErrorKind::kBundle, "bundle format " + found + "; this kernelpack reads " + known, where,
      row.format_major > kMajor ? "upgrade kernelpack, or build the bundle with this version"
                                : "build the bundle again with this version"};
}

/// The parts: in order, inside the file, each once.
inline Status read_parts(const File& file, std::string_view table, Header& header) {
  UnsignedWide start = table.size() + sizeof(HeaderRow) + kDigestBytes;
  std::vector<std::uint32_t> found;
  for (std::size_t at = 0; at < table.size(); at += sizeof(PartRow)) {
    const auto row = read_as<PartRow>(table.data() + at);
    const bool is_known = 1 <= row.tag && row.tag <= kParts;
    if (!is_known && row.flags & kRequired)
      return Error{ErrorKind::kBundle,
                   "the file needs part " + decimal(row.tag) + ", which this version does not know",
                   file.where(), "upgrade kernelpack"};
    if (row.offset % kAlign || row.offset < start || holds(found, row.tag))
      return file.refusal("part " + decimal(row.tag) + " at " + decimal(row.offset) +
                          " overlaps another, or is there twice");
    found.push_back(row.tag);
    if (is_known) header.parts[row.tag - 1] = {row.offset, row.size};
    start = UnsignedWide{row.offset} + row.size;
  }
  if (start > file.size())
    return file.refusal("parts that end at " + digits(start, 10) + " in a file of " +
                        decimal(file.size()) + " bytes");
  const std::string lacking = missing(found, kPartNames);
  if (!lacking.empty()) return file.refusal("no part " + lacking);
  return {};
}

/// The header of a file that starts with the magic.
inline Result<Header> read_header(const File& file) {
  const std::string_view data = file.head();
  if (data.size() < sizeof(HeaderRow) + kDigestBytes)
    return file.refusal("truncated: " + decimal(data.size()) + " bytes");
  const auto row = read_as<HeaderRow>(data.data());
  KERNELPACK_CHECK(check_version(row, file.where()));
  if (file.size() != row.file_size)
    return file.refusal((file.size() < row.file_size ? "truncated: " : "bytes after the end: ") +
                        decimal(file.size()) + " bytes where the header says " +
                        decimal(row.file_size));
  const std::uint64_t table_bytes = sizeof(PartRow) * std::uint64_t{row.parts};
  if (row.size != sizeof(HeaderRow) + table_bytes + kDigestBytes || row.size > data.size())
    return file.refusal("a header of " + decimal(row.size) + " bytes cannot hold " +
                        decimal(row.parts) + " parts");
  const std::uint64_t end = row.size - kDigestBytes;
  if (digest_of(data.substr(0, end)) != read_as<Digest>(data.data() + end))
    return file.refusal("the header is not what its digest says");
  if (row.page_bytes != kPageBytes || row.fan_out != kFanOut)
    return file.refusal("pages of " + decimal(row.page_bytes) + " bytes, " + decimal(row.fan_out) +
                        " a node: not format " + decimal(kMajor));
  Header header{row.root, {}};
  KERNELPACK_CHECK(read_parts(file, data.substr(sizeof(HeaderRow), table_bytes), header));
  return header;
}

}  // namespace kernelpack::detail
