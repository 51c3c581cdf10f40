// The CUDA runtime API: what nvcc registers before main, and launches of it.
#include <deque>
#include <mutex>

#include "runtime.hpp"

using namespace standin;

namespace {

// Layouts that nvcc emits: the wrapper in .nvFatBinSegment, and the head of a fat binary.
struct Wrapper {
  int magic, version;
  const void* image;
  void* more;
};
struct FatHead {
  uint32_t magic;
  uint16_t version, head_bytes;
  uint64_t size;
};

struct Module {
  const void* image;
  size_t size;
  bool loaded = false;
  uint32_t id = 0;
  int status = 0;
};
struct Named {
  Module* module;
  std::string name;
  size_t size = 0;
  void** host = nullptr;
};

// Registered before main, in whatever order constructors run, and by libraries that are opened
// later.
struct Registry {
  std::recursive_mutex lock;
  std::deque<Module> modules;
  std::map<const void*, Named> functions, variables;
};
Registry& registry() {
  static auto* one = new Registry;
  return *one;
}
using Locked = std::lock_guard<std::recursive_mutex>;

// A module is sent to the emulator when something of it is first asked for.
Module& loaded(Module& module) {
  if (!module.loaded) {
    Answer answer = load_module(module.image, module.size);
    module.status = answer.status;
    module.id = answer.take<uint32_t>();
    module.loaded = true;
  }
  return module;
}

struct Configuration {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
};
thread_local std::deque<Configuration> configurations;

Shape shape_of(dim3 grid, dim3 block, size_t dynamic_bytes, cudaStream_t stream) {
  Shape shape{{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}};
  shape.dynamic_bytes = dynamic_bytes;
  shape.stream = stream;
  return shape;
}

cudaError_t launch_function(const void* function, const Shape& shape, void** arguments) {
  Kernel* kernel = kernel_of(function);
  if (!kernel) return told(cudaErrorInvalidDeviceFunction);
  if (const int status = ready(shape.stream)) return told(status);
  return told(launch(*kernel, shape, arguments, nullptr));
}

}  // namespace

Kernel* standin::kernel_of(const void* function) {
  if (Kernel* kernel = known_kernel(function)) return kernel;
  const Locked guard(registry().lock);
  const auto found = registry().functions.find(function);
  if (found == registry().functions.end()) return nullptr;
  Module& module = loaded(*found->second.module);
  int status = module.status;
  return status ? nullptr : find_kernel(module.id, found->second.name.c_str(), status);
}

bool standin::read(const cudaLaunchConfig_t* config, Shape& shape) {
  if (!config || (config->numAttrs && !config->attrs)) return false;
  shape = shape_of(config->gridDim, config->blockDim, config->dynamicSmemBytes, config->stream);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    const auto& cluster = attribute.val.clusterDim;
    if (attribute.id == cudaLaunchAttributeClusterDimension)
      shape.cluster[0] = cluster.x, shape.cluster[1] = cluster.y, shape.cluster[2] = cluster.z;
    if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization)
      shape.programmatic = attribute.val.programmaticStreamSerializationAllowed;
    if (attribute.id == cudaLaunchAttributeCooperative)
      shape.cooperative = attribute.val.cooperative;
  }
  return true;
}

bool standin::symbol_of(const void* variable, void** address, size_t* size) {
  const Locked guard(registry().lock);
  const auto found = registry().variables.find(variable);
  if (found == registry().variables.end()) return false;
  Module& module = loaded(*found->second.module);
  Answer answer = ask(Operation::symbol, Request().put(module.id).text(found->second.name.c_str()));
  *address = reinterpret_cast<void*>(answer.take<uint64_t>());
  *size = answer.take<uint64_t>();
  return !answer.status;
}

void standin::forget_modules() {
  const Locked guard(registry().lock);
  for (Module& module : registry().modules) {
    if (module.loaded && !module.status) forget_kernels(module.id);
    module.loaded = false;
  }
}

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  const void* image = static_cast<Wrapper*>(wrapper)->image;
  const auto* head = static_cast<const FatHead*>(image);
  const Locked guard(registry().lock);
  registry().modules.push_back({image, head->head_bytes + head->size});
  return reinterpret_cast<void**>(&registry().modules.back());
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
// Asked for before the first use of a __managed__ variable: the host's pointer to it is set.
char __cudaInitModule(void** module) {
  const Locked guard(registry().lock);
  for (const auto& [key, variable] : registry().variables) {
    if (!variable.host || variable.module != reinterpret_cast<Module*>(module)) continue;
    void* address = nullptr;
    size_t size = 0;
    if (!symbol_of(key, &address, &size)) return 0;
    open_to_host(address, size);
    *variable.host = address;
  }
  return 1;
}

void __cudaRegisterFunction(void** module, const char* host, char*, const char* name, int, uint3*,
                            uint3*, dim3*, dim3*, int*) {
  const Locked guard(registry().lock);
  registry().functions[host] = {reinterpret_cast<Module*>(module), name};
}
void __cudaRegisterVar(void** module, char* host, char*, const char* name, int, size_t size, int,
                       int) {
  const Locked guard(registry().lock);
  registry().variables[host] = {reinterpret_cast<Module*>(module), name, size};
}
void __cudaRegisterManagedVar(void** module, void** host, char*, const char* name, int, size_t size,
                              int, int) {
  const Locked guard(registry().lock);
  registry().variables[host] = {reinterpret_cast<Module*>(module), name, size, host};
}
cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* function) {
  Kernel* kernel = kernel_of(function);
  return told(kernel ? give(handle, reinterpret_cast<cudaKernel_t>(kernel))
                     : cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaGetKernel(cudaKernel_t* handle, const void* function) {
  return __cudaGetKernel(handle, function);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream) {
  configurations.push_back({grid, block, shared, stream});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  if (configurations.empty()) return told(cudaErrorMissingConfiguration);
  const Configuration top = configurations.back();
  configurations.pop_back();
  *grid = top.grid, *block = top.block, *shared = top.shared;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             size_t shared, cudaStream_t stream) {
  return launch_function(function, shape_of(grid, block, shared, stream), arguments);
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               size_t shared, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
// All clusters of a grid become resident as they wait for each other, so a grid may synchronise.
cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, size_t shared, cudaStream_t stream) {
  Shape shape = shape_of(grid, block, shared, stream);
  shape.cooperative = true;
  return launch_function(function, shape, arguments);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  Shape shape;
  if (!read(config, shape)) return told(complain("a launch by a null pointer"));
  return launch_function(function, shape, arguments);
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  Kernel* kernel = kernel_of(function);
  if (!kernel) return told(cudaErrorInvalidDeviceFunction);
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) kernel->large_clusters = value;
  if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize)
    return told(set_dynamic_limit(*kernel, value));
  const bool is_one =
      attribute > cudaFuncAttributeMaxDynamicSharedMemorySize && attribute < cudaFuncAttributeMax;
  return told(
      is_one ? 0
             : complain("no attribute of a kernel has the number " + std::to_string(attribute)));
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  Kernel* kernel = kernel_of(function);
  if (!kernel) return told(cudaErrorInvalidDeviceFunction);
  if (!attributes) return told(complain("a null pointer for a result"));
  std::memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = kernel->max_threads;
  attributes->sharedSizeBytes = kernel->shared_bytes;
  attributes->maxDynamicSharedSizeBytes = kernel->dynamic_limit;
  // numRegs stays 0: ptxas decides it, and none ran.
  attributes->ptxVersion = attributes->binaryVersion =
      10 * device().attribute(cudaDevAttrComputeCapabilityMajor) +
      device().attribute(cudaDevAttrComputeCapabilityMinor);
  return cudaSuccess;
}
cudaError_t cudaFuncGetName(const char** name, const void* function) {
  Kernel* kernel = kernel_of(function);
  return told(kernel ? give(name, kernel->name.c_str()) : cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* handle, const void* function) {
  Kernel* kernel = kernel_of(function);
  return told(kernel ? give(handle, reinterpret_cast<cudaFunction_t>(kernel))
                     : cudaErrorInvalidDeviceFunction);
}
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }

}  // extern "C"
