// A launch with every number known, and how a variant and a problem become one.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "number.hpp"
#include "tensor_map.hpp"

namespace kernelpack {

/// The device address of each argument, by name, bytes.
using Addresses = std::vector<std::pair<std::string_view, std::uint64_t>>;

namespace detail {

/// Counts along x, y, z.
struct Dim3 {
  std::int64_t x = 1, y = 1, z = 1;

  std::int64_t count() const { return x * y * z; }
  bool is_one() const { return x == 1 && y == 1 && z == 1; }
  std::string text() const {
    return "Dim3(x=" + decimal(x) + ", y=" + decimal(y) + ", z=" + decimal(z) + ")";
  }
};

/// What a parameter is in one launch.
struct Pointer {
  std::uint64_t address;
};
/// An integer, or the bits of a number.
struct Scalar {
  DType dtype;
  std::int64_t value;
};
using PlanArgument = std::variant<Pointer, Scalar, TensorMap>;

struct Plan {
  Dim3 grid, block, cluster;
  std::int64_t shared_bytes;
  std::vector<PlanArgument> arguments;
  bool is_programmatic;  // may start before the kernel ahead of it in the stream has ended
};

/// What a CTA takes of a multiprocessor; bytes of dynamic shared memory.
struct Cta {
  std::int64_t threads, shared_bytes;
};

/// How many clusters of so many such CTAs run at once on a device.
using Fits = std::function<Result<std::int64_t>(Cta, std::int64_t)>;

inline Error problem(std::string what, std::string where) {
  return {ErrorKind::kProblem, std::move(what), std::move(where), {}};
}

/// Whether a call has no elements of an argument; one whose shape has no value has some.
inline bool is_empty(const Argument& argument, const Values& sizes) {
  return std::any_of(argument.shape.begin(), argument.shape.end(), [&](const Expression* side) {
    const auto count = evaluate(*side, sizes);
    return count && *count <= 0;
  });
}

/// The address of an argument, which must be given and aligned; one that is empty may be left out,
/// and is null.
inline Result<std::uint64_t> address_of(const Variant& variant, const Argument& argument,
                                        const Values& sizes, const Addresses& addresses) {
  const std::uint64_t* found = nullptr;
  for (const auto& [name, address] : addresses)
    if (name == argument.name) found = &address;
  if (!found && is_empty(argument, sizes)) return std::uint64_t{0};
  if (!found) {
    const auto show = [](const Argument* known) { return std::string(known->name); };
    return Error{ErrorKind::kProblem,
                 "no address for argument " + quoted(argument.name),
                 {},
                 "needs: " + joined(variant.arguments, show)};
  }
  if (*found % argument.align_bytes)
    return problem("must be aligned to " + decimal(argument.align_bytes) + " bytes, not " +
                       hexadecimal(*found),
                   std::string(variant.kernel->stem) + ": " + quoted(argument.name));
  return *found;
}

/// Where an argument lies on the device; one of no elements may lie nowhere.
struct Bound {
  std::uint64_t address;
  bool is_empty;
};

inline Status check_somewhere(const Argument& argument, const Bound& bound) {
  if (bound.address || bound.is_empty) return {};
  return problem("0x0 is not an address of device memory", quoted(argument.name));
}

/// Where the arguments of a call lie, in their order.
inline Result<std::vector<Bound>> bind(const Variant& variant, const Values& sizes,
                                       const Addresses& addresses) {
  std::vector<Bound> bound;
  for (const Argument* argument : variant.arguments) {
    KERNELPACK_TRY(address, address_of(variant, *argument, sizes, addresses));
    bound.push_back({address, is_empty(*argument, sizes)});
    KERNELPACK_CHECK(check_somewhere(*argument, bound.back()));
  }
  return bound;
}

inline Result<Dim3> resolve(const Expression* const (&sides)[3], const Values& sizes) {
  KERNELPACK_TRY(x, evaluate(*sides[0], sizes));
  KERNELPACK_TRY(y, evaluate(*sides[1], sizes));
  KERNELPACK_TRY(z, evaluate(*sides[2], sizes));
  return Dim3{x, y, z};
}

inline Result<PlanArgument> resolve(const Param& param, const ScalarParam& scalar,
                                    const Values& sizes) {
  KERNELPACK_TRY(value, evaluate(*scalar.value, sizes));
  const DTypeFacts& kind = facts(scalar.dtype);
  const Wide low = kind.is_signed ? -(Wide{1} << (kind.bits - 1)) : 0;
  if (value < low || value >= low + (Wide{1} << kind.bits))
    return problem(decimal(value) + " does not fit in " + kind.label,
                   "parameter " + quoted(param.name));
  return PlanArgument(Scalar{scalar.dtype, value});
}

inline Error unknown_number(const Kernel& kernel, std::string_view name) {
  const auto show = [](const Number& known) { return std::string(known.name); };
  const std::string all = kernel.numbers.empty() ? "none" : joined(kernel.numbers, show);
  return {ErrorKind::kProblem, "no number " + quoted(name), std::string(kernel.stem),
          "numbers: " + all};
}

/// A number that was given for one of a kernel's; infinities are numbers.
inline Result<double> checked_number(const Number& known, double value) {
  if (is_nan(value)) return problem("must be a number, not NaN", quoted(known.name));
  return value;
}

/// The numbers of a call in the kernel's order: as given, or their defaults.
inline Result<std::vector<double>> numbers_of(const Kernel& kernel, const Numbers& given) {
  std::vector<double> found;
  for (const Number& known : kernel.numbers) {
    std::optional<double> value = known.otherwise;
    for (const auto& [name, number] : given)
      if (name == known.name) value = number;
    if (!value)
      return problem(quoted(known.name) + " is not given: " + std::string(known.doc),
                     std::string(kernel.stem));
    KERNELPACK_TRY(number, checked_number(known, *value));
    found.push_back(number);
  }
  return found;
}

inline Result<PlanArgument> resolve(const Param& param, DType dtype, double value) {
  const RealLayout layout = *real_layout(dtype);
  const std::uint64_t code = code_of(value, layout);
  if ((code & ~layout.sign()) == layout.infinity() && !is_infinite(value))
    return problem(general(value) + " does not fit in " + facts(dtype).label,
                   "parameter " + quoted(param.name));
  return PlanArgument(Scalar{dtype, static_cast<std::int64_t>(code)});
}

/// What a parameter is, over the addresses of the arguments and the numbers, each in their order.
inline Result<PlanArgument> resolve(const Param& param, const Values& sizes,
                                    const std::vector<std::uint64_t>& addresses,
                                    const std::vector<double>& numbers) {
  if (const auto* pointer = std::get_if<PointerParam>(&param.source))
    return PlanArgument(Pointer{addresses[pointer->argument]});
  if (const auto* scalar = std::get_if<ScalarParam>(&param.source))
    return resolve(param, *scalar, sizes);
  if (const auto* number = std::get_if<NumberParam>(&param.source))
    return resolve(param, number->dtype, numbers[number->number]);
  const auto& over = *std::get_if<MapParam>(&param.source);
  KERNELPACK_TRY(map, resolve(over.map, sizes, addresses[over.argument]));
  return PlanArgument(std::move(map));
}

inline Status check_bound(const std::string& what, std::int64_t value, std::int64_t most,
                          const std::string& where) {
  if (1 <= value && value <= most) return {};
  return problem(what + " must be 1 to " + decimal(most) + ", not " + decimal(value), where);
}

/// Check each count along x, y and z; their product fits an integer then.
inline Status check_sides(const std::string& what, const Dim3& sides, const std::int64_t (&most)[3],
                          const std::string& where) {
  KERNELPACK_CHECK(check_bound(what + ".x", sides.x, most[0], where));
  KERNELPACK_CHECK(check_bound(what + ".y", sides.y, most[1], where));
  return check_bound(what + ".z", sides.z, most[2], where);
}

/// Check a CTA against what a target allows, before a device is asked how many fit.
inline Status check_cta(const Dim3& block, std::int64_t shared_bytes, const Limits& limits,
                        const std::string& where) {
  KERNELPACK_CHECK(check_sides("block", block, limits.block, where));
  KERNELPACK_CHECK(check_bound("threads of a block", block.count(), limits.threads, where));
  if (0 <= shared_bytes && shared_bytes <= limits.shared_bytes) return {};
  return problem("shared memory must be at most " + decimal(limits.shared_bytes) + " bytes, not " +
                     decimal(shared_bytes),
                 where);
}

/// Check a launch of such CTAs against what a target allows.
inline Status check_limits(const Plan& plan, const Limits& limits, const std::string& where) {
  const std::int64_t ctas[3] = {limits.cluster, limits.cluster, limits.cluster};
  KERNELPACK_CHECK(check_sides("grid", plan.grid, limits.grid, where));
  KERNELPACK_CHECK(check_sides("cluster", plan.cluster, ctas, where));
  KERNELPACK_CHECK(check_bound("blocks of a cluster", plan.cluster.count(), limits.cluster, where));
  if (plan.grid.x % plan.cluster.x || plan.grid.y % plan.cluster.y || plan.grid.z % plan.cluster.z)
    return problem(
        "the grid must be whole clusters: " + plan.grid.text() + " by " + plan.cluster.text(),
        where);
  return {};
}

/// Refuse a cluster that would wait for ever: no GPC of the device has room for it.
inline Status check_fit(const Plan& plan, const Fitting& fitting, const std::string& where) {
  const std::int64_t ctas = plan.cluster.count();
  if (ctas <= 1) return {};
  KERNELPACK_TRY(clusters, fitting(ctas));
  if (clusters) return {};
  return Error{ErrorKind::kProblem,
               "no cluster of " + decimal(ctas) + " CTAs, of " + decimal(plan.block.count()) +
                   " threads and " + decimal(plan.shared_bytes) +
                   " bytes of shared memory each, fits on the device",
               where, "a MIG slice or a green context may have too few multiprocessors of one GPC"};
}

/// Addresses are of the kernel's arguments.
inline Status check_names(const Variant& variant, const Addresses& addresses) {
  const auto show = [](const Argument* known) { return std::string(known->name); };
  for (const auto& [name, address] : addresses) {
    const std::string_view wanted = name;
    const auto is_it = [&](const Argument* known) { return known->name == wanted; };
    if (std::none_of(variant.arguments.begin(), variant.arguments.end(), is_it))
      return Error{ErrorKind::kProblem, "no argument " + quoted(wanted),
                   std::string(variant.kernel->stem),
                   "arguments: " + joined(variant.arguments, show)};
  }
  return {};
}

/// The launch of one call; `sizes` are the problem's and the device's, `fits` what the device says.
inline Result<Plan> resolve(const Variant& variant, const Values& sizes, const Addresses& given,
                            const Numbers& numbers, const Fits& fits) {
  KERNELPACK_TRY(known, numbers_of(*variant.kernel, numbers));
  KERNELPACK_CHECK(check_names(variant, given));
  std::vector<std::uint64_t> addresses;
  for (const Argument* argument : variant.arguments) {
    KERNELPACK_TRY(address, address_of(variant, *argument, sizes, given));
    addresses.push_back(address);
  }
  KERNELPACK_TRY(block, resolve(variant.launch.block, sizes));
  KERNELPACK_TRY(shared_bytes, evaluate(*variant.launch.shared_bytes, sizes));
  KERNELPACK_CHECK(check_cta(block, shared_bytes, *variant.limits, std::string(variant.id)));
  const Cta cta{block.count(), shared_bytes};
  const Fitting fitting = [&](std::int64_t ctas) { return fits(cta, ctas); };
  const Values asked(sizes, fitting);
  KERNELPACK_TRY(grid, resolve(variant.launch.grid, asked));
  KERNELPACK_TRY(cluster, resolve(variant.launch.cluster, asked));
  Plan plan{grid, block, cluster, shared_bytes, {}, variant.launch.is_programmatic};
  for (const Param* param : variant.params) {
    KERNELPACK_TRY(argument, resolve(*param, asked, addresses, known));
    plan.arguments.push_back(std::move(argument));
  }
  KERNELPACK_CHECK(check_limits(plan, *variant.limits, std::string(variant.id)));
  KERNELPACK_CHECK(check_fit(plan, fitting, std::string(variant.id)));
  return plan;
}

}  // namespace detail
}  // namespace kernelpack
