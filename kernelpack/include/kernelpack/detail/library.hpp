// Kernels ready to launch: bundles' indexes to choose from, the driver to run on.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "joined.hpp"
#include "launch.hpp"
#include "overlay.hpp"
#include "select.hpp"

namespace kernelpack {

/// The kernel-ABI numbers that a caller can call: both ends belong to them.
struct Abis {
  std::uint32_t first = 0, last = UINT32_MAX;
};

/// An open bundle, or several as one, beside a driver; shared by threads. What has been used before
/// costs no lock and no I/O.
class Library {
public:
  /// Bundles beside a driver that is new enough for each, and a file of times that choose.
  static Result<std::unique_ptr<Library>> make(std::unique_ptr<Joined> bundles,
                                               std::unique_ptr<Driver> driver,
                                               const std::optional<std::string>& tuned = {}) {
    for (const auto& bundle : bundles->bundles()) KERNELPACK_CHECK(check_floor(*bundle, *driver));
    std::unique_ptr<Library> library(new Library(std::move(bundles), std::move(driver)));
    if (tuned) {
      KERNELPACK_TRY(overlay, detail::overlay_of(*library->bundles_, *tuned));
      KERNELPACK_CHECK(detail::check_devices(overlay, *library->driver_));
      library->tuned_ = std::move(overlay);
    }
    return library;
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Joined& bundles() const { return *bundles_; }
  const Driver& driver() const { return *driver_; }

  /// The variant that serves a problem best; `sizes` are without those of the device.
  Result<const Variant*> select(std::string_view kernel, const Sizes& sizes, int device,
                                Abis abis = {}) const {
    KERNELPACK_TRY(known, driver_->device(device));
    KERNELPACK_TRY(candidates, of_abi(kernel, abis));
    KERNELPACK_TRY(all, with_device(sizes, *candidates.front()->kernel, *known));
    return best(candidates, all, *known, measured(kernel, *known));
  }

  /// Scratch memory that a call of a variant needs.
  Result<std::int64_t> workspace_bytes(const Variant& variant, const Sizes& sizes,
                                       int device) const {
    KERNELPACK_TRY(known, driver_->device(device));
    KERNELPACK_TRY(all, with_device(sizes, *variant.kernel, *known));
    return detail::evaluate(*variant.workspace_bytes, detail::Values(variant.kernel->names, all));
  }

  /// A launch of a variant, packed; call it with a stream, any number of times.
  ///
  /// `addresses` are those of every argument on the device. The variant is checked against the
  /// problem as when it was chosen, and its clusters against the device. Machine code is loaded at
  /// its first use, which is refused while `stream`, where given, is being captured. `numbers` are
  /// those of the call, such as an epsilon; what is left out is its default.
  Result<Launch> pack(const Variant& variant, const Sizes& sizes, const Addresses& addresses,
                      int device, std::optional<Stream> stream = {}, const Numbers& numbers = {}) {
    KERNELPACK_CHECK(driver_->check_process());
    KERNELPACK_TRY(known, driver_->device(device));
    KERNELPACK_TRY(all, with_device(sizes, *variant.kernel, *known));
    KERNELPACK_CHECK(check_names(variant, numbers));
    KERNELPACK_CHECK(best({&variant}, all, *known));
    KERNELPACK_TRY(function, find(variant, device, stream));
    const detail::Values values(variant.kernel->names, all);
    const detail::Fits fits = [&](detail::Cta cta, std::int64_t ctas) {
      return function->occupancy.clusters(*driver_, function->device, function->loaded, cta, ctas);
    };
    KERNELPACK_TRY(plan, detail::resolve(variant, values, addresses, numbers, fits));
    KERNELPACK_TRY(bound, detail::bind(variant, values, addresses));
    KERNELPACK_TRY(context, driver_->context(device));
    Launch launch(*driver_, *function, std::move(plan), std::move(bound), context);
    KERNELPACK_CHECK(launch.pack());
    return launch;
  }

  /// Load every kernel that runs on a device, or those of one stem; says how many, and refuses to
  /// where there is none. After it no call loads anything, so calls may be captured into graphs.
  Result<std::size_t> preload(int device, std::optional<std::string_view> kernel = {}) {
    KERNELPACK_CHECK(driver_->check_process());
    KERNELPACK_TRY(known, driver_->device(device));
    KERNELPACK_TRY(variants, listed(kernel));
    std::size_t count = 0;
    for (const Variant* variant : variants) {
      if (!variant->runs_on(known->capability)) continue;
      KERNELPACK_CHECK(find(*variant, device, std::nullopt));
      ++count;
    }
    if (!count) return none_for(kernel, *known);
    return count;
  }

  /// Refuse further loads. Kernels that are loaded stay: launches and graphs may hold them.
  void close() { is_closed_.store(true, std::memory_order_release); }

  /// Close, and take every kernel out of the driver; no launch or graph may still use one.
  Status unload() {
    close();
    Status first;
    for (detail::Functions& functions : functions_) {
      Status done = functions.unload();
      if (first) first = std::move(done);
    }
    return first;
  }

private:
  Library(std::unique_ptr<Joined> bundles, std::unique_ptr<Driver> driver)
      : bundles_(std::move(bundles)), driver_(std::move(driver)) {
    for (const auto& bundle : bundles_->bundles())
      functions_.emplace_back(*driver_, bundle->size());
  }

  /// Machine code runs on every driver of the same CUDA major (CUDA Compatibility, minor versions).
  static Status check_floor(const Bundle& bundle, const Driver& driver) {
    KERNELPACK_TRY(release, bundle.provenance("toolchain.release"));
    if (release.empty() || release[0] < '0' || release[0] > '9')
      return Error{ErrorKind::kBundle,
                   "states the CUDA release " + detail::quoted(release) + ", which does not parse",
                   bundle.path(), "build the bundle again"};
    const int oldest = 1000 * std::atoi(release.c_str());
    if (driver.version() >= oldest) return {};
    return detail::driver_error(
        "built with CUDA " + release + ", which needs a driver of CUDA " +
            std::to_string(oldest / 1000) + ".0 or newer; found a " + driver.text(),
        bundle.path(),
        "update the NVIDIA driver, or use a bundle built with `--toolchain cuda-12.9`");
  }

  /// A problem's sizes, each the kernel's, given once and a count; and the device's.
  static Result<Sizes> with_device(Sizes sizes, const detail::Kernel& kernel,
                                   const Device& device) {
    for (const auto& [name, value] : sizes) {
      const auto end = kernel.names.begin() + kernel.sizes;
      if (std::find(kernel.names.begin(), end, name) == end) return unknown_size(kernel, name);
    }
    for (auto size = sizes.begin(); size != sizes.end(); ++size) {
      const auto& [name, value] = *size;
      if (std::any_of(sizes.begin(), size, [&](auto& known) { return known.first == size->first; }))
        return detail::problem("is given twice", detail::quoted(name));
      if (value < 0)
        return detail::problem("must be at least 0, not " + detail::decimal(value),
                               detail::quoted(name));
    }
    sizes.emplace_back("sm_count", device.sm_count);
    return sizes;
  }

  /// Numbers are the kernel's, each given once.
  static Status check_names(const Variant& variant, const Numbers& numbers) {
    const auto& known = variant.kernel->numbers;
    for (auto number = numbers.begin(); number != numbers.end(); ++number) {
      const auto is_same = [&](const auto& other) { return other.first == number->first; };
      const auto is_it = [&](const auto& each) { return each.name == number->first; };
      if (std::any_of(numbers.begin(), number, is_same))
        return detail::problem("is given twice", detail::quoted(number->first));
      if (std::none_of(known.begin(), known.end(), is_it))
        return detail::unknown_number(*variant.kernel, number->first);
    }
    return {};
  }

  static Error unknown_size(const detail::Kernel& kernel, std::string_view name) {
    const std::vector<std::string_view> sizes(kernel.names.begin(),
                                              kernel.names.begin() + kernel.sizes);
    const auto show = [](std::string_view size) { return std::string(size); };
    return {ErrorKind::kProblem, "no size " + detail::quoted(name), std::string(kernel.stem),
            "sizes: " + detail::joined(sizes, show)};
  }

  /// The times of a kernel that are of a device; null where there are none.
  const detail::TunedKernel* measured(std::string_view kernel, const Device& device) const {
    return tuned_ && detail::is_of(*tuned_, device) ? tuned_->find(kernel) : nullptr;
  }

  /// The variant that serves best on a device.
  Result<const Variant*> best(const Joined::Variants& candidates, const Sizes& sizes,
                              const Device& device,
                              const detail::TunedKernel* tuned = nullptr) const {
    auto chosen = detail::select(candidates, sizes, device.capability, tuned);
    if (!chosen && chosen.error().kind == ErrorKind::kSelection)
      chosen.error().where = bundles_->where() + " on " + device.text() + ", " + driver_->text();
    return chosen;
  }

  /// The variants of a kernel, or of all.
  Result<Joined::Variants> listed(std::optional<std::string_view> kernel) const {
    if (!kernel) return bundles_->variants();
    KERNELPACK_TRY(some, bundles_->variants(*kernel));
    return *some;
  }

  Result<Joined::Variants> of_abi(std::string_view kernel, Abis abis) const {
    KERNELPACK_TRY(all, bundles_->variants(kernel));
    if (all->empty()) return unknown_kernel(kernel);
    Joined::Variants known;
    for (const Variant* variant : *all)
      if (abis.first <= variant->kernel->abi && variant->kernel->abi <= abis.last)
        known.push_back(variant);
    if (known.empty()) return unknown_abi(kernel, *all, abis);
    return known;
  }

  Error unknown_kernel(std::string_view kernel) const {
    const auto all = bundles_->variants();
    if (!all) return all.error();
    std::set<std::string> stems;
    for (const Variant* variant : *all) stems.emplace(variant->kernel->stem);
    return {ErrorKind::kSelection, "the bundle holds no kernel " + detail::quoted(kernel),
            bundles_->where(),
            "it holds: " + detail::joined(stems, [](const auto& stem) { return stem; })};
  }

  Error none_for(std::optional<std::string_view> kernel, const Device& device) const {
    const auto all = bundles_->variants();
    if (!all) return all.error();
    std::set<std::string> targets;
    for (const Variant* variant : *all) targets.emplace(variant->target);
    const std::string named = kernel ? " " + detail::quoted(*kernel) : "";
    return {ErrorKind::kSelection, "the bundle holds no kernel" + named + " for this device",
            bundles_->where() + " on " + device.text() + ", " + driver_->text(),
            "it is built for: " + detail::joined(targets, [](const auto& name) { return name; })};
  }

  Error unknown_abi(std::string_view kernel, const Joined::Variants& listed, Abis abis) const {
    std::set<std::uint32_t> held;
    for (const Variant* variant : listed) held.insert(variant->kernel->abi);
    const auto show = [](std::uint32_t abi) { return detail::decimal(abi); };
    std::string called = detail::decimal(abis.first);
    if (abis.first != abis.last) called += " to " + detail::decimal(abis.last);
    return {ErrorKind::kBundle,
            detail::quoted(kernel) + " has kernel ABI " + detail::joined(held, show) +
                ", this version calls " + called,
            bundles_->where(), "install the kernelpack version that the bundle was built for"};
  }

  Result<const detail::Function*> find(const Variant& variant, int device,
                                       std::optional<Stream> stream) {
    KERNELPACK_TRY(known, driver_->device(device));
    KERNELPACK_TRY(functions, of_bundle(variant));
    if (const detail::Function* ready = functions->find(variant, device)) return ready;
    if (is_closed_.load(std::memory_order_acquire))
      return Error{ErrorKind::kBundle, "the library is closed", bundles_->where(), {}};
    if (stream) KERNELPACK_CHECK(check_capture(variant, *known, *stream));
    const auto image = [&] { return variant.bundle->image(variant.id); };
    auto made = functions->make(variant, image, device);
    if (!made && made.error().kind == ErrorKind::kSelection)
      made.error().hint = candidates(variant, *known);
    return made;
  }

  /// The functions of the bundle that holds a variant.
  Result<detail::Functions*> of_bundle(const Variant& variant) {
    const auto& bundles = bundles_->bundles();
    for (std::size_t place = 0; place < bundles.size(); ++place)
      if (bundles[place].get() == variant.bundle) return &functions_[place];
    return Error{
        ErrorKind::kBundle, "no entry " + detail::quoted(variant.id), bundles_->where(), {}};
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
    const auto variants = bundles_->variants(chosen.kernel->stem);
    if (!variants) return text;
    for (const Variant* other : **variants) {
      if (other->id == chosen.id) continue;
      const bool runs = other->runs_on(device.capability);
      text += "\n  " + std::string(other->id) + ": ";
      text += runs ? "built for this device, not the one chosen for the problem"
                   : detail::Verdict{other, {}, nullptr}.reason();
    }
    return text;
  }

  std::unique_ptr<Joined> bundles_;
  std::unique_ptr<Driver> driver_;
  std::deque<detail::Functions> functions_;  // of each bundle
  std::optional<detail::Overlay> tuned_;
  std::atomic<bool> is_closed_{false};
};

}  // namespace kernelpack
