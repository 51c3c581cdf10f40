// Which variant serves a problem, and why each other one does not.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuned.hpp"
#include "variant.hpp"

namespace kernelpack::detail {

/// A variant checked against a problem: its cost if it serves, else the guard that turned it away,
/// or none where it does not run on the device.
struct Verdict {
  const Variant* variant;
  std::optional<std::int64_t> cost;
  const Guard* guard;

  std::string reason() const {
    if (guard) return std::string(guard->reason);
    const auto show = [](const Capability& capability) { return capability.text(); };
    return std::string(variant->target) + " runs on compute capability " +
           joined(variant->capabilities, show) + " only";
  }
};

inline Result<Verdict> judge(const Variant& variant, const Values& sizes, Capability capability) {
  if (!variant.runs_on(capability)) return Verdict{&variant, {}, nullptr};
  for (const Guard* guard : variant.guards) {
    KERNELPACK_TRY(holds, evaluate(*guard->when, sizes));
    if (!holds) return Verdict{&variant, {}, guard};
  }
  KERNELPACK_TRY(cost, evaluate(*variant.cost, sizes));
  return Verdict{&variant, cost, nullptr};
}

/// Each reason once, with the candidates it turned away, in the order they came.
inline std::string reasons(const std::vector<Verdict>& verdicts) {
  std::vector<std::pair<std::string, std::string>> lost;
  for (const Verdict& verdict : verdicts) {
    const std::string reason = verdict.reason(), id(verdict.variant->id);
    const auto same =
        std::find_if(lost.begin(), lost.end(), [&](auto& known) { return known.first == reason; });
    if (same == lost.end())
      lost.emplace_back(reason, id);
    else
      same->second += ", " + id;
  }
  const auto show = [](const auto& known) { return "\n  " + known.first + ": " + known.second; };
  return lost.empty() ? "the bundle holds none" : "why each lost:" + joined(lost, show, "");
}

inline Error refusal(const std::vector<Verdict>& verdicts, const Sizes& sizes,
                     Capability capability) {
  std::set<std::string> kernels;
  for (const Verdict& verdict : verdicts) kernels.emplace(verdict.variant->kernel->stem);
  if (kernels.empty()) kernels.emplace("any kernel");
  const auto show = [](const auto& size) {
    return std::string(size.first) + "=" + decimal(size.second);
  };
  const std::string what = "no variant of " +
                           joined(kernels, [](const auto& kernel) { return kernel; }) + " serves " +
                           joined(sizes, show) + " on compute capability " + capability.text() +
                           " (" + decimal(verdicts.size()) + " candidates)";
  return {ErrorKind::kSelection, what, {}, reasons(verdicts)};
}

/// The variant of least cost among those that serve; of equal costs, the first by id. Times of the
/// kernel, where given, choose where they were measured, and between.
inline Result<const Variant*> select(const std::vector<const Variant*>& variants,
                                     const Sizes& sizes, Capability capability,
                                     const TunedKernel* tuned = nullptr) {
  std::vector<Verdict> verdicts;
  const Verdict* best = nullptr;
  verdicts.reserve(variants.size());
  std::optional<Values> values;  // of the kernel of the variant before
  const Kernel* kernel = nullptr;
  for (const Variant* variant : variants) {
    if (variant->kernel != kernel) values.emplace(variant->kernel->names, sizes);
    kernel = variant->kernel;
    KERNELPACK_TRY(verdict, judge(*variant, *values, capability));
    verdicts.push_back(verdict);
    if (!verdict.cost) continue;
    const bool is_better = !best || *verdict.cost < *best->cost ||
                           (*verdict.cost == *best->cost && variant->id < best->variant->id);
    if (is_better) best = &verdicts.back();
  }
  if (!best) return refusal(verdicts, sizes, capability);
  if (tuned) {
    std::vector<const Variant*> serving;
    for (const Verdict& verdict : verdicts)
      if (verdict.cost) serving.push_back(verdict.variant);
    return chosen(*tuned, sizes, serving, best->variant);
  }
  return best->variant;
}

}  // namespace kernelpack::detail
