// The CUDA driver API: what kernels, modules and addresses are; occupancy.
#include <algorithm>

#include "runtime.hpp"

using namespace standin;

namespace {

CUresult status_of(int status) { return static_cast<CUresult>(status); }
template <class T, class U>
CUresult gave(T* to, const U& value) {
  return status_of(give(to, value));
}

CUresult no_kernel() {
  return status_of(complain("no kernel has this handle", CUDA_ERROR_INVALID_HANDLE));
}
const CUfunction& function_of(const CUkernel& kernel) {
  return reinterpret_cast<const CUfunction&>(kernel);
}

template <class Module>
CUresult module_of(Module* module, const void* function) {
  const Kernel* kernel = known_kernel(function);
  return kernel ? gave(module, reinterpret_cast<Module>(uintptr_t{kernel->module} + 1))
                : no_kernel();
}
CUresult parameter_of(const void* function, size_t index, size_t* offset, size_t* size) {
  const Kernel* kernel = known_kernel(function);
  if (!kernel) return no_kernel();
  if (index >= kernel->slots.size()) return CUDA_ERROR_INVALID_VALUE;
  if (size) *size = kernel->slots[index].second;
  return gave(offset, kernel->slots[index].first);
}

// A value of a pointer's attribute, of whichever type it has.
template <class T>
CUresult put(void* to, T value) {
  return to ? (std::memcpy(to, &value, sizeof value), CUDA_SUCCESS)
            : status_of(complain("a null pointer for a result"));
}
CUresult attribute_of(void* to, CUpointer_attribute attribute, CUdeviceptr address) {
  const Held held = held_at(reinterpret_cast<const void*>(address));
  if (!held.size) return CUDA_ERROR_INVALID_VALUE;
  const bool on_host = held.kind != Kind::device;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return put(to, current_context());
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(to, held.kind == Kind::pinned ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return put(to, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return on_host ? put(to, address) : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(to, held.kind == Kind::managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(to, 0);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: return put(to, held.start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put(to, held.size);
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(to, true);
    default: return status_of(refuse("cuPointerGetAttribute of this attribute"));
  }
}

// The numbers of a launch as the runtime has them: of those that occupancy is about.
cudaLaunchConfig_t runtime_config(const CUlaunchConfig& from, cudaLaunchAttribute& cluster) {
  cudaLaunchConfig_t config{};
  config.gridDim = {from.gridDimX, from.gridDimY, from.gridDimZ};
  config.blockDim = {from.blockDimX, from.blockDimY, from.blockDimZ};
  config.dynamicSmemBytes = from.sharedMemBytes;
  for (unsigned i = 0; i < from.numAttrs; ++i) {
    if (from.attrs[i].id != CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) continue;
    const auto& size = from.attrs[i].value.clusterDim;
    cluster.id = cudaLaunchAttributeClusterDimension;
    cluster.val.clusterDim.x = size.x, cluster.val.clusterDim.y = size.y,
    cluster.val.clusterDim.z = size.z;
    config.attrs = &cluster, config.numAttrs = 1;
  }
  return config;
}

}  // namespace

extern "C" {

CUresult cuFuncGetName(const char** name, CUfunction function) {
  const Kernel* kernel = known_kernel(function);
  return kernel ? gave(name, kernel->name.c_str()) : no_kernel();
}
CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return cuFuncGetName(name, function_of(kernel));
}
CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return module_of(module, function);
}
CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return module_of(library, kernel);
}
CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size) {
  return parameter_of(function, index, offset, size);
}
CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size) {
  return parameter_of(kernel, index, offset, size);
}
CUresult cuFuncGetParamCount(CUfunction function, size_t* count) {
  const Kernel* kernel = known_kernel(function);
  return kernel ? gave(count, kernel->slots.size()) : no_kernel();
}
CUresult cuKernelGetParamCount(CUkernel kernel, size_t* count) {
  return cuFuncGetParamCount(function_of(kernel), count);
}
CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice) {
  return cuFuncGetAttribute(value, attribute, function_of(kernel));
}
CUresult cuFuncLoad(CUfunction function) {
  return known_kernel(function) ? CUDA_SUCCESS : no_kernel();
}
CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return known_kernel(function) ? gave(state, CU_FUNCTION_LOADING_STATE_LOADED) : no_kernel();
}
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) { return cuFuncLoad(function); }
CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig) {
  return cuFuncLoad(function);
}
CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache, CUdevice) {
  return cuFuncLoad(function_of(kernel));
}
CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return gave(mode, CU_MODULE_LAZY_LOADING);
}
CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return gave(module, reinterpret_cast<CUmodule>(library));
}
CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary library,
                            const char* name) {
  return cuModuleGetGlobal(address, size, reinterpret_cast<CUmodule>(library), name);
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return attribute_of(value, attribute, address);
}
// Of an address that lies in no allocation every value is 0, and that is not an error.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values,
                                CUdeviceptr address) {
  if (!attributes || !values) return status_of(complain("a null pointer for attributes"));
  if (!held_at(reinterpret_cast<const void*>(address)).size) {
    for (unsigned i = 0; i < count; ++i)
      std::memset(values[i], 0, attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED ? 1 : 4);
    return CUDA_SUCCESS;
  }
  for (unsigned i = 0; i < count; ++i)
    if (const CUresult status = attribute_of(values[i], attributes[i], address)) return status;
  return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange(CUdeviceptr* start, size_t* size, CUdeviceptr address) {
  const Held held = held_at(reinterpret_cast<const void*>(address));
  if (!held.size)
    return status_of(complain("no allocation holds this address", CUDA_ERROR_NOT_FOUND));
  if (start) *start = held.start;
  if (size) *size = held.size;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     size_t bytes) {
  const Kernel* kernel = known_kernel(function);
  return kernel ? status_of(blocks_held(blocks, *kernel, threads, bytes)) : no_kernel();
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int threads, size_t bytes, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, bytes);
}
CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                      const CUlaunchConfig* config) {
  if (!known_kernel(function)) return no_kernel();
  if (!config) return status_of(complain("a launch by a null pointer"));
  cudaLaunchAttribute cluster{};
  const cudaLaunchConfig_t known = runtime_config(*config, cluster);
  return status_of(
      cudaOccupancyMaxActiveClusters(clusters, reinterpret_cast<const void*>(function), &known));
}
CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig*) {
  const Kernel* kernel = known_kernel(function);
  return kernel ? gave(size, kernel->large_clusters ? 16 : 8) : no_kernel();
}
// The largest block of which one multiprocessor holds the most threads, and blocks that fill the
// device.
CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize bytes_of, size_t bytes, int limit) {
  const Kernel* kernel = known_kernel(function);
  if (!kernel) return no_kernel();
  const int most = std::min<int>(limit > 0 ? limit : kernel->max_threads, kernel->max_threads);
  int best = 0, held_best = 0;
  for (int threads = most / 32 * 32; threads; threads -= 32) {
    int held = 0;
    if (const int status =
            blocks_held(&held, *kernel, threads, bytes_of ? bytes_of(threads) : bytes))
      return status_of(status);
    if (held * threads > held_best * best) best = threads, held_best = held;
  }
  const CUresult status = gave(block, best);
  return status
             ? status
             : gave(grid, held_best * device().attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
}
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize bytes_of, size_t bytes,
                                                   int limit, unsigned) {
  return cuOccupancyMaxPotentialBlockSize(grid, block, function, bytes_of, bytes, limit);
}

}  // extern "C"
