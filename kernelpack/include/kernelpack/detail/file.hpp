// A bundle's file: a regular file that starts as a bundle does.
//
// Bytes are read at an offset, not mapped, though the format can be: a file that another process
// shortens in place kills whoever has it mapped, and here is an error; and reading the few pages of
// a look-up costs less than mapping them (page faults of 2 us where a read took 0.7, measured in a
// virtual machine).
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "format.hpp"
#include "result.hpp"
#include "text.hpp"

namespace kernelpack::detail {

/// What starts a file that is not a bundle: what it is, and what to do instead.
struct Mistaken {
  std::string_view start;
  const char* what;
  const char* hint;
};

constexpr Mistaken kMistaken[] = {
    {"version https://git-lfs", "a Git LFS pointer, not the bundle itself", "run `git lfs pull`"},
    {"PK", "a ZIP archive or a wheel, not a bundle", "install the wheel; the bundle is inside"},
    {"\x7f"
     "ELF",
     "an ELF file such as a cubin, not a bundle", "give the `.kpk` file"},
    {"\x50\xed\x55\xba", "a fat binary, not a bundle", "give the `.kpk` file"},
    {"\x1f\x8b", "a gzip file, not a bundle", "decompress it first"},
    {"\x28\xb5\x2f\xfd", "a zstd file, not a bundle", "decompress it first"},
    {"{", "JSON, not a bundle", "give the `.kpk` file"},
    {"[", "JSON, not a bundle", "give the `.kpk` file"},
    {"<", "HTML or XML, not a bundle", "a download may have saved an error page: fetch it again"},
    {"//", "source text, not a bundle", "give the `.kpk` file"},
    {"kernel:", "a manifest, not a bundle", "build it: `kernelpack build MANIFEST -o X.kpk`"},
    {"\x89KPK", "a bundle that was transferred as text", "transfer it again as binary"},
    {"KPK", "a bundle without its first byte", "transfer it again as binary"},
};

/// What a file is whose first 64 bytes are not those of a bundle.
inline Mistaken mistaken(std::string_view head) {
  if (head.empty())
    return {head, "an empty file, not a bundle", "its transfer or build was cut: make it again"};
  if (head.find_first_not_of('\0') == head.npos)
    return {head, "zeros, not a bundle", "its transfer or disk lost it: make it again"};
  head.remove_prefix(std::min(head.find_first_not_of(" \t\n\r\f\v"), head.size()));
  for (const Mistaken& known : kMistaken)
    if (head.substr(0, known.start.size()) == known.start) return known;
  return {head, "not a bundle", "a bundle is what `kernelpack build -o X.kpk` writes"};
}

/// A file that is open for reading, shared by threads and with forked children.
class File {
public:
  static Result<File> open(const std::string& path) {
    File file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status;
    if (file.descriptor_ < 0 || ::fstat(file.descriptor_, &status)) return file.unreadable();
    if (!S_ISREG(status.st_mode))
      return Error{ErrorKind::kBundle, "not a regular file", path, "give a `.kpk` file"};
    file.size_ = static_cast<std::uint64_t>(status.st_size);
    KERNELPACK_TRY(head, file.read(0, std::min(file.size_, kMaxHeaderBytes)));
    file.head_ = std::move(head);
    if (std::string_view(file.head_).substr(0, kMagic.size()) == kMagic) return file;
    const Mistaken known = mistaken(std::string_view(file.head_).substr(0, 64));
    return Error{ErrorKind::kBundle, known.what, path, known.hint};
  }

  File(File&& other) noexcept
      : where_(std::move(other.where_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_),
        head_(std::move(other.head_)) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// Its path, for messages.
  const std::string& where() const { return where_; }
  /// Its bytes when it was opened.
  std::uint64_t size() const { return size_; }
  /// Its first bytes, as many as a header may have.
  std::string_view head() const { return head_; }

  /// Copy bytes of the file, those of its head without a system call; the range must lie inside its
  /// size.
  Status read(std::uint64_t offset, std::uint64_t size, char* to) const {
    std::uint64_t done = head().substr(std::min(offset, head_.size())).copy(to, size);
    while (done < size) {
      const ssize_t count =
          ::pread(descriptor_, to + done, size - done, static_cast<off_t>(offset + done));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return unreadable();
      if (!count)
        return Error{
            ErrorKind::kBundle,
            "ends before byte " + decimal(offset + size) + ": it was changed while it was in use",
            where_, "replace bundles by renaming a new file over them, never in place"};
      done += static_cast<std::uint64_t>(count);
    }
    return {};
  }

  Result<std::string> read(std::uint64_t offset, std::uint64_t size) const {
    std::string bytes(size, '\0');
    KERNELPACK_CHECK(read(offset, size, bytes.data()));
    return bytes;
  }

  /// The error for bytes that only damage or malice explains.
  Error refusal(std::string what) const {
    return {ErrorKind::kBundle, std::move(what), where_, kDamaged};
  }

private:
  File(std::string where, int descriptor) : where_(std::move(where)), descriptor_(descriptor) {}

  Error unreadable() const {
    const std::string reason = std::strerror(errno);
    return {ErrorKind::kBundle, "cannot be read: " + reason, where_,
            "give the path of a `.kpk` file"};
  }

  std::string where_;
  int descriptor_;
  std::uint64_t size_ = 0;
  std::string head_;
};

}  // namespace kernelpack::detail
