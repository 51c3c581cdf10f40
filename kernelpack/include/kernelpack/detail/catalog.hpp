// The entries of an index as values: find one by id, read its record, the variants of a kernel.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "decode.hpp"
#include "until_done.hpp"

namespace kernelpack {

/// An entry of a bundle. Registers count for one thread; sizes are bytes.
struct Record {
  std::string_view id, symbol, kernel, target;
  std::uint32_t abi, registers, shared_bytes, stack_bytes, spill_bytes, parameter_bytes;
  std::uint64_t image_bytes;
  detail::Digest image_digest, ptx_digest, source_digest;
};

namespace detail {

class Catalog {
public:
  explicit Catalog(const Sections& sections)
      : sections_(sections), count_(sections.count(Section::kEntries)) {}

  std::uint64_t size() const { return count_; }

  /// Whether there is an entry of an id.
  Result<bool> holds(std::string_view id) const {
    KERNELPACK_TRY(row, sections_.search<EntryRow>(digest_of(id)));
    return row.has_value();
  }

  /// The row of an entry.
  Result<std::uint64_t> find(std::string_view id) const {
    KERNELPACK_TRY(row, sections_.search<EntryRow>(digest_of(id)));
    if (row) return *row;
    KERNELPACK_TRY(hint, nearest(id));
    return Error{ErrorKind::kBundle, "no entry " + quoted(id), sections_.where(), hint};
  }

  Result<Record> record(std::uint64_t number) const {
    KERNELPACK_TRY(row, sections_.row<EntryRow>(number));
    KERNELPACK_TRY(image, sections_.row<ImageRow>(row.image));
    KERNELPACK_TRY(kernel, sections_.row<KernelRow>(row.kernel));
    KERNELPACK_TRY(stem, sections_.text(kernel.stem));
    KERNELPACK_TRY(id, checked_id(row));
    KERNELPACK_TRY(symbol, sections_.text(row.symbol));
    KERNELPACK_TRY(target, target_name(row.target));
    return Record{id,
                  symbol,
                  stem,
                  target,
                  kernel.abi,
                  row.registers,
                  row.shared_bytes,
                  row.stack_bytes,
                  row.spill_bytes,
                  row.parameter_bytes,
                  image.size,
                  image.digest,
                  row.ptx_digest,
                  row.source_digest};
  }

  /// The rows of the kernels of a stem, or of all.
  Result<std::vector<std::uint64_t>> kernels(std::optional<std::string_view> stem) const {
    std::vector<std::uint64_t> found;
    for (std::uint64_t number = 0; number < sections_.count(Section::kKernels); ++number) {
      KERNELPACK_TRY(row, sections_.row<KernelRow>(number));
      KERNELPACK_TRY(name, sections_.text(row.stem));
      if (!stem || *stem == name) found.push_back(number);
    }
    return found;
  }

  /// The stem of every kernel.
  Result<std::set<std::string_view>> stems() const {
    std::set<std::string_view> found;
    for (std::uint64_t number = 0; number < sections_.count(Section::kKernels); ++number) {
      KERNELPACK_TRY(row, sections_.row<KernelRow>(number));
      KERNELPACK_TRY(name, sections_.text(row.stem));
      found.insert(name);
    }
    return found;
  }

  /// The rows of a kernel's entries, each its own and once: by id.
  Result<Items> members(std::uint64_t kernel) const {
    KERNELPACK_TRY(row, sections_.row<KernelRow>(kernel));
    KERNELPACK_TRY(rows, sections_.list(row.entries, count_));
    std::string_view before;
    for (std::uint32_t place = 0; place < rows.size(); ++place) {
      KERNELPACK_TRY(entry, sections_.row<EntryRow>(rows[place]));
      KERNELPACK_TRY(known, sections_.text(entry.id));
      if (entry.kernel != kernel)
        return sections_.refusal("kernel " + decimal(kernel) + " lists row " +
                                 decimal(rows[place]) + ", which is of " + decimal(entry.kernel));
      if (place && known <= before)
        return sections_.refusal("the entries of kernel " + decimal(kernel) +
                                 " are not sorted by id");
      before = known;
    }
    return rows;
  }

  Result<std::string_view> id(std::uint64_t number) const {
    KERNELPACK_TRY(row, sections_.row<EntryRow>(number));
    return sections_.text(row.id);
  }

  /// The target of an entry; none where this version does not know it.
  Result<const Target*> target(std::uint64_t number) const {
    KERNELPACK_TRY(row, sections_.row<EntryRow>(number));
    KERNELPACK_TRY(name, target_name(row.target));
    for (const Target& known : kTargets)
      if (known.name == name) return &known;
    return nullptr;
  }

private:
  Result<std::string_view> checked_id(const EntryRow& row) const {
    KERNELPACK_TRY(id, sections_.text(row.id));
    if (digest_of(id) == row.id_digest) return id;
    return sections_.refusal("the entry of " + quoted(id) + " is filed under another id");
  }

  Result<std::string_view> target_name(std::uint64_t number) const {
    KERNELPACK_TRY(row, sections_.row<TargetRow>(number));
    return sections_.text(row.name);
  }

  /// A hint for an id that is not held: the kernels, or the id that has most words in common.
  Result<std::string> nearest(std::string_view wanted) const {
    const std::string_view stem = wanted.substr(0, wanted.find('['));
    KERNELPACK_TRY(held, kernels(stem));
    if (held.empty()) return kernel_names();
    std::string_view best;
    std::size_t most = 0;
    for (const std::uint64_t kernel : held) {
      KERNELPACK_TRY(rows, members(kernel));
      for (std::uint32_t place = 0; place < std::min(rows.size(), 1000u); ++place) {
        KERNELPACK_TRY(known, id(rows[place]));
        const std::size_t common = words_in_common(wanted, known) + 1;
        if (common > most) most = common, best = known;
      }
    }
    return most ? "did you mean " + quoted(best) + "?" : std::string();
  }

  Result<std::string> kernel_names() const {
    KERNELPACK_TRY(held, stems());
    const auto show = [](std::string_view name) { return std::string(name); };
    return "kernels: " + (held.empty() ? "none" : joined(held, show));
  }

  static std::size_t words_in_common(std::string_view wanted, std::string_view known) {
    std::size_t common = 0;
    while (!known.empty()) {
      const std::size_t end = std::min(known.find_first_of("[,]"), known.size());
      common += end && wanted.find(known.substr(0, end)) != wanted.npos;
      known.remove_prefix(std::min(end + 1, known.size()));
    }
    return common;
  }

  const Sections& sections_;
  std::uint64_t count_;
};

/// The variants of one kernel, decoded when they are first asked for.
class KernelVariants {
public:
  /// Those that this version knows the target of, by id. Shared by threads.
  Result<const std::vector<Variant>*> get(const Bundle& bundle, const Sections& sections,
                                          const Catalog& catalog, std::uint64_t number) {
    KERNELPACK_CHECK(once_.run([&]() -> Status {
      variants_.clear();
      if (Status status = read(sections, catalog, number); !status) return status;
      for (Variant& variant : variants_) variant.bundle = &bundle;
      return {};
    }));
    return &variants_;
  }

private:
  Status read(const Sections& sections, const Catalog& catalog, std::uint64_t number) {
    decoder_.reset();
    KERNELPACK_TRY(rows, catalog.members(number));
    for (std::uint32_t place = 0; place < rows.size(); ++place) {
      KERNELPACK_TRY(target, catalog.target(rows[place]));
      if (target) KERNELPACK_CHECK(read_variant(sections, catalog, number, rows[place], *target));
    }
    return {};
  }

  Status read_kernel(const Sections& sections, std::uint64_t number) {
    KERNELPACK_TRY(row, sections.row<KernelRow>(number));
    KERNELPACK_TRY(stem, sections.text(row.stem));
    KERNELPACK_TRY(names, sections.list(row.names));
    kernel_ = {stem, row.abi, row.sizes, {}, {}};
    for (std::uint32_t place = 0; place < names.size(); ++place) {
      KERNELPACK_TRY(record, sections.record<NameFields>(names[place]));
      KERNELPACK_TRY(name, sections.text(record.fields.name));
      KERNELPACK_CHECK(sections.text(record.fields.doc));
      kernel_.names.push_back(name);
    }
    if (row.sizes > names.size())
      return sections.refusal("kernel " + decimal(number) + " has " + decimal(row.sizes) +
                              " sizes and " + decimal(names.size()) + " names");
    KERNELPACK_CHECK(read_numbers(sections, number));
    decoder_.emplace(sections, kernel_);
    return {};
  }

  /// The numbers of a kernel, which may have none.
  Status read_numbers(const Sections& sections, std::uint64_t kernel) {
    const std::uint64_t kernels = sections.count(Section::kKernels);
    Wide before = -1;
    for (std::uint64_t place = 0; place < sections.count(Section::kNumbers); ++place) {
      KERNELPACK_TRY(row, sections.row<NumberRow>(place));
      if (row.kernel <= before || row.kernel >= kernels)
        return sections.refusal("numbers of kernel " + decimal(row.kernel) + " of " +
                                decimal(kernels) + ", after " + decimal(before));
      before = row.kernel;
      if (row.kernel != kernel) continue;
      KERNELPACK_TRY(refs, sections.list(row.numbers));
      for (std::uint32_t at = 0; at < refs.size(); ++at)
        KERNELPACK_CHECK(read_number(sections, refs[at]));
    }
    return {};
  }

  Status read_number(const Sections& sections, Ref ref) {
    KERNELPACK_TRY(record, sections.record<NumberFields>(ref));
    const NumberFields& fields = record.fields;
    if (is_nan(fields.default_value))
      return sections.refusal("the number of record " + decimal(ref) + " is NaN by default");
    KERNELPACK_TRY(name, sections.text(fields.name));
    KERNELPACK_TRY(doc, sections.text(fields.doc));
    std::optional<double> otherwise;
    if (fields.has_default) otherwise = fields.default_value;
    kernel_.numbers.push_back({name, doc, otherwise});
    return {};
  }

  Status read_variant(const Sections& sections, const Catalog& catalog, std::uint64_t kernel,
                      std::uint64_t number, const Target& target) {
    KERNELPACK_TRY(record, catalog.record(number));
    KERNELPACK_TRY(row, sections.row<EntryRow>(number));
    KERNELPACK_TRY(fields, sections.record<VariantFields>(row.variant));
    if (fields.fields.kernel != kernel)
      return sections.refusal("row " + decimal(number) + " is of kernel " + decimal(kernel) +
                              ", its variant of " + decimal(fields.fields.kernel));
    if (!decoder_) KERNELPACK_CHECK(read_kernel(sections, kernel));
    Variant variant{};
    variant.id = record.id, variant.symbol = record.symbol, variant.target = record.target;
    variant.limits = &target.limits;
    for (int place = 0; place < target.capabilities.count; ++place) {
      const auto& [major_number, minor_number] = target.capabilities.of[place];
      variant.capabilities.push_back({major_number, minor_number});
    }
    variant.kernel = &kernel_;
    variant.static_shared_bytes = record.shared_bytes;
    variant.row = number;
    KERNELPACK_CHECK(decoder_->decode(fields.fields, variant));
    KERNELPACK_CHECK(check_names(sections, variant));
    KERNELPACK_CHECK(check_slots(sections, variant, target.parameter_base));
    variants_.push_back(std::move(variant));
    return {};
  }

  /// An entry is called what its variant is.
  static Status check_names(const Sections& sections, const Variant& variant) {
    std::string id = std::string(variant.kernel->stem) + "[arch=" + std::string(variant.target);
    std::string words(variant.kernel->stem);
    for (const Constant* axis : variant.axes) {
      const std::string value = axis->value_text();
      id += "," + lower(axis->name) + "=" + value;
      words += "_" + value;
    }
    id += "]";
    for (const auto& [named, held] :
         {std::pair(variant.id, id), std::pair(variant.symbol, symbol_of(words))})
      if (named != held)
        return sections.refusal("the entry of " + quoted(named) + " holds the variant " +
                                quoted(held));
    return {};
  }

  static Status check_slots(const Sections& sections, const Variant& variant, std::uint64_t base) {
    const std::vector<Slot> slots = layout(variant.params, base);
    for (std::size_t place = 0; place < slots.size(); ++place)
      if (!(slots[place] == variant.params[place]->slot))
        return sections.refusal(quoted(variant.id) +
                                ": parameters are not where its target has them");
    return {};
  }

  UntilDone once_;
  Kernel kernel_;
  std::optional<Decoder> decoder_;
  std::vector<Variant> variants_;
};

}  // namespace detail
}  // namespace kernelpack
