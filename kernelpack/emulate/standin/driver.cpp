// The CUDA driver API: modules, launches, memory, streams, events. Handles are pointers of ours.
#include <dlfcn.h>

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "wire.hpp"

using namespace standin;

namespace {

CUresult status_of(int status) { return static_cast<CUresult>(status); }
void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
// The number of a module or library, whose handle is one more: null is none.
uint32_t number(const void* handle) { return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle) - 1); }

CUresult no_kernel() { return status_of(complain("no kernel has this handle", CUDA_ERROR_INVALID_HANDLE)); }

template <class T, class U> CUresult gave(T* to, const U& value) { return status_of(give(to, value)); }
template <class T, class U> CUresult gave_of(CUdevice ordinal, T* to, const U& value) {
  return ordinal ? CUDA_ERROR_INVALID_DEVICE : gave(to, value);
}

// The modules and libraries that are loaded, by number.
struct Loaded {
  std::mutex lock;
  std::set<uint32_t> numbers;
};
Loaded& loaded() {
  static auto* one = new Loaded;
  return *one;
}
bool is_loaded(const void* module) {
  const std::lock_guard<std::mutex> guard(loaded().lock);
  return loaded().numbers.count(number(module));
}
CUresult no_module() { return status_of(complain("no module has this handle", CUDA_ERROR_INVALID_HANDLE)); }

// A fat binary says its own size; PTX is a text.
constexpr size_t MOST_BYTES = size_t{1} << 30;
size_t size_of(const void* image) {
  uint32_t magic;
  std::memcpy(&magic, image, sizeof magic);
  if (magic != 0xBA55ED50) return std::strlen(static_cast<const char*>(image));
  uint64_t size;
  std::memcpy(&size, static_cast<const char*>(image) + 8, sizeof size);
  return size > MOST_BYTES ? size : size + 16;
}

CUresult load(void** handle, const void* image) {
  if (!handle || !image) return status_of(complain("a module that is a null pointer"));
  const size_t size = size_of(image);
  if (size > MOST_BYTES) return status_of(complain("a fat binary of " + std::to_string(size) + " bytes"));
  Answer answer = load_module(image, size);
  if (answer.status) return status_of(answer.status);
  *handle = reinterpret_cast<void*>(uintptr_t{answer.take<uint32_t>()} + 1);
  const std::lock_guard<std::mutex> guard(loaded().lock);
  return loaded().numbers.insert(number(*handle)), CUDA_SUCCESS;
}

CUresult unload(const void* module) {
  if (!is_loaded(module)) return no_module();
  forget_kernels(number(module));
  const std::lock_guard<std::mutex> guard(loaded().lock);
  return loaded().numbers.erase(number(module)), CUDA_SUCCESS;
}

CUresult find(CUfunction* function, const void* module, const char* name) {
  if (!function || !name) return status_of(complain("a kernel by a null pointer"));
  if (!is_loaded(module)) return no_module();
  int status = 0;
  Kernel* kernel = find_kernel(number(module), name, status);
  if (kernel) *function = reinterpret_cast<CUfunction>(kernel);
  return status_of(status);
}

// The parameter block in `extra`, if there is one: the other way of passing arguments.
bool block_of(void** extra, std::string& block) {
  const void* start = nullptr;
  size_t size = 0;
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) start = extra[1];
    if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<size_t*>(extra[1]);
  }
  if (start) block.assign(static_cast<const char*>(start), size);
  return start;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned) { return device(), CUDA_SUCCESS; }
CUresult cuDriverGetVersion(int* version) { return gave(version, CUDA_VERSION); }
CUresult cuDeviceGet(CUdevice* got, int ordinal) { return gave_of(ordinal, got, ordinal); }
CUresult cuDeviceGetCount(int* count) { return gave(count, 1); }
CUresult cuDeviceGetName(char* name, int size, CUdevice ordinal) {
  if (ordinal) return CUDA_ERROR_INVALID_DEVICE;
  if (!name || size < 1) return status_of(complain("no room for a device's name"));
  return std::snprintf(name, size, "%s", device().name.c_str()), CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice ordinal) {
  if (attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  return gave_of(ordinal, value, device().attribute(attribute));
}
CUresult cuDeviceTotalMem(size_t* size, CUdevice ordinal) { return gave_of(ordinal, size, device().memory_bytes); }
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  return gave_of(ordinal, context, reinterpret_cast<CUcontext>(1));
}
CUresult cuDevicePrimaryCtxRelease(CUdevice) { return CUDA_SUCCESS; }
CUresult cuCtxGetCurrent(CUcontext* context) { return gave(context, reinterpret_cast<CUcontext>(1)); }
CUresult cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPushCurrent(CUcontext) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext* context) { return cuCtxGetCurrent(context); }
CUresult cuCtxGetDevice(CUdevice* device) { return gave(device, 0); }
CUresult cuCtxSynchronize() { return status_of(settle(nullptr)); }

CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_SUCCESS: return gave(name, "CUDA_SUCCESS");
#define NAMED(value) case value: return gave(name, #value);
    NAMED(CUDA_ERROR_INVALID_VALUE)
    NAMED(CUDA_ERROR_OUT_OF_MEMORY)
    NAMED(CUDA_ERROR_NOT_INITIALIZED)
    NAMED(CUDA_ERROR_DEINITIALIZED)
    NAMED(CUDA_ERROR_NO_DEVICE)
    NAMED(CUDA_ERROR_INVALID_DEVICE)
    NAMED(CUDA_ERROR_INVALID_IMAGE)
    NAMED(CUDA_ERROR_INVALID_CONTEXT)
    NAMED(CUDA_ERROR_NO_BINARY_FOR_GPU)
    NAMED(CUDA_ERROR_INVALID_PTX)
    NAMED(CUDA_ERROR_INVALID_SOURCE)
    NAMED(CUDA_ERROR_FILE_NOT_FOUND)
    NAMED(CUDA_ERROR_INVALID_HANDLE)
    NAMED(CUDA_ERROR_ILLEGAL_STATE)
    NAMED(CUDA_ERROR_NOT_FOUND)
    NAMED(CUDA_ERROR_NOT_READY)
    NAMED(CUDA_ERROR_ILLEGAL_ADDRESS)
    NAMED(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
    NAMED(CUDA_ERROR_LAUNCH_TIMEOUT)
    NAMED(CUDA_ERROR_CONTEXT_IS_DESTROYED)
    NAMED(CUDA_ERROR_ASSERT)
    NAMED(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
    NAMED(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
    NAMED(CUDA_ERROR_ILLEGAL_INSTRUCTION)
    NAMED(CUDA_ERROR_MISALIGNED_ADDRESS)
    NAMED(CUDA_ERROR_LAUNCH_FAILED)
    NAMED(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
    NAMED(CUDA_ERROR_NOT_PERMITTED)
    NAMED(CUDA_ERROR_NOT_SUPPORTED)
    NAMED(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    NAMED(CUDA_ERROR_INVALID_CLUSTER_SIZE)
    NAMED(CUDA_ERROR_UNKNOWN)
#undef NAMED
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  return gave(text, error ? "an error; the emulator said which on stderr" : "no error");
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load(reinterpret_cast<void**>(module), image);
}
CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  return cuModuleLoadData(module, image);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) { return cuModuleLoadData(module, image); }
CUresult cuModuleUnload(CUmodule module) { return unload(module); }
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return find(function, module, name);
}
CUresult cuModuleGetGlobal(CUdeviceptr* address, size_t* size, CUmodule module, const char* name) {
  if (!name) return status_of(complain("a variable by a null pointer"));
  if (!is_loaded(module)) return no_module();
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
CUresult cuLibraryUnload(CUlibrary library) { return unload(library); }
CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return find(reinterpret_cast<CUfunction*>(kernel), library, name);
}
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return gave(function, reinterpret_cast<CUfunction>(kernel));
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  Kernel* kernel = known_kernel(function);
  if (!kernel) return no_kernel();
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED) kernel->large_clusters = value;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
  return status_of(set_dynamic_limit(*kernel, value));
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice) {
  return cuFuncSetAttribute(reinterpret_cast<CUfunction>(kernel), attribute, value);
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  const Kernel* kernel = known_kernel(function);
  if (!kernel) return no_kernel();
  return gave(value, attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK          ? int(kernel->max_threads)
                     : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES            ? int(kernel->shared_bytes)
                     : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ? kernel->dynamic_limit
                                                                                    : 0);
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads, size_t bytes) {
  const Kernel* kernel = known_kernel(function);
  return kernel ? status_of(blocks_held(blocks, *kernel, threads, bytes)) : no_kernel();
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra) {
  Kernel* kernel = known_kernel(function);
  if (!kernel) return no_kernel();
  if (!config || (config->numAttrs && !config->attrs)) return status_of(complain("a launch by a null pointer"));
  Shape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
              {config->blockDimX, config->blockDimY, config->blockDimZ}};
  shape.dynamic_bytes = config->sharedMemBytes;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const auto& value = config->attrs[i].value;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      shape.cluster[0] = value.clusterDim.x, shape.cluster[1] = value.clusterDim.y, shape.cluster[2] = value.clusterDim.z;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      shape.programmatic = value.programmaticStreamSerializationAllowed;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) shape.cooperative = value.cooperative;
  }
  if (const int status = settle(config->hStream)) return status_of(status);
  std::string block;
  return status_of(launch(*kernel, shape, arguments, block_of(extra, block) ? &block : nullptr));
}
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned bytes, CUstream stream, void** arguments, void** extra) {
  CUlaunchConfig config{};
  config.hStream = stream;
  config.gridDimX = grid_x, config.gridDimY = grid_y, config.gridDimZ = grid_z;
  config.blockDimX = block_x, config.blockDimY = block_y, config.blockDimZ = block_z;
  config.sharedMemBytes = bytes;
  return cuLaunchKernelEx(&config, function, arguments, extra);
}

CUresult cuMemAlloc(CUdeviceptr* address, size_t size) {
  return status_of(size ? allocate(reinterpret_cast<void**>(address), size, Kind::device) : complain("memory of no bytes"));
}
CUresult cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream stream) {
  if (const int status = settle(stream)) return status_of(status);
  return cuMemAlloc(address, size);
}
CUresult cuMemFree(CUdeviceptr address) {
  if (const int status = settle(nullptr)) return status_of(status);
  return status_of(release(pointer(address)));
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  if (const int status = settle(stream)) return status_of(status);
  return cuMemFree(address);
}
CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t size) {
  if (const int status = settle(nullptr)) return status_of(status);
  return status_of(copy(pointer(target), pointer(source), size, cudaMemcpyDefault));
}
CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream) {
  if (const int status = settle(stream)) return status_of(status);
  return cuMemcpy(target, source, size);
}
CUresult cuMemcpyHtoD(CUdeviceptr target, const void* source, size_t size) {
  if (const int status = settle(nullptr)) return status_of(status);
  return status_of(copy(pointer(target), source, size, cudaMemcpyHostToDevice));
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr target, const void* source, size_t size, CUstream stream) {
  if (const int status = settle(stream)) return status_of(status);
  return cuMemcpyHtoD(target, source, size);
}
CUresult cuMemcpyDtoH(void* target, CUdeviceptr source, size_t size) {
  if (const int status = settle(nullptr)) return status_of(status);
  return status_of(copy(target, pointer(source), size, cudaMemcpyDeviceToHost));
}
CUresult cuMemcpyDtoHAsync(void* target, CUdeviceptr source, size_t size, CUstream stream) {
  if (const int status = settle(stream)) return status_of(status);
  return cuMemcpyDtoH(target, source, size);
}
CUresult cuMemcpyDtoD(CUdeviceptr target, CUdeviceptr source, size_t size) {
  if (const int status = settle(nullptr)) return status_of(status);
  return status_of(copy(pointer(target), pointer(source), size, cudaMemcpyDeviceToDevice));
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream) {
  if (const int status = settle(stream)) return status_of(status);
  return cuMemcpyDtoD(target, source, size);
}
CUresult cuMemsetD8(CUdeviceptr target, unsigned char value, size_t count) {
  if (const int status = settle(nullptr)) return status_of(status);
  return status_of(fill(pointer(target), value, 1, count));
}
CUresult cuMemsetD16(CUdeviceptr target, unsigned short value, size_t count) {
  if (const int status = settle(nullptr)) return status_of(status);
  return status_of(fill(pointer(target), value, 2, count));
}
CUresult cuMemsetD32(CUdeviceptr target, unsigned value, size_t count) {
  if (const int status = settle(nullptr)) return status_of(status);
  return status_of(fill(pointer(target), value, 4, count));
}
CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char value, size_t count, CUstream stream) {
  if (const int status = settle(stream)) return status_of(status);
  return cuMemsetD8(target, value, count);
}
CUresult cuMemsetD16Async(CUdeviceptr target, unsigned short value, size_t count, CUstream stream) {
  if (const int status = settle(stream)) return status_of(status);
  return cuMemsetD16(target, value, count);
}
CUresult cuMemsetD32Async(CUdeviceptr target, unsigned value, size_t count, CUstream stream) {
  if (const int status = settle(stream)) return status_of(status);
  return cuMemsetD32(target, value, count);
}
CUresult cuMemAllocManaged(CUdeviceptr* address, size_t size, unsigned flags) {
  return status_of(cudaMallocManaged(reinterpret_cast<void**>(address), size, flags));
}
CUresult cuMemHostAlloc(void** address, size_t size, unsigned flags) {
  return status_of(cudaHostAlloc(address, size, flags));
}
CUresult cuMemAllocHost(void** address, size_t size) { return cuMemHostAlloc(address, size, 0); }
CUresult cuMemFreeHost(void* address) { return status_of(cudaFreeHost(address)); }
CUresult cuMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return status_of(cudaMemGetInfo(free_bytes, total_bytes));
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  return status_of(cudaStreamCreate(stream));
}
CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int) { return cuStreamCreate(stream, flags); }
CUresult cuStreamDestroy(CUstream stream) { return status_of(cudaStreamDestroy(stream)); }
CUresult cuStreamSynchronize(CUstream stream) { return status_of(settle(stream)); }
CUresult cuStreamQuery(CUstream stream) { return status_of(cudaStreamQuery(stream)); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return status_of(cudaStreamWaitEvent(stream, event, flags));
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return status_of(cudaStreamIsCapturing(stream, reinterpret_cast<cudaStreamCaptureStatus*>(status)));
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return status_of(cudaLaunchHostFunc(stream, function, data));
}
CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return status_of(cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(event), flags));
}
CUresult cuEventDestroy(CUevent event) { return status_of(cudaEventDestroy(event)); }
CUresult cuEventRecord(CUevent event, CUstream stream) { return status_of(cudaEventRecord(event, stream)); }
CUresult cuEventSynchronize(CUevent event) { return status_of(cudaEventSynchronize(event)); }
CUresult cuEventQuery(CUevent event) { return cuEventSynchronize(event); }
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return status_of(cudaEventElapsedTime(milliseconds, start, end));
}

// A function by its name, with the suffix of its newest version where it has one.
CUresult cuGetProcAddress(const char* name, void** function, int, cuuint64_t, CUdriverProcAddressQueryResult* result) {
  if (!name || !function) return status_of(complain("a function by a null pointer"));
  Dl_info own{};
  dladdr(reinterpret_cast<void*>(&cuInit), &own);
  void* library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  *function = nullptr;
  for (const char* suffix : {"_v3", "_v2", ""})
    if (!*function) *function = dlsym(library, (std::string(name) + suffix).c_str());
  if (result) *result = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  if (!*function) refuse(name);
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
