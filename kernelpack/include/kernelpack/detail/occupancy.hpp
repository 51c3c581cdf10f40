// How many clusters of a kernel run at once on a device: the driver is asked, and remembered. GPCs
// differ from GPU to GPU, so that no table can say it.
#pragma once

#include <atomic>
#include <cstdint>

#include "driver.hpp"
#include "plan.hpp"

namespace kernelpack::detail {

/// What a driver said of one kernel on one device. Shared by threads; what was asked before costs
/// no lock.
class Occupancy {
public:
  Occupancy() = default;
  Occupancy(const Occupancy&) = delete;
  Occupancy& operator=(const Occupancy&) = delete;
  ~Occupancy() {
    for (const Answer* answer = first_.load(); answer;) {
      const Answer* next = answer->next;
      delete answer;
      answer = next;
    }
  }

  /// How many clusters of `ctas` such CTAs run at once; 0: not even one fits.
  Result<std::int64_t> clusters(const Driver& driver, int device, CUfunc_st* function, Cta cta,
                                std::int64_t ctas) const {
    if (ctas > kMostCluster) return std::int64_t{0};
    for (const Answer* known = first_.load(std::memory_order_acquire); known; known = known->next)
      if (known->ctas == ctas && known->cta.threads == cta.threads &&
          known->cta.shared_bytes == cta.shared_bytes)
        return known->count;
    KERNELPACK_TRY(count, ask(driver, device, function, cta, ctas));
    Answer* answer = new Answer{cta, ctas, count, first_.load(std::memory_order_relaxed)};
    while (!first_.compare_exchange_weak(answer->next, answer, std::memory_order_release)) {
    }
    return count;
  }

private:
  /// One of a list that only grows; two threads may both have asked.
  struct Answer {
    Cta cta;
    std::int64_t ctas, count;
    const Answer* next;
  };

  static Result<std::int64_t> ask(const Driver& driver, int device, CUfunc_st* function, Cta cta,
                                  std::int64_t ctas) {
    const auto number = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
    LaunchAttribute attribute{kClusterDimension, 0, {number(ctas), 1, 1}};
    const LaunchConfig config{{number(ctas), 1, 1},
                              {number(cta.threads), 1, 1},
                              number(cta.shared_bytes),
                              nullptr,
                              &attribute,
                              1};
    int count = 0, code = 0;
    KERNELPACK_CHECK(driver.with_current(device, [&] {
      code = driver.api.cuOccupancyMaxActiveClusters(&count, function, &config);
      return Status();
    }));
    if (code == kInvalidClusterSize) return std::int64_t{0};
    KERNELPACK_CHECK(driver.called("cuOccupancyMaxActiveClusters", code));
    return std::int64_t{count};
  }

  mutable std::atomic<const Answer*> first_{nullptr};
};

}  // namespace kernelpack::detail
