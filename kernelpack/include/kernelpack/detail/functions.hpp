// Machine code to a function that can be launched: loaded once, made ready once for each device.
//
// Loading goes through `cuLibrary…`, which knows no context: one load serves every device. Nothing
// is unloaded on its own, not even at exit, because a graph of the program may still hold a kernel.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <unordered_map>

#include "driver.hpp"
#include "occupancy.hpp"

namespace kernelpack::detail {

/// A kernel of the driver, ready to be launched on one device; `loaded` is it in that context.
struct Function {
  const Variant* variant;
  CUkern_st* handle;
  int device;
  CUfunc_st* loaded;
  Occupancy occupancy;
};

/// The functions of one bundle, shared by threads; a function that is ready costs no lock.
class Functions {
public:
  Functions(const Driver& driver, std::uint64_t rows)
      : driver_(driver),
        devices_(driver.devices().size()),
        ready_(new std::atomic<const Function*>[rows * devices_]()),
        size_(rows * devices_) {}

  /// The function, where it has been made ready before.
  const Function* find(const Variant& variant, int ordinal) const {
    return ready_[place(variant, ordinal)].load(std::memory_order_acquire);
  }

  /// Load the variant's machine code if nobody has, and make it ready on a device.
  template <class Image>
  Result<const Function*> make(const Variant& variant, Image image, int ordinal) {
    const std::lock_guard lock(mutex_);
    if (const Function* known = find(variant, ordinal)) return known;
    KERNELPACK_TRY(device, driver_.device(ordinal));
    CUfunc_st* loaded = nullptr;
    KERNELPACK_CHECK(driver_.with_current(
        ordinal, [&] { return load_and_prepare(variant, image, *device, &loaded); }));
    made_.emplace_back();
    Function& made = made_.back();
    made.variant = &variant;
    made.handle = kernels_[variant.row].kernel;
    made.device = ordinal;
    made.loaded = loaded;
    ready_[place(variant, ordinal)].store(&made_.back(), std::memory_order_release);
    return &made_.back();
  }

  /// Take the machine code out of the driver: no graph and no launch may still hold it. Where the
  /// driver refuses some of it the rest is unloaded; the first error is reported.
  Status unload() {
    const std::lock_guard lock(mutex_);
    for (std::size_t at = 0; at < size_; ++at) ready_[at].store(nullptr, std::memory_order_release);
    int first = 0;
    for (const auto& [row, loaded] : kernels_) {
      const int code = driver_.api.cuLibraryUnload(loaded.library);
      if (code != kDeinitialized && !first) first = code;
    }
    kernels_.clear();
    return driver_.called("cuLibraryUnload", first);
  }

private:
  struct Loaded {
    CUlib_st* library;
    CUkern_st* kernel;
  };

  std::size_t place(const Variant& variant, int ordinal) const {
    return variant.row * devices_ + static_cast<std::size_t>(ordinal);
  }

  template <class Image>
  Status load_and_prepare(const Variant& variant, Image image, const Device& device,
                          CUfunc_st** loaded) {
    if (!kernels_.count(variant.row)) KERNELPACK_CHECK(load(variant, image, device));
    return prepare(variant, device.ordinal, loaded);
  }

  template <class Image>
  Status load(const Variant& variant, Image image, const Device& device) {
    KERNELPACK_TRY(bytes, image());
    Loaded loaded{};
    KERNELPACK_CHECK(driver_.called(
        "cuLibraryLoadData", driver_.api.cuLibraryLoadData(&loaded.library, bytes.data(), nullptr,
                                                           nullptr, 0, nullptr, nullptr, 0)));
    const std::string symbol(variant.symbol);
    const int code = driver_.api.cuLibraryGetKernel(&loaded.kernel, loaded.library, symbol.c_str());
    if (!code) {
      kernels_[variant.row] = loaded;
      return {};
    }
    driver_.api.cuLibraryUnload(loaded.library);
    if (code != kNotFound) return driver_.error("cuLibraryGetKernel", code);
    // Machine code for another device loads with success and fails only here.
    return Error{ErrorKind::kSelection,
                 "the " + driver_.text() + " finds no kernel " + quoted(symbol) + " for " +
                     device.text() + " in the machine code of " + std::string(variant.target),
                 std::string(variant.id),
                 {}};
  }

  /// Finish lazy loading, and allow what the launch will ask for.
  Status prepare(const Variant& variant, int ordinal, CUfunc_st** loaded) {
    CUkern_st* kernel = kernels_[variant.row].kernel;
    KERNELPACK_CHECK(
        driver_.called("cuKernelGetFunction", driver_.api.cuKernelGetFunction(loaded, kernel)));
    const auto set = [&](int attribute, std::int64_t value) {
      const int code =
          driver_.api.cuKernelSetAttribute(attribute, static_cast<int>(value), kernel, ordinal);
      return driver_.called("cuKernelSetAttribute", code);
    };
    if (const std::int64_t bytes = most_dynamic_bytes(variant))
      KERNELPACK_CHECK(set(kMaxDynamicSharedBytes, bytes));
    if (most_blocks(variant) > kPortableCluster) KERNELPACK_CHECK(set(kNonPortableCluster, 1));
    return {};
  }

  /// Dynamic shared memory; where it depends on the sizes, the most that a target has.
  static std::int64_t most_dynamic_bytes(const Variant& variant) {
    const auto constant = variant.launch.shared_bytes->constant();
    return constant ? *constant : variant.limits->shared_bytes - variant.static_shared_bytes;
  }

  /// Blocks of a cluster; a side that depends on the sizes counts as the most there can be.
  static std::int64_t most_blocks(const Variant& variant) {
    std::int64_t blocks = 1;
    const std::int64_t most = variant.limits->cluster;
    for (const Expression* side : variant.launch.cluster)
      blocks *= std::clamp(side->constant().value_or(most), std::int64_t{0}, most + 1);
    return blocks;
  }

  const Driver& driver_;
  const std::size_t devices_;
  std::unique_ptr<std::atomic<const Function*>[]> ready_;
  const std::size_t size_;
  std::mutex mutex_;  // of what follows
  std::unordered_map<std::uint64_t, Loaded> kernels_;
  std::deque<Function> made_;
};

}  // namespace kernelpack::detail
