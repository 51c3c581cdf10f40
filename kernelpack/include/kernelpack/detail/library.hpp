// Kernels ready to launch: a bundle's index to choose from, the driver to run on.
#pragma once

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bundle.hpp"
#include "launch.hpp"
#include "select.hpp"

namespace kernelpack {

/// The kernel-ABI numbers that a caller can call: both ends belong to them.
struct Abis {
  std::uint32_t first = 0, last = UINT32_MAX;
};

/// An open bundle beside a driver, shared by threads. What has been used before costs no lock and
/// no I/O.
class Library {
public:
  /// A bundle beside a driver that is new enough for it.
  static Result<std::unique_ptr<Library>> make(std::unique_ptr<Bundle> bundle,
                                               std::unique_ptr<Driver> driver) {
    std::unique_ptr<Library> library(new Library(std::move(bundle), std::move(driver)));
    KERNELPACK_CHECK(library->check_floor());
    return library;
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Bundle& bundle() const { return *bundle_; }
  const Driver& driver() const { return *driver_; }

  /// The variant that serves a problem best; `sizes` are without those of the device.
  Result<const Variant*> select(std::string_view kernel, const Sizes& sizes, int device,
                                Abis abis = {}) const {
    KERNELPACK_TRY(known, driver_->device(device));
    KERNELPACK_TRY(candidates, of_abi(kernel, abis));
    auto chosen = detail::select(candidates, with_device(sizes, *known), known->capability);
    if (!chosen && chosen.error().kind == ErrorKind::kSelection)
      chosen.error().where = bundle_->path() + " on " + known->text() + ", " + driver_->text();
    return chosen;
  }

  /// Scratch memory that a call of a variant needs.
  Result<std::int64_t> workspace_bytes(const Variant& variant, const Sizes& sizes,
                                       int device) const {
    KERNELPACK_TRY(known, driver_->device(device));
    const Sizes all = with_device(sizes, *known);
    return detail::evaluate(*variant.workspace_bytes, detail::Values(variant.kernel->names, all));
  }

  /// A launch of a variant, packed; call it with a stream, any number of times.
  ///
  /// `addresses` are those of every argument on the device. Machine code is loaded at its first
  /// use, which is refused while `stream`, where given, is being captured.
  Result<Launch> pack(const Variant& variant, const Sizes& sizes, const Addresses& addresses,
                      int device, std::optional<Stream> stream = {}) {
    KERNELPACK_CHECK(driver_->check_process());
    KERNELPACK_TRY(function, find(variant, device, stream));
    KERNELPACK_TRY(known, driver_->device(device));
    const Sizes all = with_device(sizes, *known);
    KERNELPACK_TRY(plan,
                   detail::resolve(variant, detail::Values(variant.kernel->names, all), addresses));
    std::vector<std::uint64_t> bound;
    for (const Argument* argument : variant.arguments) {
      KERNELPACK_TRY(address, detail::address_of(variant, *argument, addresses));
      bound.push_back(address);
    }
    KERNELPACK_TRY(context, driver_->context(device));
    Launch launch(*driver_, *function, std::move(plan), std::move(bound), context);
    KERNELPACK_CHECK(launch.pack());
    return launch;
  }

  /// Load every kernel that runs on a device, or those of one stem; says how many. After it no
  /// call loads anything, so calls may be captured into graphs.
  Result<std::size_t> preload(int device, std::optional<std::string_view> kernel = {}) {
    KERNELPACK_CHECK(driver_->check_process());
    KERNELPACK_TRY(known, driver_->device(device));
    KERNELPACK_TRY(variants, bundle_->variants(kernel));
    std::size_t count = 0;
    for (const Variant* variant : variants) {
      if (!variant->runs_on(known->capability)) continue;
      KERNELPACK_CHECK(find(*variant, device, std::nullopt));
      ++count;
    }
    return count;
  }

  /// Refuse further loads. Kernels that are loaded stay: launches and graphs may hold them.
  void close() { is_closed_.store(true, std::memory_order_release); }

  /// Close, and take every kernel out of the driver; no launch or graph may still use one.
  Status unload() {
    close();
    return functions_.unload();
  }

private:
  Library(std::unique_ptr<Bundle> bundle, std::unique_ptr<Driver> driver)
      : bundle_(std::move(bundle)),
        driver_(std::move(driver)),
        functions_(*driver_, bundle_->size()) {}

  /// Machine code runs on every driver of the same CUDA major (CUDA Compatibility, minor versions).
  Status check_floor() const {
    KERNELPACK_TRY(release, bundle_->provenance("toolchain.release"));
    const int oldest = 1000 * std::atoi(release.c_str());
    if (driver_->version() >= oldest) return {};
    return detail::driver_error(
        "built with CUDA " + release + ", which needs a driver of CUDA " +
            std::to_string(oldest / 1000) + ".0 or newer; found a " + driver_->text(),
        bundle_->path(),
        "update the NVIDIA driver, or use a bundle built with `--toolchain cuda-12.9`");
  }

  static Sizes with_device(Sizes sizes, const Device& device) {
    sizes.emplace_back("sm_count", device.sm_count);
    return sizes;
  }

  Result<std::vector<const Variant*>> of_abi(std::string_view kernel, Abis abis) const {
    KERNELPACK_TRY(listed, bundle_->variants(kernel));
    if (listed.empty()) return unknown_kernel(kernel);
    std::vector<const Variant*> known;
    for (const Variant* variant : listed)
      if (abis.first <= variant->kernel->abi && variant->kernel->abi <= abis.last)
        known.push_back(variant);
    if (known.empty()) return unknown_abi(kernel, listed, abis);
    return known;
  }

  Error unknown_kernel(std::string_view kernel) const {
    const auto all = bundle_->variants();
    if (!all) return all.error();
    std::set<std::string> stems;
    for (const Variant* variant : *all) stems.emplace(variant->kernel->stem);
    return {ErrorKind::kSelection, "the bundle holds no kernel " + detail::quoted(kernel),
            bundle_->path(),
            "it holds: " + detail::joined(stems, [](const auto& stem) { return stem; })};
  }

  Error unknown_abi(std::string_view kernel, const std::vector<const Variant*>& listed,
                    Abis abis) const {
    std::set<std::uint32_t> held;
    for (const Variant* variant : listed) held.insert(variant->kernel->abi);
    const auto show = [](std::uint32_t abi) { return detail::decimal(abi); };
    std::string called = detail::decimal(abis.first);
    if (abis.first != abis.last) called += " to " + detail::decimal(abis.last);
    return {ErrorKind::kBundle,
            detail::quoted(kernel) + " has kernel ABI " + detail::joined(held, show) +
                ", this version calls " + called,
            bundle_->path(), "install the kernelpack version that the bundle was built for"};
  }

  Result<const detail::Function*> find(const Variant& variant, int device,
                                       std::optional<Stream> stream) {
    KERNELPACK_TRY(known, driver_->device(device));
    if (const detail::Function* ready = functions_.find(variant, device)) return ready;
    if (is_closed_.load(std::memory_order_acquire))
      return Error{ErrorKind::kBundle, "the library is closed", bundle_->path(), {}};
    if (stream) KERNELPACK_CHECK(check_capture(variant, *known, *stream));
    const auto image = [&] { return bundle_->image(variant.id); };
    auto made = functions_.make(variant, image, device);
    if (!made && made.error().kind == ErrorKind::kSelection)
      made.error().hint = candidates(variant, *known);
    return made;
  }

  Status check_capture(const Variant& variant, const Device& device, Stream stream) const {
    KERNELPACK_TRY(is_capturing, driver_->is_capturing(stream, device.ordinal));
    if (!is_capturing) return {};
    return Error{ErrorKind::kCapture,
                 "first use of " + std::string(variant.id) + " on " + device.text() +
                     " while the stream is captured",
                 "`stream`",
                 "call `library.preload(device=" + std::to_string(device.ordinal) +
                     ")` before the capture begins"};
  }

  /// Every candidate for the device, where the chosen one turned out not to run on it.
  std::string candidates(const Variant& chosen, const Device& device) const {
    std::string text =
        "candidates:\n  " + std::string(chosen.id) + ": chosen, and refused by the driver";
    const auto variants = bundle_->variants(chosen.kernel->stem);
    if (!variants) return text;
    for (const Variant* other : *variants) {
      if (other->id == chosen.id) continue;
      const bool runs = other->runs_on(device.capability);
      text += "\n  " + std::string(other->id) + ": ";
      text += runs ? "built for this device, not the one chosen for the problem"
                   : detail::Verdict{other, {}, nullptr}.reason();
    }
    return text;
  }

  std::unique_ptr<Bundle> bundle_;
  std::unique_ptr<Driver> driver_;
  detail::Functions functions_;
  std::atomic<bool> is_closed_{false};
};

/// Open a bundle for the GPUs that a driver sees. No kernel is loaded yet.
inline Result<std::unique_ptr<Library>> load(const std::string& path,
                                             std::unique_ptr<Driver> driver) {
  KERNELPACK_TRY(bundle, open_entries(path));
  return Library::make(std::move(bundle), std::move(driver));
}

/// Open a bundle for the GPUs of this process.
inline Result<std::unique_ptr<Library>> load(const std::string& path) {
  KERNELPACK_TRY(bundle, open_entries(path));
  KERNELPACK_TRY(driver, Driver::connect());
  return Library::make(std::move(bundle), std::move(driver));
}

}  // namespace kernelpack
