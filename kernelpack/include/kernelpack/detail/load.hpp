// From files to a library of kernels: who signed them, what they hold, which driver runs them.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "library.hpp"

namespace kernelpack {

/// A file, or several.
struct Paths {
  Paths(const char* path) : all{path} {}
  Paths(std::string path) : all{std::move(path)} {}
  Paths(std::vector<std::string> paths) : all(std::move(paths)) {}
  Paths(std::initializer_list<std::string> paths) : all(paths) {}

  std::vector<std::string> all;
};

/// Files of public keys (PEM), one of whose owners must have signed a bundle; none: nobody need
/// have.
using Trust = std::optional<Paths>;

/// A file of times that `kernelpack tune` measured, which choose in place of the manifests' costs
/// where they were measured, and between; none: costs choose.
using Tuned = std::optional<std::string>;

/// Open bundles of cubins, to be chosen from together; no driver is touched.
inline Result<std::unique_ptr<Joined>> open_all(const Paths& paths, const Trust& trust = {}) {
  if (paths.all.empty())
    return Error{ErrorKind::kBundle, "no bundle is named", {}, "give the path of a `.kpk` file"};
  std::optional<detail::Keys> keys;
  if (trust) {
    KERNELPACK_TRY(found, detail::trusted(trust->all));
    keys = std::move(found);
  }
  Joined::Bundles bundles;
  for (const std::string& path : paths.all) {
    KERNELPACK_TRY(bundle, open_entries(path, keys ? &*keys : nullptr));
    bundles.push_back(std::move(bundle));
  }
  return Joined::make(std::move(bundles));
}

/// Open a bundle, or several as one, for the GPUs that a driver sees. No kernel is loaded yet.
inline Result<std::unique_ptr<Library>> load(const Paths& paths, std::unique_ptr<Driver> driver,
                                             const Trust& trust = {}, const Tuned& tuned = {}) {
  KERNELPACK_TRY(bundles, open_all(paths, trust));
  return Library::make(std::move(bundles), std::move(driver), tuned);
}

/// Open a bundle, or several as one, for the GPUs of this process.
inline Result<std::unique_ptr<Library>> load(const Paths& paths, const Trust& trust = {},
                                             const Tuned& tuned = {}) {
  KERNELPACK_TRY(bundles, open_all(paths, trust));
  KERNELPACK_TRY(driver, Driver::connect());
  return Library::make(std::move(bundles), std::move(driver), tuned);
}

}  // namespace kernelpack
