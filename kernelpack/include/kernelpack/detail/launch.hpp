// A plan to the GPU: parameters packed once, then one `cuLaunchKernelEx` a launch. The driver
// copies the parameters before it returns, so they may be changed at once for the next launch.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "driver.hpp"
#include "functions.hpp"
#include "plan.hpp"

namespace kernelpack {

/// A kernel with its arguments, packed for one device, to be started on any of its streams, any
/// number of times. One thread at a time may use a `Launch`; its library must outlive it.
class Launch {
public:
  const Variant& variant() const { return *function_->variant; }
  const detail::Plan& plan() const { return plan_; }

  /// Start the kernel on a stream; does not wait for it.
  Status operator()(Stream stream = nullptr) {
    KERNELPACK_CHECK(driver_->check_process());
    if (stream != stream_) KERNELPACK_CHECK(driver_->check_stream(stream, function_->device));
    stream_ = stream;
    if (!Driver::is_default(stream)) return start();
    // A default stream means the thread's current context, so that must be the device's.
    CUctx_st* current;
    KERNELPACK_CHECK(driver_->called("cuCtxGetCurrent", driver_->api.cuCtxGetCurrent(&current)));
    if (current == context_) return start();
    return driver_->with_current(context_, [&] { return start(); });
  }

  /// Replace an argument's address; nothing is changed where a rule is broken.
  Status rebind(std::string_view name, std::uint64_t address) {
    const auto& arguments = variant().arguments;
    const auto found = std::find_if(arguments.begin(), arguments.end(),
                                    [&](const Argument* known) { return known->name == name; });
    if (found == arguments.end()) {
      const auto show = [](const Argument* known) { return std::string(known->name); };
      return Error{ErrorKind::kProblem,
                   "no argument " + detail::quoted(name),
                   {},
                   "arguments: " + detail::joined(arguments, show)};
    }
    const std::uint32_t align = (*found)->align_bytes;
    if (address % align)
      return detail::problem("must be aligned to " + detail::decimal(align) + " bytes, not " +
                                 detail::hexadecimal(address),
                             detail::quoted(name));
    const auto place = static_cast<std::size_t>(found - arguments.begin());
    KERNELPACK_CHECK(detail::check_somewhere(**found, {address, bound_[place].is_empty}));
    return move(place, address);
  }

  /// Replace one of the call's numbers; nothing is changed where a rule is
  /// broken.
  Status set(std::string_view name, double value) {
    const auto& numbers = variant().kernel->numbers;
    const auto found = std::find_if(numbers.begin(), numbers.end(),
                                    [&](const auto& known) { return known.name == name; });
    if (found == numbers.end()) return detail::unknown_number(*variant().kernel, name);
    KERNELPACK_CHECK(detail::checked_number(*found, value));
    return put(static_cast<std::uint32_t>(found - numbers.begin()), value);
  }

private:
  friend class Library;

  /// The parameters in host memory, aligned for tensor maps, laid out as the C ABI does.
  using Block = std::unique_ptr<detail::EncodedMap[]>;

  Launch(const Driver& driver, const detail::Function& function, detail::Plan plan,
         std::vector<detail::Bound> bound, CUctx_st* context)
      : driver_(&driver),
        function_(&function),
        plan_(std::move(plan)),
        bound_(std::move(bound)),
        context_(context) {
    const std::vector<detail::Slot> slots = detail::layout(variant().params, 0);
    const std::uint64_t bytes = slots.empty() ? 0 : slots.back().offset + slots.back().size;
    block_.reset(new detail::EncodedMap[bytes / detail::kTensorMapBytes + 1]());
    char* start = reinterpret_cast<char*>(block_.get());
    for (const detail::Slot& slot : slots) parameters_.push_back(start + slot.offset);
  }

  /// Write every parameter.
  Status pack() {
    for (std::size_t place = 0; place < plan_.arguments.size(); ++place)
      KERNELPACK_CHECK(write(place, plan_.arguments[place]));
    return {};
  }

  Status write(std::size_t place, const detail::PlanArgument& argument) {
    if (const auto* pointer = std::get_if<detail::Pointer>(&argument)) {
      std::memcpy(parameters_[place], &pointer->address, sizeof pointer->address);
    } else if (const auto* scalar = std::get_if<detail::Scalar>(&argument)) {
      std::memcpy(parameters_[place], &scalar->value, detail::facts(scalar->dtype).bits / 8);
    } else {
      detail::EncodedMap encoded{};
      KERNELPACK_CHECK(encode(*std::get_if<detail::TensorMap>(&argument), &encoded));
      std::memcpy(parameters_[place], &encoded, sizeof encoded);
    }
    return {};
  }

  /// The driver wants a context to be current, whichever it is; a thread may have none. It encodes
  /// no map over nothing: that of an absent argument stays zeros, which no kernel looks at.
  Status encode(const detail::TensorMap& map, detail::EncodedMap* encoded) const {
    if (map.address == 0) return {};
    const std::vector<std::uint64_t> dims(map.dims.begin(), map.dims.end());
    const std::vector<std::uint64_t> strides(map.strides_bytes.begin(), map.strides_bytes.end());
    const std::vector<std::uint32_t> box(map.box.begin(), map.box.end());
    const std::vector<std::uint32_t> steps(map.element_strides.begin(), map.element_strides.end());
    const detail::Encoding& encoding = map.encoding;
    const auto number = [](auto value) { return static_cast<std::uint32_t>(value); };
    return driver_->with_current(context_, [&] {
      return driver_->called(
          "cuTensorMapEncodeTiled",
          driver_->api.cuTensorMapEncodeTiled(
              encoded, number(encoding.element), number(dims.size()),
              reinterpret_cast<void*>(static_cast<std::uintptr_t>(map.address)), dims.data(),
              strides.data(), box.data(), steps.data(), number(encoding.interleave),
              number(encoding.swizzle), number(encoding.promotion), number(encoding.fill)));
    });
  }

  /// Change every parameter that is made from one argument's address.
  Status move(std::size_t argument, std::uint64_t address) {
    std::vector<std::pair<std::size_t, detail::PlanArgument>> changes;
    for (std::size_t place = 0; place < plan_.arguments.size(); ++place) {
      const auto& source = variant().params[place]->source;
      const auto* pointer = std::get_if<detail::PointerParam>(&source);
      const auto* over = std::get_if<detail::MapParam>(&source);
      if (pointer && pointer->argument == argument)
        changes.emplace_back(place, detail::Pointer{address});
      if (!over || over->argument != argument) continue;
      detail::TensorMap map = *std::get_if<detail::TensorMap>(&plan_.arguments[place]);
      map.address += detail::Wide{address} - bound_[argument].address;
      KERNELPACK_CHECK(detail::check(map));
      changes.emplace_back(place, std::move(map));
    }
    for (auto& [place, changed] : changes) {
      KERNELPACK_CHECK(write(place, changed));
      plan_.arguments[place] = std::move(changed);
    }
    bound_[argument].address = address;
    return {};
  }

  /// Change every parameter that takes a number.
  Status put(std::uint32_t number, double value) {
    std::vector<std::pair<std::size_t, detail::PlanArgument>> changes;
    for (std::size_t place = 0; place < plan_.arguments.size(); ++place) {
      const detail::Param& param = *variant().params[place];
      const auto* taking = std::get_if<detail::NumberParam>(&param.source);
      if (!taking || taking->number != number) continue;
      KERNELPACK_TRY(changed, detail::resolve(param, taking->dtype, value));
      changes.emplace_back(place, std::move(changed));
    }
    for (auto& [place, changed] : changes) {
      KERNELPACK_CHECK(write(place, changed));
      plan_.arguments[place] = std::move(changed);
    }
    return {};
  }

  Status start() {
    detail::LaunchAttribute attributes[2] = {};
    std::uint32_t count = 0;
    const auto number = [](std::int64_t value) { return static_cast<std::uint32_t>(value); };
    const auto& [grid, block, cluster, shared_bytes, arguments, is_programmatic] = plan_;
    if (!cluster.is_one())
      attributes[count++] = {
          detail::kClusterDimension, 0, {number(cluster.x), number(cluster.y), number(cluster.z)}};
    if (is_programmatic) attributes[count++] = {detail::kProgrammaticStream, 0, {1}};
    const detail::LaunchConfig config{{number(grid.x), number(grid.y), number(grid.z)},
                                      {number(block.x), number(block.y), number(block.z)},
                                      number(shared_bytes),
                                      stream_,
                                      attributes,
                                      count};
    return driver_->called(
        "cuLaunchKernelEx",
        driver_->api.cuLaunchKernelEx(&config, function_->handle, parameters_.data(), nullptr));
  }

  const Driver* driver_;
  const detail::Function* function_;
  detail::Plan plan_;
  std::vector<detail::Bound> bound_;  // the arguments, in their order
  CUctx_st* context_;
  Block block_;
  std::vector<void*> parameters_;
  Stream stream_ = nullptr;
};

}  // namespace kernelpack
