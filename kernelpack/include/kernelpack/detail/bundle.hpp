// Bundles: refuse what is damaged, then trust only what was checked.
//
// Opening checks the header, and the first page of the index against the root. Finding an entry
// checks the pages that it reads, loading an image checks the image.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog.hpp"
#include "images.hpp"
#include "signature.hpp"

namespace kernelpack {

/// An open bundle, shared by threads. Its results lie in it, and live as long as it does.
class Bundle {
public:
  Bundle(const Bundle&) = delete;
  Bundle& operator=(const Bundle&) = delete;

  const std::string& path() const { return file_.where(); }
  /// The root digest of its index, lower-case hex.
  std::string root() const { return detail::hex(header_.root); }
  /// Whether its images are PTX, without entries, as in the `X.ptx.kpk` beside an `X.kpk`.
  bool holds_ptx() const { return sections_->holds_ptx(); }
  /// How many entries it has.
  std::uint64_t size() const { return catalog_->size(); }

  /// The entry of an id.
  Result<Record> find(std::string_view id) const {
    KERNELPACK_TRY(row, catalog_->find(id));
    return catalog_->record(row);
  }

  /// The variants of a kernel, or of all, by kernel and id. Those of a target that this version
  /// does not know cannot run here and are left out.
  Result<std::vector<const Variant*>> variants(std::optional<std::string_view> kernel = {}) const {
    KERNELPACK_TRY(rows, catalog_->kernels(kernel));
    std::vector<const Variant*> found;
    for (const std::uint64_t row : rows) {
      KERNELPACK_TRY(held, kernels_[row].get(*this, *sections_, *catalog_, row));
      for (const Variant& variant : *held) found.push_back(&variant);
    }
    return found;
  }

  /// The machine code of an entry, after its digest was checked.
  Result<std::string> image(std::string_view id) const {
    KERNELPACK_TRY(number, catalog_->find(id));
    KERNELPACK_TRY(row, sections_->row<detail::EntryRow>(number));
    return images_->read(row.image, path() + ": " + std::string(id));
  }

  /// Whether there is an entry of an id.
  Result<bool> holds(std::string_view id) const { return catalog_->holds(id); }

  /// The stem of every kernel.
  Result<std::set<std::string_view>> kernels() const { return catalog_->stems(); }

  /// What was noted when it was built, such as `toolchain.release`; empty where nothing was.
  Result<std::string> provenance(std::string_view key) const {
    std::string_view found, before;
    bool is_sorted = true;
    for (std::uint64_t number = 0; number < sections_->count(detail::Section::kProvenance);
         ++number) {
      KERNELPACK_TRY(row, sections_->row<detail::ProvenanceRow>(number));
      KERNELPACK_TRY(name, sections_->text(row.key));
      KERNELPACK_TRY(value, sections_->text(row.value));
      if (number && name <= before) is_sorted = false;
      if (name == key) found = value;
      before = name;
    }
    if (!is_sorted) return sections_->refusal("provenance is not sorted by key");
    return std::string(found);
  }

private:
  friend Result<std::unique_ptr<Bundle>> open_bundle(const std::string& path,
                                                     const detail::Keys* keys);

  explicit Bundle(detail::File file) : file_(std::move(file)) {}

  Status read(const detail::Keys* keys) {
    KERNELPACK_TRY(header, detail::read_header(file_));
    header_ = header;
    if (keys) KERNELPACK_CHECK(detail::check_signature(file_, header_, *keys));
    KERNELPACK_TRY(index, detail::CheckedIndex::open(file_, header_));
    KERNELPACK_TRY(sections, detail::Sections::open(std::move(index), path()));
    sections_.emplace(std::move(sections));
    catalog_.emplace(*sections_);
    KERNELPACK_TRY(images, detail::Images::open(file_, header_, *sections_));
    images_ = std::move(images);
    kernels_.reset(new detail::KernelVariants[sections_->count(detail::Section::kKernels)]);
    return {};
  }

  detail::File file_;
  detail::Header header_{};
  std::optional<detail::Sections> sections_;
  std::optional<detail::Catalog> catalog_;
  std::unique_ptr<detail::Images> images_;
  std::unique_ptr<detail::KernelVariants[]> kernels_;
};

/// Open a bundle; no driver is touched. Where keys are given, the owner of one of them must have
/// signed it, which is checked before the index is read.
inline Result<std::unique_ptr<Bundle>> open_bundle(const std::string& path,
                                                   const detail::Keys* keys = nullptr) {
  KERNELPACK_TRY(file, detail::File::open(path));
  std::unique_ptr<Bundle> bundle(new Bundle(std::move(file)));
  KERNELPACK_CHECK(bundle->read(keys));
  return bundle;
}

/// Open a bundle of cubins; one of PTX lies beside the one that was probably meant.
inline Result<std::unique_ptr<Bundle>> open_entries(const std::string& path,
                                                    const detail::Keys* keys = nullptr) {
  KERNELPACK_TRY(bundle, open_bundle(path, keys));
  if (!bundle->holds_ptx()) return std::move(bundle);
  std::string meant = path.substr(path.rfind('/') + 1);
  for (const std::string_view end : {".kpk", ".ptx"})
    if (meant.size() >= end.size() && meant.substr(meant.size() - end.size()) == end)
      meant.resize(meant.size() - end.size());
  return Error{ErrorKind::kBundle, "holds PTX by digest, no entries", path,
               "give the bundle beside it, `" + meant + ".kpk`"};
}

}  // namespace kernelpack
