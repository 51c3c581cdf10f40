// The bytes of an index; none is returned before its page is checked against the root.
//
// What was checked is kept, so a file that changes later does not change what was read: a page
// costs one read and a hash of 1 KiB, and one of 512 bytes a level, once. Threads share an
// index; reading what was checked before takes no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "file.hpp"
#include "header.hpp"
#include "messages.hpp"
#include "result.hpp"
#include "text.hpp"

namespace kernelpack::detail {

constexpr std::uint64_t kNodeBytes = kFanOut * kDigestBytes;

constexpr std::uint64_t rounded_up(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0);
}

class CheckedIndex {
public:
  /// The index of a file, with nothing checked yet; the tree must have the index's size.
  static Result<std::unique_ptr<CheckedIndex>> open(const File& file, const Header& header) {
    std::unique_ptr<CheckedIndex> index(new CheckedIndex(file, header));
    const std::uint64_t tree_bytes = header.at(Part::kTree).size;
    if (tree_bytes != (index->levels_.empty() ? 0 : index->levels_.back().end))
      return file.refusal("a tree of " + decimal(tree_bytes) + " bytes over an index of " +
                          decimal(index->size_));
    KERNELPACK_CHECK(index->read_upper_levels());
    return index;
  }

  std::uint64_t size() const { return size_; }

  /// Bytes of the index, after their pages are checked; the range must lie inside.
  Result<const char*> read(std::uint64_t offset, std::uint64_t size) const {
    const std::uint64_t end = rounded_up(offset + size, kPageBytes);
    for (std::uint64_t page = offset / kPageBytes; size && page < end; ++page)
      if (!is_page_checked_[page].load(std::memory_order_acquire)) KERNELPACK_CHECK(check(page));
    return bytes_.get() + offset;
  }

  /// Bytes that were not checked: only to guess where to look; the range must lie inside.
  Result<std::string> peek(std::uint64_t offset, std::uint64_t size) const {
    return file_.read(start_ + offset, size);
  }

private:
  /// Where a level of the tree starts and ends, from the pages up; bytes.
  struct Level {
    std::uint64_t start, end;
  };

  /// A page and the nodes above it that were not checked yet; where the digest of each is in
  /// the tree, but for the root's.
  struct Path {
    std::vector<Message> messages;
    std::vector<std::uint64_t> above, nodes;
  };

  CheckedIndex(const File& file, const Header& header)
      : file_(file),
        root_(header.root),
        start_(header.at(Part::kIndex).offset),
        size_(header.at(Part::kIndex).size),
        tree_(header.at(Part::kTree).offset) {
    const std::uint64_t pages = rounded_up(size_, kPageBytes);
    std::uint64_t place = 0;
    for (std::uint64_t count = pages; count > 1; count = rounded_up(count, kFanOut)) {
      levels_.push_back({place, place + count * kDigestBytes});
      place += count * kDigestBytes;
    }
    bytes_.reset(new char[size_]);
    nodes_.reset(new char[place]);
    is_page_checked_.reset(new std::atomic<bool>[pages]());
    is_node_checked_.resize(place / kDigestBytes);
  }

  /// All but the lowest level, a sixteenth of the tree, at once: most pages need several of them.
  Status read_upper_levels() {
    if (levels_.size() < 2) return {};
    const std::uint64_t start = levels_[1].start;
    return file_.read(tree_ + start, levels_.back().end - start, nodes_.get() + start);
  }

  /// Read a page and the nodes above it, up to one that was checked before or to the root, and hold
  /// the digest of each against the one that is above it.
  Status check(std::uint64_t page) const {
    const std::lock_guard lock(mutex_);
    if (is_page_checked_[page].load(std::memory_order_relaxed)) return {};
    const std::uint64_t at = page * kPageBytes, size = std::min(kPageBytes, size_ - at);
    KERNELPACK_CHECK(file_.read(start_ + at, size, bytes_.get() + at));
    Path path;
    path.messages.reserve(levels_.size() + 1);
    path.messages.emplace_back('\0', std::string_view(bytes_.get() + at, size));
    KERNELPACK_CHECK(follow(page, path));
    finish(path.messages);
    for (std::size_t step = 0; step < path.messages.size(); ++step) {
      const bool is_top = step == path.above.size();
      const Digest stated = is_top ? root_ : read_as<Digest>(nodes_.get() + path.above[step]);
      if (path.messages[step].digest() != stated) return refusal(page);
    }
    for (const std::uint64_t node : path.nodes) is_node_checked_[node / kDigestBytes] = true;
    is_page_checked_[page].store(true, std::memory_order_release);
    return {};
  }

  /// Add the nodes above a page, which are read, not checked.
  Status follow(std::uint64_t page, Path& path) const {
    std::uint64_t place = page;
    for (const Level& level : levels_) {
      path.above.push_back(level.start + place * kDigestBytes);
      place /= kFanOut;
      const std::uint64_t node = level.start + place * kNodeBytes;
      const std::uint64_t bytes = std::min(kNodeBytes, level.end - node);
      if (is_node_checked_[node / kDigestBytes]) return {};
      if (!level.start) KERNELPACK_CHECK(file_.read(tree_ + node, bytes, nodes_.get() + node));
      path.messages.emplace_back('\1', std::string_view(nodes_.get() + node, bytes));
      path.nodes.push_back(node);
    }
    return {};
  }

  Error refusal(std::uint64_t page) const {
    const std::uint64_t first = page * kPageBytes, last = std::min(first + kPageBytes, size_);
    return file_.refusal("bytes " + decimal(first) + " to " + decimal(last) +
                         " of the index are not what the root says");
  }

  const File& file_;
  const Digest root_;
  const std::uint64_t start_, size_, tree_;
  std::vector<Level> levels_;
  mutable std::mutex mutex_;  // of what follows, where it is not checked yet
  std::unique_ptr<char[]> bytes_, nodes_;
  std::unique_ptr<std::atomic<bool>[]> is_page_checked_;
  mutable std::vector<bool> is_node_checked_;  // by the node's first digest
};

}  // namespace kernelpack::detail
