// Work that threads share and that is done once.
#pragma once

#include <atomic>
#include <mutex>

#include "result.hpp"

namespace kernelpack::detail {

/// Done by the first who asks, and not again once it succeeded. An error is not kept: it may pass,
/// as no memory and a busy disk do, so the next who asks tries again.
class UntilDone {
public:
  template <class Work>
  Status run(Work work) {
    if (is_done_.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex_);
    if (is_done_.load(std::memory_order_relaxed)) return {};
    KERNELPACK_CHECK(work());
    is_done_.store(true, std::memory_order_release);
    return {};
  }

private:
  std::atomic<bool> is_done_{false};
  std::mutex mutex_;
};

}  // namespace kernelpack::detail
