// Several bundles as one: what the wheels of several targets install.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "bundle.hpp"

namespace kernelpack {

/// Bundles whose entries are chosen from together; an id is in one of them. Shared by threads.
class Joined {
public:
  using Bundles = std::vector<std::unique_ptr<Bundle>>;
  using Variants = std::vector<const Variant*>;

  static Result<std::unique_ptr<Joined>> make(Bundles bundles) {
    std::unique_ptr<Joined> made(new Joined(std::move(bundles)));
    for (const auto& bundle : made->bundles_) {
      KERNELPACK_TRY(stems, bundle->kernels());
      for (const std::string_view stem : stems) made->listed_[stem];
    }
    return made;
  }
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;

  const Bundles& bundles() const { return bundles_; }

  /// The files, for messages.
  std::string where() const {
    return detail::joined(bundles_, [](const auto& bundle) { return bundle->path(); });
  }

  /// The variants of a kernel, by id; none where no bundle holds it. Listed when first asked for.
  Result<const Variants*> variants(std::string_view kernel) const {
    static const Variants none;
    const auto found = listed_.find(kernel);
    if (found == listed_.end()) return &none;
    Listed& listed = found->second;
    KERNELPACK_CHECK(listed.once.run([&]() -> Status {
      KERNELPACK_TRY(variants, list(kernel));
      listed.variants = std::move(variants);
      return {};
    }));
    return &listed.variants;
  }

  /// The variants of all kernels, by kernel and id.
  Result<Variants> variants() const { return list(std::nullopt); }

  /// The bundle that holds an entry.
  Result<const Bundle*> holding(std::string_view id) const {
    for (const auto& bundle : bundles_) {
      KERNELPACK_TRY(holds, bundle->holds(id));
      if (holds) return bundle.get();
    }
    return Error{ErrorKind::kBundle, "no entry " + detail::quoted(id), where(), {}};
  }

private:
  struct Listed {
    detail::UntilDone once;
    Variants variants;
  };

  explicit Joined(Bundles bundles) : bundles_(std::move(bundles)) {}

  Result<Variants> list(std::optional<std::string_view> kernel) const {
    if (bundles_.size() == 1) return bundles_.front()->variants(kernel);
    Variants all;
    std::unordered_map<std::string_view, const Bundle*> holders;
    for (const auto& bundle : bundles_) {
      KERNELPACK_TRY(some, bundle->variants(kernel));
      for (const Variant* variant : some) {
        const auto [known, is_new] = holders.emplace(variant->id, bundle.get());
        if (!is_new) return twice(variant->id, *known->second, *bundle);
        all.push_back(variant);
      }
    }
    const auto key = [](const Variant* variant) {
      return std::tuple(variant->kernel->stem, variant->kernel->abi, variant->id);
    };
    std::sort(all.begin(), all.end(),
              [&](const Variant* a, const Variant* b) { return key(a) < key(b); });
    return all;
  }

  static Error twice(std::string_view id, const Bundle& one, const Bundle& other) {
    return {ErrorKind::kBundle, detail::quoted(id) + " is in " + one.path() + " too", other.path(),
            "uninstall one of the two packages, or name a bundle: `kernelpack.load(path)`"};
  }

  Bundles bundles_;
  mutable std::map<std::string_view, Listed> listed_;  // by stem; which there are never changes
};

}  // namespace kernelpack
