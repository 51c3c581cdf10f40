// The CUDA runtime API: the device, its properties, errors, occupancy.
#include <dlfcn.h>

#include <cstdio>

#include "runtime.hpp"

using namespace standin;

namespace {

thread_local cudaError_t last = cudaSuccess;

int attribute(int number) { return device().attribute(number); }

// What a device answers before anybody has set one.
std::map<cudaLimit, size_t>& limits() {
  static auto* one = new std::map<cudaLimit, size_t>{{cudaLimitStackSize, 1024},
                                                     {cudaLimitPrintfFifoSize, 1 << 20},
                                                     {cudaLimitMallocHeapSize, 8 << 20}};
  return *one;
}

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

int standin::refused(const char* what) { return told(refuse(what)); }

extern "C" {

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  if (ordinal) return told(cudaErrorInvalidDevice);
  if (!properties) return told(complain("a null pointer for a result"));
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

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr number, int ordinal) {
  if (number < 1 || number >= cudaDevAttrMax) return told(cudaErrorInvalidValue);
  return told(ordinal ? cudaErrorInvalidDevice : give(value, attribute(number)));
}

cudaError_t cudaGetDevice(int* ordinal) { return told(give(ordinal, 0)); }
cudaError_t cudaGetDeviceCount(int* count) { return told(give(count, 1)); }
cudaError_t cudaSetDevice(int ordinal) {
  return told(ordinal ? cudaErrorInvalidDevice : cudaSuccess);
}
cudaError_t cudaInitDevice(int ordinal, unsigned, unsigned) { return cudaSetDevice(ordinal); }
cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceReset() {
  settle(nullptr);
  mend();
  release_all();
  forget_modules();
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return told(give(version, CUDART_VERSION)); }
cudaError_t cudaRuntimeGetVersion(int* version) { return told(give(version, CUDART_VERSION)); }
// The limits that the emulator need not keep to: a stack that grows, and printf and malloc of any
// size.
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  if (!limits().count(limit)) return told(refuse("cudaDeviceSetLimit of this limit"));
  return limits()[limit] = value, cudaSuccess;
}
cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  if (!limits().count(limit)) return told(refuse("cudaDeviceGetLimit of this limit"));
  return told(give(value, limits()[limit]));
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return told(give(config, cudaFuncCachePreferNone));
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) { return cudaSuccess; }
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return told(give(config, cudaSharedMemBankSizeFourByte));
}
cudaError_t cudaGetDeviceFlags(unsigned* flags) { return told(give(flags, 0u)); }
cudaError_t cudaChooseDevice(int* ordinal, const cudaDeviceProp*) { return told(give(ordinal, 0)); }
cudaError_t cudaDeviceGetPCIBusId(char* name, int size, int ordinal) {
  if (ordinal) return told(cudaErrorInvalidDevice);
  if (!name || size < 13) return told(complain("no room for a bus's name"));
  return std::strcpy(name, "0000:00:00.0"), cudaSuccess;
}
cudaError_t cudaProfilerStart() { return cudaSuccess; }
cudaError_t cudaProfilerStop() { return cudaSuccess; }
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return told(give(can, 0)); }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* most) {
  const int status = give(least, 0);
  return told(status ? status : give(most, -5));
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return last ? last : static_cast<cudaError_t>(broken()); }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
#define NAMED(name) \
  case name: return #name;
      NAMED(cudaErrorInvalidValue)
      NAMED(cudaErrorMemoryAllocation)
      NAMED(cudaErrorInitializationError)
      NAMED(cudaErrorCudartUnloading)
      NAMED(cudaErrorInvalidConfiguration)
      NAMED(cudaErrorInvalidPitchValue)
      NAMED(cudaErrorInvalidSymbol)
      NAMED(cudaErrorInvalidDevicePointer)
      NAMED(cudaErrorInvalidMemcpyDirection)
      NAMED(cudaErrorInsufficientDriver)
      NAMED(cudaErrorMissingConfiguration)
      NAMED(cudaErrorInvalidDeviceFunction)
      NAMED(cudaErrorNoDevice)
      NAMED(cudaErrorInvalidDevice)
      NAMED(cudaErrorInvalidKernelImage)
      NAMED(cudaErrorDeviceUninitialized)
      NAMED(cudaErrorNoKernelImageForDevice)
      NAMED(cudaErrorInvalidPtx)
      NAMED(cudaErrorInvalidSource)
      NAMED(cudaErrorFileNotFound)
      NAMED(cudaErrorInvalidResourceHandle)
      NAMED(cudaErrorIllegalState)
      NAMED(cudaErrorSymbolNotFound)
      NAMED(cudaErrorNotReady)
      NAMED(cudaErrorIllegalAddress)
      NAMED(cudaErrorLaunchOutOfResources)
      NAMED(cudaErrorLaunchTimeout)
      NAMED(cudaErrorPeerAccessAlreadyEnabled)
      NAMED(cudaErrorPeerAccessNotEnabled)
      NAMED(cudaErrorContextIsDestroyed)
      NAMED(cudaErrorAssert)
      NAMED(cudaErrorHostMemoryAlreadyRegistered)
      NAMED(cudaErrorHostMemoryNotRegistered)
      NAMED(cudaErrorIllegalInstruction)
      NAMED(cudaErrorMisalignedAddress)
      NAMED(cudaErrorLaunchFailure)
      NAMED(cudaErrorCooperativeLaunchTooLarge)
      NAMED(cudaErrorNotPermitted)
      NAMED(cudaErrorNotSupported)
      NAMED(cudaErrorStreamCaptureUnsupported)
      NAMED(cudaErrorStreamCaptureInvalidated)
      NAMED(cudaErrorStreamCaptureImplicit)
      NAMED(cudaErrorTimeout)
      NAMED(cudaErrorInvalidClusterSize)
      NAMED(cudaErrorUnknown)
#undef NAMED
    default: return "unrecognized error code";
  }
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInitializationError: return "initialization error";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorMisalignedAddress: return "misaligned address";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    case cudaErrorNotSupported: return "operation not supported";
    case cudaErrorInvalidDeviceFunction: return "invalid device function";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidPitchValue: return "invalid pitch argument";
    case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
    case cudaErrorInvalidSymbol: return "invalid device symbol";
    case cudaErrorAssert: return "device-side assert triggered";
    case cudaErrorNotReady: return "device not ready";
    default: return "an error; the emulator said which on stderr";
  }
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks,
                                                                   const void* function,
                                                                   int threads,
                                                                   size_t dynamic_bytes, unsigned) {
  Kernel* kernel = kernel_of(function);
  if (!kernel) return told(cudaErrorInvalidDeviceFunction);
  return told(blocks_held(blocks, *kernel, threads, dynamic_bytes));
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int threads, size_t dynamic_bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                                dynamic_bytes, 0);
}
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                 const cudaLaunchConfig_t*) {
  Kernel* kernel = kernel_of(function);
  if (!kernel) return told(cudaErrorInvalidDeviceFunction);
  return told(give(size, kernel->large_clusters ? 16 : 8));
}
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                           const cudaLaunchConfig_t* config) {
  Kernel* kernel = kernel_of(function);
  if (!kernel) return told(cudaErrorInvalidDeviceFunction);
  Shape shape;
  if (!read(config, shape)) return told(complain("a launch by a null pointer"));
  const uint64_t size = uint64_t{shape.cluster[0]} * shape.cluster[1] * shape.cluster[2];
  const int threads = static_cast<int>(shape.block[0] * shape.block[1] * shape.block[2]);
  int held = 0;
  const int status = blocks_held(&held, *kernel, threads, shape.dynamic_bytes);
  if (status || !size) return told(status ? status : complain("an empty cluster"));
  return told(
      give(clusters, static_cast<int>(held * attribute(cudaDevAttrMultiProcessorCount) / size)));
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned version,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  cuuint64_t flags = 0;
  CUdriverProcAddressQueryResult found{};
  const int status = cuGetProcAddress(name, function, static_cast<int>(version), flags, &found);
  if (!name || !function) return told(status);
  if (result)
    *result = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return *function ? cudaSuccess : told(cudaErrorSymbolNotFound);
}
#undef cudaGetDriverEntryPoint
cudaError_t cudaGetDriverEntryPoint(const char* name, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* result) {
  return cudaGetDriverEntryPointByVersion(name, function, CUDART_VERSION, flags, result);
}

}  // extern "C"
