// A bundle's file, mapped: a regular file that starts as a bundle does.
//
// A mapped file must not be shortened by another process, so bundles are replaced by renaming a
// new file over them, never in place; what was read before a rename stays valid.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>

#include "format.hpp"
#include "result.hpp"

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

/// A file that is open for reading, shared by threads.
class File {
public:
  static Result<File> open(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return unreadable(path);
    Result<File> made = map(path, descriptor);
    ::close(descriptor);
    return made;
  }

  File(File&& other) noexcept : where_(std::move(other.where_)), bytes_(other.bytes_) {
    other.bytes_ = {};
  }
  File& operator=(File&&) = delete;
  ~File() {
    if (!bytes_.empty()) ::munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }

  /// Its path, for messages.
  const std::string& where() const { return where_; }
  std::uint64_t size() const { return bytes_.size(); }

  /// Bytes of the file as they are now, not checked; the range must lie inside its size.
  std::string_view read(std::uint64_t offset, std::uint64_t size) const {
    return {bytes_.data() + offset, size};
  }

  /// The error for bytes that only damage or malice explains.
  Error refusal(std::string what) const {
    return {ErrorKind::kBundle, std::move(what), where_, kDamaged};
  }

private:
  File(std::string where, std::string_view bytes) : where_(std::move(where)), bytes_(bytes) {}

  static Error unreadable(const std::string& path) {
    const std::string reason = std::strerror(errno);
    return {ErrorKind::kBundle, "cannot be read: " + reason, path,
            "give the path of a `.kpk` file"};
  }

  static Result<File> map(const std::string& path, int descriptor) {
    struct stat status;
    if (::fstat(descriptor, &status)) return unreadable(path);
    if (!S_ISREG(status.st_mode))
      return Error{ErrorKind::kBundle, "not a regular file", path, "give a `.kpk` file"};
    const auto size = static_cast<std::size_t>(status.st_size);
    void* mapped = nullptr;
    if (size) mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED) return unreadable(path);
    File file(path, {static_cast<const char*>(mapped), size});
    const std::string_view head = file.bytes_.substr(0, 64);
    if (head.substr(0, kMagic.size()) == kMagic) return file;
    const Mistaken known = mistaken(head);
    return Error{ErrorKind::kBundle, known.what, path, known.hint};
  }

  std::string where_;
  std::string_view bytes_;
};

}  // namespace kernelpack::detail
