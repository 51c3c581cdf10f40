// The images of a bundle: decompressed within their stated size, then checked. The door to zstd.
#pragma once

#include <zstd.h>

#include <memory>
#include <string>

#include "sections.hpp"
#include "until_done.hpp"

namespace kernelpack::detail {

class Images {
public:
  static Result<std::unique_ptr<Images>> open(const File& file, const Header& header,
                                              const Sections& sections) {
    const std::uint64_t table = header.at(Part::kFrames).size,
                        count = sections.count(Section::kImages);
    if (table != UnsignedWide{sizeof(FrameRow)} * count)
      return file.refusal("a frame table of " + decimal(table) + " bytes, " + decimal(count) +
                          " images");
    return std::unique_ptr<Images>(new Images(file, header, sections));
  }

  /// An image, after its digest was checked; `where` is the file and what it is, for messages.
  Result<std::string> read(std::uint64_t row, const std::string& where) const {
    KERNELPACK_TRY(known, sections_.row<ImageRow>(row));
    if (known.size > kMaxImageBytes)
      return refusal(where, "an image of " + decimal(known.size) + " bytes; at most " +
                                decimal(kMaxImageBytes));
    KERNELPACK_TRY(frame, read_frame(row, where));
    KERNELPACK_TRY(image, decompress(frame, known.size, where));
    if (digest_of(image) != known.digest)
      return refusal(where, "the image is not what its digest says");
    return std::move(image);
  }

private:
  struct FreeDictionary {
    void operator()(ZSTD_DDict* dictionary) const { ZSTD_freeDDict(dictionary); }
  };
  struct FreeContext {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  Images(const File& file, const Header& header, const Sections& sections)
      : file_(file), header_(header), sections_(sections) {}

  static Error refusal(const std::string& where, std::string what) {
    return {ErrorKind::kBundle, std::move(what), where, kDamaged};
  }

  Result<std::string> read_frame(std::uint64_t row, const std::string& where) const {
    const Extent &table = header_.at(Part::kFrames), &images = header_.at(Part::kImages);
    KERNELPACK_TRY(bytes, file_.read(table.offset + row * sizeof(FrameRow), sizeof(FrameRow)));
    const auto frame = read_as<FrameRow>(bytes.data());
    if (frame.size > images.size || frame.offset > images.size - frame.size)
      return refusal(where, "a frame of " + decimal(frame.size) + " bytes at " +
                                decimal(frame.offset) + " leaves the images");
    return file_.read(images.offset + frame.offset, frame.size);
  }

  /// What a frame holds; no more than `size` bytes are ever allocated for it.
  Result<std::string> decompress(std::string_view frame, std::uint64_t size,
                                 const std::string& where) const {
    const unsigned long long stated = ZSTD_getFrameContentSize(frame.data(), frame.size());
    if (stated == ZSTD_CONTENTSIZE_ERROR)
      return unreadable(where, "error when determining content size");
    if (stated != size)
      return refusal(where,
                     "the compressed frame holds " +
                         decimal(stated == ZSTD_CONTENTSIZE_UNKNOWN ? Wide{-1} : Wide{stated}) +
                         " bytes where the index says " + decimal(size));
    const std::size_t whole = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
    if (ZSTD_isError(whole)) return unreadable(where, ZSTD_getErrorName(whole));
    if (whole != frame.size()) return unreadable(where, "bytes after its end");
    KERNELPACK_TRY(dictionary, find_dictionary());
    const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
    std::string image(size, '\0');
    const std::size_t written = ZSTD_decompress_usingDDict(
        context.get(), image.data(), image.size(), frame.data(), frame.size(), dictionary);
    if (ZSTD_isError(written)) return unreadable(where, ZSTD_getErrorName(written));
    if (written != size) return unreadable(where, "it ends early");
    return image;
  }

  static Error unreadable(const std::string& where, const std::string& why) {
    return refusal(where, "the compressed frame cannot be read: " + why);
  }

  /// The dictionary of all images; none where the bundle has none.
  Result<const ZSTD_DDict*> find_dictionary() const {
    const Extent& part = header_.at(Part::kDictionary);
    if (part.size > kMaxDictionaryBytes)
      return file_.refusal("a dictionary of " + decimal(part.size) + " bytes");
    KERNELPACK_CHECK(once_.run([&]() -> Status {
      if (!part.size) return {};
      KERNELPACK_TRY(bytes, file_.read(part.offset, part.size));
      dictionary_.reset(ZSTD_createDDict(bytes.data(), bytes.size()));
      return dictionary_ ? Status() : file_.refusal("a dictionary that zstd cannot read");
    }));
    return dictionary_.get();
  }

  const File& file_;
  const Header& header_;
  const Sections& sections_;
  mutable UntilDone once_;
  mutable std::unique_ptr<ZSTD_DDict, FreeDictionary> dictionary_;
};

}  // namespace kernelpack::detail
