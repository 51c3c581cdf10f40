// The C interface over loader.hpp: handles are the objects, and nothing else is decided here.
#include "kernelpack.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "loader.hpp"

struct kp_error {
  kernelpack::Error error;
};

namespace {

using kernelpack::Library;
using kernelpack::Variant;

Library* held(kp_library* library) { return reinterpret_cast<Library*>(library); }
const Library* held(const kp_library* library) { return reinterpret_cast<const Library*>(library); }
const Variant* held(const kp_variant* variant) { return reinterpret_cast<const Variant*>(variant); }
kernelpack::Launch* held(kp_launch* launch) {
  return reinterpret_cast<kernelpack::Launch*>(launch);
}

kp_status fail(kernelpack::Error&& error, kp_error** out) {
  const auto status = static_cast<kp_status>(error.kind);
  if (out) *out = new kp_error{std::move(error)};
  return status;
}

kp_status done(kernelpack::Status&& status, kp_error** out) {
  return status ? KP_OK : fail(std::move(status.error()), out);
}

constexpr const char* kNull = "a pointer that this call needs is NULL";
constexpr const char* kProblem = "a problem lacks its struct_size, its sizes or the name of one";
constexpr const char* kArguments =
    "arguments lack their struct_size, addresses, numbers or the name of one";

/// A mistake of the caller that has no kind in C++.
kp_status misused(const char* what, kp_error** out) {
  if (out) *out = new kp_error{{kernelpack::ErrorKind::kProblem, what, {}, "see kernelpack.h"}};
  return KP_USAGE;
}

/// A struct of the caller's, or of one who knows its first version alone; what that lacks is 0. One
/// of another size is cut, which is a mistake.
template <class Struct>
bool take(const Struct* given, Struct* known, std::size_t first = sizeof(Struct)) {
  if (!given || (given->struct_size < sizeof *known && given->struct_size != first)) return false;
  *known = {};
  std::memcpy(known, given, std::min(given->struct_size, sizeof *known));
  return true;
}

/// Whether an array is there, and the name of each of its items.
template <class Item>
bool are_named(const Item* items, std::size_t count) {
  return (items || !count) &&
         std::all_of(items, items + count, [](const Item& item) { return item.name; });
}

bool are_given(const char* const* words, std::size_t count) {
  return words && std::all_of(words, words + count, [](const char* word) { return word; });
}

bool take_problem(const kp_problem* given, kp_problem* known) {
  return take(given, known) && are_named(known->sizes, known->size_count);
}

bool take_arguments(const kp_arguments* given, kp_arguments* known) {
  return take(given, known, offsetof(kp_arguments, numbers)) &&
         are_named(known->addresses, known->address_count) &&
         are_named(known->numbers, known->number_count);
}

kernelpack::Sizes sizes_of(const kp_problem& problem) {
  kernelpack::Sizes sizes;
  for (std::size_t i = 0; i < problem.size_count; ++i)
    sizes.emplace_back(problem.sizes[i].name, problem.sizes[i].value);
  return sizes;
}

kernelpack::Abis abis_of(const kp_problem& problem) {
  if (!problem.abi_first && !problem.abi_last) return {};
  return {problem.abi_first, problem.abi_last};
}

kernelpack::Paths paths_of(const char* const* paths, std::size_t count) {
  return std::vector<std::string>(paths, paths + count);
}

kernelpack::Result<std::unique_ptr<Library>> open(const kernelpack::Paths& paths,
                                                  const kp_options& options) {
  kernelpack::Trust trust;
  if (options.trust) trust = paths_of(options.trust, options.trust_count);
  kernelpack::Tuned tuned;
  if (options.tuned) tuned = options.tuned;
  if (!options.libcuda) return kernelpack::load(paths, trust, tuned);
  auto driver = kernelpack::Driver::connect(options.libcuda);
  if (!driver) return std::move(driver.error());
  return kernelpack::load(paths, std::move(*driver), trust, tuned);
}

kernelpack::Addresses addresses_of(const kp_arguments& arguments) {
  kernelpack::Addresses addresses;
  for (std::size_t i = 0; i < arguments.address_count; ++i)
    addresses.emplace_back(arguments.addresses[i].name, arguments.addresses[i].address);
  return addresses;
}

kernelpack::Numbers numbers_of(const kp_arguments& arguments) {
  kernelpack::Numbers numbers;
  for (std::size_t i = 0; i < arguments.number_count; ++i)
    numbers.emplace_back(arguments.numbers[i].name, arguments.numbers[i].value);
  return numbers;
}

std::optional<kernelpack::Stream> stream_of(const kp_arguments& arguments) {
  return arguments.stream ? std::optional(*arguments.stream) : std::nullopt;
}

}  // namespace

extern "C" {

uint32_t kp_abi(void) { return KP_ABI; }

const char* kp_error_where(const kp_error* error) {
  return error ? error->error.where.c_str() : "";
}
const char* kp_error_what(const kp_error* error) { return error ? error->error.what.c_str() : ""; }
const char* kp_error_hint(const kp_error* error) { return error ? error->error.hint.c_str() : ""; }
void kp_error_free(kp_error* error) { delete error; }

kp_status kp_library_open(const char* const* paths, size_t path_count, const kp_options* options,
                          kp_library** library, kp_error** error) {
  kp_options known{};
  if (!are_given(paths, path_count) || !library)
    return misused("paths and a place for the library are needed", error);
  if (options && !take(options, &known)) return misused("struct_size of options is not set", error);
  const bool is_trust_given =
      known.trust ? are_given(known.trust, known.trust_count) : !known.trust_count;
  if (!is_trust_given) return misused(kNull, error);
  auto opened = open(paths_of(paths, path_count), known);
  if (!opened) return fail(std::move(opened.error()), error);
  *library = reinterpret_cast<kp_library*>(opened->release());
  return KP_OK;
}

void kp_library_free(kp_library* library) { delete held(library); }

int32_t kp_library_device_count(const kp_library* library) {
  if (!library) return 0;
  return static_cast<int32_t>(held(library)->driver().devices().size());
}

kp_status kp_library_device(const kp_library* library, int32_t ordinal, kp_device* device,
                            kp_error** error) {
  kp_device known{};
  if (!library) return misused(kNull, error);
  if (!take(device, &known)) return misused("struct_size of the device is not set", error);
  auto found = held(library)->driver().device(ordinal);
  if (!found) return fail(std::move(found.error()), error);
  known.capability_major = (*found)->capability.major_number;
  known.capability_minor = (*found)->capability.minor_number;
  known.sm_count = (*found)->sm_count;
  std::memset(known.name, 0, sizeof known.name);
  (*found)->name.copy(known.name, sizeof known.name - 1);
  *device = known;
  return KP_OK;
}

kp_status kp_library_preload(kp_library* library, int32_t device, const char* kernel, size_t* count,
                             kp_error** error) {
  if (!library) return misused(kNull, error);
  const auto stem = kernel ? std::optional<std::string_view>(kernel) : std::nullopt;
  auto loaded = held(library)->preload(device, stem);
  if (!loaded) return fail(std::move(loaded.error()), error);
  if (count) *count = *loaded;
  return KP_OK;
}

kp_status kp_library_unload(kp_library* library, kp_error** error) {
  if (!library) return misused(kNull, error);
  return done(held(library)->unload(), error);
}

kp_status kp_select(const kp_library* library, const kp_problem* problem,
                    const kp_variant** variant, kp_error** error) {
  kp_problem known;
  if (!library || !variant) return misused(kNull, error);
  if (!take_problem(problem, &known)) return misused(kProblem, error);
  if (!known.kernel) return misused("a problem has no kernel", error);
  auto chosen = held(library)->select(known.kernel, sizes_of(known), known.device, abis_of(known));
  if (!chosen) return fail(std::move(chosen.error()), error);
  *variant = reinterpret_cast<const kp_variant*>(*chosen);
  return KP_OK;
}

const char* kp_variant_id(const kp_variant* variant, size_t* size) {
  if (size) *size = variant ? held(variant)->id.size() : 0;
  if (!variant) return "";
  return held(variant)->id.data();
}

kp_status kp_workspace_bytes(const kp_library* library, const kp_variant* variant,
                             const kp_problem* problem, int64_t* bytes, kp_error** error) {
  kp_problem known;
  if (!library || !variant || !bytes) return misused(kNull, error);
  if (!take_problem(problem, &known)) return misused(kProblem, error);
  auto needed = held(library)->workspace_bytes(*held(variant), sizes_of(known), known.device);
  if (!needed) return fail(std::move(needed.error()), error);
  *bytes = *needed;
  return KP_OK;
}

kp_status kp_launch_pack(kp_library* library, const kp_variant* variant, const kp_problem* problem,
                         const kp_arguments* arguments, kp_launch** launch, kp_error** error) {
  kp_problem known;
  kp_arguments given;
  if (!library || !variant || !launch) return misused(kNull, error);
  if (!take_problem(problem, &known)) return misused(kProblem, error);
  if (!take_arguments(arguments, &given)) return misused(kArguments, error);
  auto packed = held(library)->pack(*held(variant), sizes_of(known), addresses_of(given),
                                    known.device, stream_of(given), numbers_of(given));
  if (!packed) return fail(std::move(packed.error()), error);
  *launch = reinterpret_cast<kp_launch*>(new kernelpack::Launch(std::move(*packed)));
  return KP_OK;
}

kp_status kp_launch_rebind(kp_launch* launch, const char* argument, uint64_t address,
                           kp_error** error) {
  if (!launch || !argument) return misused(kNull, error);
  return done(held(launch)->rebind(argument, address), error);
}

kp_status kp_launch_set(kp_launch* launch, const char* number, double value, kp_error** error) {
  if (!launch || !number) return misused(kNull, error);
  return done(held(launch)->set(number, value), error);
}

kp_status kp_launch_start(kp_launch* launch, kp_stream stream, kp_error** error) {
  if (!launch) return misused(kNull, error);
  return done((*held(launch))(stream), error);
}

void kp_launch_free(kp_launch* launch) { delete held(launch); }

}  // extern "C"
