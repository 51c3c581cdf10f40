// The CUDA runtime API: the device, its properties, errors, occupancy.
#include <dlfcn.h>

#include <cstdio>

#include "runtime.hpp"

using namespace standin;

namespace {

thread_local cudaError_t last = cudaSuccess;

int attribute(int number) { return device().attribute(number); }

void set_limits(cudaDeviceProp* to) {
  to->regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock);
  to->regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
  to->warpSize = attribute(cudaDevAttrWarpSize);
  to->maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
  to->maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
  to->maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
  for (int axis = 0; axis < 3; ++axis) {
    to->maxThreadsDim[axis] = attribute(cudaDevAttrMaxBlockDimX + axis);
    to->maxGridSize[axis] = attribute(cudaDevAttrMaxGridDimX + axis);
  }
}

void set_memory(cudaDeviceProp* to) {
  to->totalGlobalMem = device().memory_bytes;
  to->totalConstMem = attribute(cudaDevAttrTotalConstantMemory);
  to->sharedMemPerBlock = attribute(cudaDevAttrMaxSharedMemoryPerBlock);
  to->sharedMemPerBlockOptin = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  to->sharedMemPerMultiprocessor = attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  to->reservedSharedMemPerBlock = attribute(cudaDevAttrReservedSharedMemoryPerBlock);
  to->l2CacheSize = attribute(cudaDevAttrL2CacheSize);
  to->memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
  to->unifiedAddressing = attribute(cudaDevAttrUnifiedAddressing);
  to->managedMemory = attribute(cudaDevAttrManagedMemory);
}

}  // namespace

cudaError_t standin::told(int status) {
  if (status) last = static_cast<cudaError_t>(status);
  return static_cast<cudaError_t>(status);
}

extern "C" {

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  std::strncpy(properties->name, device().name.c_str(), sizeof properties->name - 1);
  properties->major = attribute(cudaDevAttrComputeCapabilityMajor);
  properties->minor = attribute(cudaDevAttrComputeCapabilityMinor);
  properties->multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
  properties->cooperativeLaunch = attribute(cudaDevAttrCooperativeLaunch);
  properties->clusterLaunch = attribute(cudaDevAttrClusterLaunch);
  properties->concurrentKernels = attribute(cudaDevAttrConcurrentKernels);
  set_limits(properties);
  set_memory(properties);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr number, int) {
  *value = attribute(number);
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* ordinal) { return *ordinal = 0, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaSetDevice(int ordinal) { return told(ordinal ? cudaErrorInvalidDevice : cudaSuccess); }
cudaError_t cudaInitDevice(int ordinal, unsigned, unsigned) { return cudaSetDevice(ordinal); }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceReset() { return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaDeviceSetLimit(cudaLimit, size_t) { return cudaSuccess; }
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit) { return *value = 0, cudaSuccess; }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 0, cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* most) {
  return *least = 0, *most = -5, cudaSuccess;
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = last;
  last = static_cast<cudaError_t>(broken());
  return error;
}
cudaError_t cudaPeekAtLastError() { return last; }

const char* cudaGetErrorName(cudaError_t error) {
  static thread_local char name[32];
  if (!error) return "cudaSuccess";
  std::snprintf(name, sizeof name, "cudaError(%d)", error);
  return name;
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorNotSupported: return "operation not supported";
    case cudaErrorInvalidDeviceFunction: return "invalid device function";
    default: return "an error; the emulator said which on stderr";
  }
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int threads, size_t dynamic_bytes, unsigned) {
  Kernel* kernel = kernel_of(function);
  if (!kernel) return told(cudaErrorInvalidDeviceFunction);
  *blocks = blocks_held(*kernel, threads, dynamic_bytes);
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int* blocks, const void* function, int threads, size_t dynamic_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic_bytes, 0);
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function, const cudaLaunchConfig_t*) {
  Kernel* kernel = kernel_of(function);
  if (!kernel) return told(cudaErrorInvalidDeviceFunction);
  *size = kernel->large_clusters ? 16 : 8;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function, const cudaLaunchConfig_t* config) {
  Kernel* kernel = kernel_of(function);
  if (!kernel) return told(cudaErrorInvalidDeviceFunction);
  unsigned size = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const auto& cluster = config->attrs[i].val.clusterDim;
    if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) size = cluster.x * cluster.y * cluster.z;
  }
  const dim3 block = config->blockDim;
  const int held = blocks_held(*kernel, block.x * block.y * block.z, config->dynamicSmemBytes);
  *clusters = held * attribute(cudaDevAttrMultiProcessorCount) / size;
  return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(
    const char* name, void** function, unsigned version, unsigned long long,
    cudaDriverEntryPointQueryResult* result) {
  cuuint64_t flags = 0;
  CUdriverProcAddressQueryResult found{};
  cuGetProcAddress(name, function, static_cast<int>(version), flags, &found);
  if (result) *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  if (!*function) refuse(name);
  return *function ? cudaSuccess : told(cudaErrorSymbolNotFound);
}
#undef cudaGetDriverEntryPoint
cudaError_t cudaGetDriverEntryPoint(
    const char* name, void** function, unsigned long long flags, cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, result);
}

}  // extern "C"
