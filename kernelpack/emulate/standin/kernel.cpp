// Kernels: by name and by handle, what CUDA refuses of a launch, occupancy.
#include <algorithm>
#include <memory>
#include <mutex>
#include <set>

#include "wire.hpp"

namespace standin {
namespace {

// Every kernel that was found, for as long as its module is loaded.
struct Kernels {
  std::mutex lock;
  std::map<std::pair<uint32_t, std::string>, std::unique_ptr<Kernel>> by_name;
  std::set<const void*> handles;
};
Kernels& kernels() {
  static auto* one = new Kernels;
  return *one;
}

std::unique_ptr<Kernel> read_kernel(Answer& answer, const char* name) {
  auto kernel = std::make_unique<Kernel>();
  kernel->name = name;
  kernel->id = answer.take<uint32_t>();
  kernel->parameter_bytes = answer.take<uint32_t>();
  kernel->shared_bytes = answer.take<uint32_t>();
  kernel->max_threads = answer.take<uint32_t>();
  for (uint32_t left = answer.take<uint32_t>(); left; --left) {
    const uint32_t offset = answer.take<uint32_t>();
    kernel->slots.emplace_back(offset, answer.take<uint32_t>());
  }
  return kernel;
}

int attribute(int number) { return device().attribute(number); }

std::string text(const char* what, const uint32_t (&of)[3]) {
  const auto number = [&](int axis) { return std::to_string(of[axis]); };
  return std::string(what) + " (" + number(0) + ", " + number(1) + ", " + number(2) + ")";
}

std::string range(int axis, uint32_t most) {
  return std::string("; ") + "xyz"[axis] + " may be 1 to " + std::to_string(most);
}

// What is wrong with the grid, block and cluster; empty where nothing is.
std::string wrong_shape(const Kernel& kernel, const Shape& shape) {
  uint64_t threads = 1, ctas = 1;
  const uint32_t most_ctas = kernel.large_clusters ? 16 : 8;
  for (int axis = 0; axis < 3; ++axis) {
    const uint32_t grid = shape.grid[axis], block = shape.block[axis],
                   cluster = shape.cluster[axis];
    const uint32_t most_grid = attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + axis);
    const uint32_t most_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + axis);
    if (grid < 1 || grid > most_grid) return text("a grid of", shape.grid) + range(axis, most_grid);
    if (block < 1 || block > most_block)
      return text("a block of", shape.block) + range(axis, most_block);
    if (cluster < 1 || cluster > most_ctas)
      return text("a cluster of", shape.cluster) + range(axis, most_ctas);
    if (grid % cluster) return text("a grid that is not whole clusters of", shape.cluster);
    threads *= block, ctas *= cluster;
  }
  if (threads > kernel.max_threads)
    return text("a block of", shape.block) + "; at most " + std::to_string(kernel.max_threads) +
           " threads";
  if (ctas > most_ctas)
    return text("a cluster of", shape.cluster) + "; at most " + std::to_string(most_ctas) +
           " blocks";
  return "";
}

// What is wrong with the shared memory; empty where nothing is.
std::string wrong_memory(const Kernel& kernel, const Shape& shape) {
  const int most = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  const std::string asked =
      std::to_string(shape.dynamic_bytes) + " bytes of dynamic shared memory; ";
  if (shape.dynamic_bytes > static_cast<uint64_t>(kernel.dynamic_limit))
    return asked + "cudaFuncSetAttribute allowed " + std::to_string(kernel.dynamic_limit);
  if (shape.dynamic_bytes + kernel.shared_bytes > static_cast<uint64_t>(most))
    return asked + "with " + std::to_string(kernel.shared_bytes) + " static ones more than " +
           std::to_string(most);
  return "";
}

// The parameter block, of arguments one by one or packed by the program; false if one is missing.
bool pack(const Kernel& kernel, void** arguments, const std::string* block,
          std::string& parameters) {
  if (block) parameters = *block;
  parameters.resize(kernel.parameter_bytes);
  if (block) return block->size() >= kernel.parameter_bytes;
  if (!arguments) return kernel.slots.empty();
  for (size_t i = 0; i < kernel.slots.size(); ++i) {
    if (!arguments[i]) return false;
    std::memcpy(&parameters[kernel.slots[i].first], arguments[i], kernel.slots[i].second);
  }
  return true;
}

}  // namespace

Kernel* find_kernel(uint32_t module, const char* name, int& status) {
  const std::lock_guard<std::mutex> guard(kernels().lock);
  auto& kernel = kernels().by_name[{module, name}];
  status = 0;
  if (!kernel) {
    Answer answer = ask(Operation::kernel, Request().put(module).text(name));
    status = answer.status;
    if (!status) {
      kernel = read_kernel(answer, name);
      kernel->module = module;
      kernels().handles.insert(kernel.get());
    }
  }
  return kernel.get();
}

Kernel* known_kernel(const void* handle) {
  const std::lock_guard<std::mutex> guard(kernels().lock);
  return kernels().handles.count(handle) ? static_cast<Kernel*>(const_cast<void*>(handle))
                                         : nullptr;
}

void forget_kernels(uint32_t module) {
  const std::lock_guard<std::mutex> guard(kernels().lock);
  auto& by_name = kernels().by_name;
  for (auto at = by_name.lower_bound({module, ""});
       at != by_name.end() && at->first.first == module;) {
    kernels().handles.erase(at->second.get());
    at = by_name.erase(at);
  }
}

// The blocks of a cooperative launch must all be on the device at once.
static int wrong_grid(const Kernel& kernel, const Shape& shape) {
  int held = 0;
  const int threads = static_cast<int>(shape.block[0] * shape.block[1] * shape.block[2]);
  if (const int status = blocks_held(&held, kernel, threads, shape.dynamic_bytes)) return status;
  const uint64_t most = uint64_t(held) * attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  const uint64_t blocks = uint64_t{shape.grid[0]} * shape.grid[1] * shape.grid[2];
  if (blocks <= most) return 0;
  return complain(kernel.name + ": a cooperative launch of " + std::to_string(blocks) +
                      " blocks, and the device holds " + std::to_string(most),
                  CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
}

int launch(Kernel& kernel, const Shape& shape, void** arguments, const std::string* block) {
  if (broken()) return broken();
  std::string parameters, wrong = wrong_shape(kernel, shape);
  if (wrong.empty()) wrong = wrong_memory(kernel, shape);
  if (wrong.empty() && !pack(kernel, arguments, block, parameters)) wrong = "too few arguments";
  if (!wrong.empty()) return complain(kernel.name + ": " + wrong);
  if (const int status = shape.cooperative ? wrong_grid(kernel, shape) : 0) return status;
  Request request;
  request.put(kernel.id).put(shape.grid).put(shape.block).put(shape.cluster);
  request.put(static_cast<uint32_t>(shape.dynamic_bytes))
      .put(static_cast<uint32_t>(shape.programmatic));
  request.put(static_cast<uint32_t>(shape.cooperative));
  request.put(shape.stream == cudaStreamLegacy ? uint64_t{0}
                                               : reinterpret_cast<uint64_t>(shape.stream));
  return ask(Operation::launch, request.raw(parameters.data(), parameters.size())).status;
}

int blocks_held(int* blocks, const Kernel& kernel, int threads, size_t dynamic_bytes) {
  if (threads < 1) return complain(kernel.name + ": the occupancy of blocks without threads");
  const size_t reserved = attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  const size_t shared = std::max<size_t>(kernel.shared_bytes + dynamic_bytes + reserved, 1);
  const size_t warps = (static_cast<size_t>(threads) + 31) / 32;
  const size_t by_threads =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / (32 * warps);
  const size_t by_shared =
      attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / shared;
  const size_t most = attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  return give(blocks, static_cast<int>(std::min({by_threads, by_shared, most})));
}

int set_dynamic_limit(Kernel& kernel, int bytes) {
  const int64_t most = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (bytes < 0 || static_cast<int64_t>(bytes) + kernel.shared_bytes > most)
    return complain(kernel.name + ": dynamic shared memory of " + std::to_string(bytes) + " bytes");
  return kernel.dynamic_limit = bytes, 0;
}

}  // namespace standin
