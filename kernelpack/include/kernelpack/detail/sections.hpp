// The sections of an index: rows, strings, records and lists, each checked before it is read.
//
// Everything comes through `CheckedIndex`, so what is read here is what the root covers; the
// checks here are against an index that was made to hurt.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "tree.hpp"

namespace kernelpack::detail {

/// What a list holds: refs, or row numbers.
class Items {
public:
  Items(const char* bytes, std::uint32_t count) : bytes_(bytes), count_(count) {}
  std::uint32_t size() const { return count_; }
  std::uint32_t operator[](std::uint32_t place) const {
    return read_as<std::uint32_t>(bytes_ + std::size_t{4} * place);
  }

private:
  const char* bytes_;
  std::uint32_t count_;
};

/// A record's fields, and the bytes after them.
template <class Fields>
struct Recorded {
  Fields fields;
  std::string_view tail;
};

class Sections {
public:
  static Result<Sections> open(std::unique_ptr<CheckedIndex> index, const std::string& where) {
    Sections sections(std::move(index), where);
    KERNELPACK_CHECK(sections.read_head());
    return sections;
  }

  bool holds_ptx() const { return head_.holds == 1; }
  const std::string& where() const { return where_; }

  /// The error for an index that is wrong.
  Error refusal(std::string what) const {
    return {ErrorKind::kBundle, std::move(what), where_, kDamaged};
  }

  /// How many rows a section has; none where it is not there.
  std::uint64_t count(Section section) const { return rows(section).count; }

  template <class Row>
  Result<Row> row(std::uint64_t number) const {
    const Rows& table = rows(SectionOf<Row>::value);
    if (number >= table.count)
      return refusal("row " + decimal(number) + " of " + name(SectionOf<Row>::value) +
                     ", which has " + decimal(table.count));
    KERNELPACK_TRY(bytes, index_->read(table.offset + number * table.stride, sizeof(Row)));
    return read_as<Row>(bytes);
  }

  /// The row of a table that is sorted by its first field, a digest; nothing where there is none.
  ///
  /// Unchecked bytes say where to look, and only what is found there is checked; where they lead
  /// to nothing, the search is made again on checked bytes.
  template <class Row>
  Result<std::optional<std::uint64_t>> search(const Digest& digest) const {
    const Rows& table = rows(SectionOf<Row>::value);
    KERNELPACK_TRY(near, guess(table, digest));
    KERNELPACK_TRY(is_near, is_at(table, near, digest));
    if (is_near) return std::optional(near);
    KERNELPACK_TRY(found, bisect(table, digest));
    KERNELPACK_TRY(is_found, is_at(table, found, digest));
    return is_found ? std::optional(found) : std::nullopt;
  }

  Result<std::string_view> text(Text at) const {
    const Rows& strings = rows(Section::kStrings);
    if (at.size > kMaxTextBytes || std::uint64_t{at.offset} + at.size > strings.count)
      return refusal("a text of " + decimal(at.size) + " bytes at " + decimal(at.offset) +
                     " leaves the strings or is too long");
    KERNELPACK_TRY(bytes, index_->read(strings.offset + at.offset, at.size));
    const std::string_view text(bytes, at.size);
    if (is_utf8(text)) return text;
    return refusal("the text of " + decimal(at.size) + " bytes at " + decimal(at.offset) +
                   " is not UTF-8");
  }

  Result<Items> list(List at, std::uint64_t most = kMaxItems) const {
    if (at.count > most)
      return refusal("a list of " + decimal(at.count) + " items; at most " + decimal(most));
    KERNELPACK_TRY(bytes, words(at.offset, 4 * std::uint64_t{at.count}));
    return Items(bytes, at.count);
  }

  /// The kind and the size in bytes of a record.
  Result<RecordHead> head(Ref ref) const {
    KERNELPACK_TRY(bytes, words(ref, sizeof(RecordHead)));
    const auto head = read_as<RecordHead>(bytes);
    if (head.size < sizeof(RecordHead) || head.size % kAlign)
      return refusal("a record of " + decimal(head.size) + " bytes at " + decimal(ref));
    return head;
  }

  template <class Fields>
  Result<Recorded<Fields>> record(Ref ref) const {
    constexpr auto kind = static_cast<std::uint32_t>(KindOf<Fields>::value);
    constexpr std::uint64_t least = sizeof(RecordHead) + sizeof(Fields);
    KERNELPACK_TRY(found, head(ref));
    if (found.kind != kind || found.size < least)
      return refusal("record " + decimal(ref) + " is of kind " + decimal(found.kind) + ", " +
                     decimal(found.size) + " bytes; not " + kKindNames[kind - 1]);
    KERNELPACK_TRY(bytes, words(ref, found.size));
    const std::string_view tail(bytes + least, found.size - least);
    return Recorded<Fields>{read_as<Fields>(bytes + sizeof(RecordHead)), tail};
  }

private:
  /// Where a section lies in the index, its number of rows and the bytes of one.
  struct Rows {
    std::uint64_t offset, count, stride;
  };

  Sections(std::unique_ptr<CheckedIndex> index, const std::string& where)
      : index_(std::move(index)), where_(where) {}

  static std::string name(Section section) {
    return kSectionNames[static_cast<std::uint32_t>(section) - 1];
  }

  const Rows& rows(Section section) const { return rows_[static_cast<std::uint32_t>(section) - 1]; }

  Status read_head() {
    if (index_->size() < sizeof(IndexHead))
      return refusal("an index of " + decimal(index_->size()) + " bytes has no head");
    KERNELPACK_TRY(bytes, index_->read(0, sizeof(IndexHead)));
    head_ = read_as<IndexHead>(bytes);
    if (head_.size != index_->size() || head_.documents_bytes > kMaxDocumentsBytes ||
        head_.sections > kMaxSections)
      return refusal("index head: " + decimal(head_.size) + " bytes, " + decimal(head_.sections) +
                     " sections, " + decimal(head_.documents_bytes) + " of documents");
    if (head_.holds > 1)
      return refusal("images of kind " + decimal(head_.holds) +
                     ", which this version does not know");
    return read_table();
  }

  /// The sections: in order, inside the index, each once.
  Status read_table() {
    UnsignedWide start = sizeof(IndexHead) + sizeof(SectionRow) * std::uint64_t{head_.sections};
    if (start > index_->size())
      return refusal(decimal(head_.sections) + " sections do not fit an index of " +
                     decimal(index_->size()) + " bytes");
    std::vector<std::uint32_t> found;
    for (std::uint32_t number = 0; number < head_.sections; ++number) {
      const std::uint64_t at = sizeof(IndexHead) + sizeof(SectionRow) * std::uint64_t{number};
      KERNELPACK_TRY(bytes, index_->read(at, sizeof(SectionRow)));
      const auto row = read_as<SectionRow>(bytes);
      KERNELPACK_CHECK(check_section(row));
      const bool is_known = 1 <= row.tag && row.tag <= kSections;
      if (row.offset % kAlign || row.offset < start || holds(found, row.tag))
        return refusal("section " + decimal(row.tag) + " overlaps another, or is there twice");
      found.push_back(row.tag);
      if (is_known) rows_[row.tag - 1] = {row.offset, row.count, row.stride};
      start = row.offset + UnsignedWide{row.count} * row.stride;
    }
    if (start > index_->size())
      return refusal("sections of " + digits(start, 10) + " bytes in an index of " +
                     decimal(index_->size()));
    found.push_back(static_cast<std::uint32_t>(Section::kNumbers));  // need not be there
    const std::string lacking = missing(found, kSectionNames);
    if (!lacking.empty()) return refusal("no section " + lacking);
    return {};
  }

  /// Rows as wide as this version writes them, or wider: a minor version may append to them.
  Status check_section(const SectionRow& row) const {
    constexpr std::uint64_t written[] = {sizeof(TargetRow),
                                         sizeof(KernelRow),
                                         sizeof(ProvenanceRow),
                                         1,
                                         sizeof(EntryRow),
                                         sizeof(ImageRow),
                                         kAlign,
                                         sizeof(NumberRow)};
    const bool is_known = 1 <= row.tag && row.tag <= kSections;
    if (!is_known && row.flags & kRequired)
      return Error{
          ErrorKind::kBundle,
          "the index needs section " + decimal(row.tag) + ", which this version does not know",
          where_, "upgrade kernelpack"};
    const auto section = static_cast<Section>(row.tag);
    const bool is_fixed = section == Section::kStrings || section == Section::kRecords;
    const std::uint64_t least = is_known ? written[row.tag - 1] : 0;
    const std::uint64_t most = is_fixed ? least : is_known ? kMaxStride : row.stride;
    if (row.stride < least || row.stride > most ||
        (row.stride % kAlign && section != Section::kStrings))
      return refusal("rows of " + decimal(row.stride) + " bytes in section " + decimal(row.tag));
    return {};
  }

  Result<const char*> words(std::uint64_t offset, std::uint64_t size) const {
    const Rows& records = rows(Section::kRecords);
    if (offset % kAlign || offset + size > records.count * records.stride)
      return refusal(decimal(size) + " bytes at " + decimal(offset) + " leave the records");
    return index_->read(records.offset + offset, size);
  }

  /// Digests are spread evenly, so one gives its place: of n rows, to within a few times sqrt(n).
  /// The rows found there are closer, and give it to within the root of that; and so on.
  Result<std::uint64_t> guess(const Rows& table, const Digest& digest) const {
    std::uint64_t row = rows_between(Digest{}, digest, table.count);
    for (const std::uint64_t reach : {1, 16, 16, 16}) {
      const std::uint64_t first = row > reach ? row - reach : 0;
      const std::uint64_t last = std::min(table.count, row + reach);
      if (first == last) break;
      KERNELPACK_TRY(
          rows, index_->peek(table.offset + first * table.stride, (last - first) * table.stride));
      row = first + lower_bound(rows, table.stride, digest);
      const bool is_before = row == first && first, is_after = row == last && last < table.count;
      if (!is_before && !is_after) break;
      const std::uint64_t edge = is_before ? first : last - 1;
      const auto known = read_as<Digest>(rows.data() + (edge - first) * table.stride);
      const std::uint64_t away = is_before ? rows_between(digest, known, table.count)
                                           : rows_between(known, digest, table.count);
      row = is_before ? edge - std::min(edge, away) : std::min(table.count, edge + away);
    }
    return row;
  }

  /// How many of some digests that are spread evenly lie between two.
  static std::uint64_t rows_between(const Digest& low, const Digest& high, std::uint64_t count) {
    const auto start = [](const Digest& digest) {
      std::uint64_t number = 0;
      for (int i = 0; i < 8; ++i) number = number << 8 | digest[i];
      return number;
    };
    return static_cast<std::uint64_t>(UnsignedWide{start(high) - start(low)} * count >> 64);
  }

  /// The first of some rows whose digest is not below another.
  static std::uint64_t lower_bound(std::string_view rows, std::uint64_t stride,
                                   const Digest& digest) {
    std::uint64_t low = 0, high = rows.size() / stride;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      if (read_as<Digest>(rows.data() + middle * stride) < digest)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  Result<std::uint64_t> bisect(const Rows& table, const Digest& digest) const {
    std::uint64_t low = 0, high = table.count;
    while (low < high) {
      const std::uint64_t middle = low + (high - low) / 2;
      KERNELPACK_TRY(key, index_->read(table.offset + middle * table.stride, digest.size()));
      if (read_as<Digest>(key) < digest)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  }

  Result<bool> is_at(const Rows& table, std::uint64_t row, const Digest& digest) const {
    if (row >= table.count) return false;
    KERNELPACK_TRY(key, index_->read(table.offset + row * table.stride, digest.size()));
    return read_as<Digest>(key) == digest;
  }

  std::unique_ptr<CheckedIndex> index_;
  std::string where_;
  IndexHead head_{};
  Rows rows_[kSections]{};
};

}  // namespace kernelpack::detail
