// The CUDA driver API: modules, launches, memory, streams, events. Handles are pointers of ours.
#include <dlfcn.h>

#include <cstdio>
#include <string>

#include "wire.hpp"

using namespace standin;

namespace {

CUresult status_of(int status) { return static_cast<CUresult>(status); }
void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
Kernel* kernel_of(CUfunction function) { return reinterpret_cast<Kernel*>(function); }
uint32_t number(const void* handle) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle)); }

// A fat binary says its own size; PTX is a text.
size_t size_of(const void* image) {
  uint32_t magic;
  std::memcpy(&magic, image, sizeof magic);
  if (magic != 0xBA55ED50) return std::strlen(static_cast<const char*>(image));
  uint64_t size;
  std::memcpy(&size, static_cast<const char*>(image) + 8, sizeof size);
  return size + 16;
}

CUresult load(void** handle, const void* image) {
  Answer answer = load_module(image, size_of(image));
  *handle = reinterpret_cast<void*>(static_cast<uintptr_t>(answer.take<uint32_t>()));
  return status_of(answer.status);
}

CUresult find(CUfunction* function, const void* module, const char* name) {
  int status = 0;
  *function = reinterpret_cast<CUfunction>(find_kernel(number(module), name, status));
  return status_of(status);
}

// The parameter block in `extra`, or null: the other way of passing arguments.
const void* block_of(void** extra) {
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2)
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) return extra[1];
  return nullptr;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return device(), CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return *version = CUDA_VERSION, CUDA_SUCCESS; }
CUresult cuDeviceGet(CUdevice* got, int ordinal) {
  return *got = ordinal, ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) { return *count = 1, CUDA_SUCCESS; }
CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  return std::snprintf(name, size, "%s", device().name.c_str()), CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice) {
  return *value = device().attribute(attribute), CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(size_t* size, CUdevice) { return *size = device().memory_bytes, CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) {
  return *context = reinterpret_cast<CUcontext>(1), CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext* context) { return *context = reinterpret_cast<CUcontext>(1), CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext* context) { return cuCtxGetCurrent(context); }
CUresult cuCtxGetDevice(CUdevice* device) { return *device = 0, CUDA_SUCCESS; }
CUresult cuCtxSynchronize() { return status_of(broken()); }

CUresult cuGetErrorName(CUresult error, const char** name) {
  static thread_local char text[32];
  std::snprintf(text, sizeof text, "CUresult(%d)", error);
  return *name = error ? text : "CUDA_SUCCESS", CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  return *text = error ? "an error; the emulator said which on stderr" : "no error", CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load(reinterpret_cast<void**>(module), image);
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return cuModuleLoadData(module, image); }
CUresult cuModuleUnload(CUmodule) { return CUDA_SUCCESS; }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return find(function, module, name);
}
CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* size, CUmodule module, const char* name) {
  Answer answer = ask(Operation::symbol, Request().put(number(module)).text(name));
  const CUdeviceptr at = answer.take<uint64_t>();
  const size_t held = answer.take<uint64_t>();
  if (address) *address = at;
  if (size) *size = held;
  return status_of(answer.status);
}
CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option*, void**, unsigned,
                           CUlibraryOption*, void**, unsigned) {
  return load(reinterpret_cast<void**>(library), image);
}
CUresult cuLibraryUnload(CUlibrary) { return CUDA_SUCCESS; }
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return find(reinterpret_cast<CUfunction*>(kernel), library, name);
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return *function = reinterpret_cast<CUfunction>(kernel), CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  const int most = device().attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) kernel_of(function)->large_clusters = value;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
  if (value < 0 || value + static_cast<int>(kernel_of(function)->shared_bytes) > most) return CUDA_ERROR_INVALID_VALUE;
  return kernel_of(function)->dynamic_limit = value, CUDA_SUCCESS;
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  return cuFuncSetAttribute(reinterpret_cast<CUfunction>(kernel), attribute, value);
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  const Kernel& kernel = *kernel_of(function);
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK          ? kernel.max_threads
           : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES            ? kernel.shared_bytes
           : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? kernel.dynamic_limit
                                                                          : 0;
  return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads, size_t bytes) {
  return *blocks = blocks_held(*kernel_of(function), threads, bytes), CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) {
  Shape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
              {config->blockDimX, config->blockDimY, config->blockDimZ}};
  shape.dynamic_bytes = config->sharedMemBytes;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const auto& value = config->attrs[i].value;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      shape.cluster[0] = value.clusterDim.x, shape.cluster[1] = value.clusterDim.y, shape.cluster[2] = value.clusterDim.z;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      shape.programmatic = value.programmaticStreamSerializationAllowed;
  }
  return status_of(launch(*kernel_of(function), shape, arguments, block_of(extra)));
}
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned bytes, CUstream, void** arguments, void** extra) {
  CUlaunchConfig config{};
  config.gridDimX = grid_x, config.gridDimY = grid_y, config.gridDimZ = grid_z;
  config.blockDimX = block_x, config.blockDimY = block_y, config.blockDimZ = block_z;
  config.sharedMemBytes = bytes;
  return cuLaunchKernelEx(&config, function, arguments, extra);
}

CUresult cuMemAlloc(CUdeviceptr* address, size_t size) {
  void* got = nullptr;
  const int status = allocate(&got, size, false);
  return *address = reinterpret_cast<CUdeviceptr>(got), status_of(status);
}
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream) { return cuMemAlloc(address, size); }
CUresult cuMemFree(CUdeviceptr address) { return status_of(release(pointer(address))); }
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream) { return cuMemFree(address); }
CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t size) {
  return status_of(copy(pointer(target), pointer(source), size));
}
CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream) {
  return cuMemcpy(target, source, size);
}
CUresult cuMemcpyHtoD(CUdeviceptr target, const void* source, size_t size) {
  return status_of(copy(pointer(target), source, size));
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr target, const void* source, size_t size, CUstream) {
  return cuMemcpyHtoD(target, source, size);
}
CUresult cuMemcpyDtoH(void* target, CUdeviceptr source, size_t size) {
  return status_of(copy(target, pointer(source), size));
}
CUresult cuMemcpyDtoHAsync(void* target, CUdeviceptr source, size_t size, CUstream) {
  return cuMemcpyDtoH(target, source, size);
}
CUresult cuMemcpyDtoD(CUdeviceptr target, CUdeviceptr source, size_t size) { return cuMemcpy(target, source, size); }
CUresult cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream) {
  return cuMemcpy(target, source, size);
}
CUresult cuMemsetD8(CUdeviceptr target, unsigned char value, size_t count) {
  return status_of(fill(pointer(target), value, 1, count));
}
CUresult cuMemsetD16(CUdeviceptr target, unsigned short value, size_t count) {
  return status_of(fill(pointer(target), value, 2, count));
}
CUresult cuMemsetD32(CUdeviceptr target, unsigned value, size_t count) {
  return status_of(fill(pointer(target), value, 4, count));
}
CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream) {
  return cuMemsetD8(target, value, count);
}
CUresult cuMemsetD16Async(CUdeviceptr target, unsigned short value, size_t count, CUstream) {
  return cuMemsetD16(target, value, count);
}
CUresult cuMemsetD32Async(CUdeviceptr target, unsigned value, size_t count, CUstream) {
  return cuMemsetD32(target, value, count);
}
CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return *free_bytes = *total_bytes = device().memory_bytes, CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  return *stream = reinterpret_cast<CUstream>(new char), CUDA_SUCCESS;
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) { return cuStreamCreate(stream, flags); }
CUresult cuStreamDestroy(CUstream) { return CUDA_SUCCESS; }
CUresult cuStreamSynchronize(CUstream) { return status_of(broken()); }
CUresult cuStreamQuery(CUstream) { return status_of(broken()); }
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return status_of(broken()); }
CUresult cuStreamIsCapturing(CUstream, CUstreamCaptureStatus* status) {
  return *status = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  return status_of(cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(event), 0));
}
CUresult cuEventDestroy(CUevent event) { return status_of(cudaEventDestroy(event)); }
CUresult cuEventRecord(CUevent event, CUstream) { return status_of(cudaEventRecord(event, nullptr)); }
CUresult cuEventSynchronize(CUevent) { return status_of(broken()); }
CUresult cuEventQuery(CUevent) { return status_of(broken()); }
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return status_of(cudaEventElapsedTime(milliseconds, start, end));
}

// A function by its name, with the suffix of its newest version where it has one.
CUresult cuGetProcAddress(const char* name, void** function, int, cuuint64_t, CUdriverProcAddressQueryResult* result) {
  Dl_info own{};
  dladdr(reinterpret_cast<void*>(&cuInit), &own);
  void* library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  *function = nullptr;
  for (const char* suffix : {"_v3", "_v2", ""})
    if (!*function) *function = dlsym(library, (std::string(name) + suffix).c_str());
  if (result) *result = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
