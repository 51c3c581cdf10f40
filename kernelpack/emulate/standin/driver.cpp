// The CUDA driver API: the device, modules, launches. Handles are pointers of ours.
#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <string>

#include "wire.hpp"

using namespace standin;

namespace {

CUresult status_of(int status) { return static_cast<CUresult>(status); }
// The number of a module or library, whose handle is one more: null is not a handle.
uint32_t number(const void* handle) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(handle) - 1);
}

CUresult no_kernel() {
  return status_of(complain("no kernel has this handle", CUDA_ERROR_INVALID_HANDLE));
}

template <class T, class U>
CUresult gave(T* to, const U& value) {
  return status_of(give(to, value));
}
template <class T, class U>
CUresult gave_of(CUdevice ordinal, T* to, const U& value) {
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
CUresult no_module() {
  return status_of(complain("no module has this handle", CUDA_ERROR_INVALID_HANDLE));
}

// The end of what the headers of machine code speak of.
size_t size_of_elf(const char* image) {
  const auto* head = reinterpret_cast<const Elf64_Ehdr*>(image);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(image + head->e_shoff);
  size_t end = std::max(head->e_shoff + size_t{head->e_shnum} * sizeof *sections,
                        head->e_phoff + size_t{head->e_phnum} * sizeof(Elf64_Phdr));
  for (int i = 0; i < head->e_shnum; ++i)
    if (sections[i].sh_type != SHT_NOBITS)
      end = std::max<size_t>(end, sections[i].sh_offset + sections[i].sh_size);
  return end;
}

// A fat binary and machine code say their own size; PTX is a text.
constexpr size_t MOST_BYTES = size_t{1} << 30;
size_t size_of(const void* image) {
  uint32_t magic;
  std::memcpy(&magic, image, sizeof magic);
  if (!std::memcmp(image, ELFMAG, SELFMAG)) return size_of_elf(static_cast<const char*>(image));
  if (magic != 0xBA55ED50) return std::strlen(static_cast<const char*>(image));
  uint64_t size;
  std::memcpy(&size, static_cast<const char*>(image) + 8, sizeof size);
  return size > MOST_BYTES ? size : size + 16;
}

CUresult load(void** handle, const void* image) {
  if (!handle || !image) return status_of(complain("a module that is a null pointer"));
  const size_t size = size_of(image);
  if (size > MOST_BYTES)
    return status_of(complain("a fat binary of " + std::to_string(size) + " bytes"));
  Answer answer = load_module(image, size);
  if (answer.status) return status_of(answer.status);
  *handle = reinterpret_cast<void*>(uintptr_t{answer.take<uint32_t>()} + 1);
  const std::lock_guard<std::mutex> guard(loaded().lock);
  return loaded().numbers.insert(number(*handle)), CUDA_SUCCESS;
}

CUresult load_file(void** handle, const char* path) {
  if (!path) return status_of(complain("a file by a null pointer"));
  std::ifstream file(path, std::ios::binary);
  if (!file) return status_of(complain(std::string("no file ") + path, CUDA_ERROR_FILE_NOT_FOUND));
  const std::string image{std::istreambuf_iterator<char>(file), {}};
  return load(handle, image.c_str());
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
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice ordinal) {
  const CUresult status =
      gave_of(ordinal, major, device().attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
  return status ? status
                : gave(minor, device().attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
}
CUresult cuDeviceGetPCIBusId(char* name, int size, CUdevice ordinal) {
  return status_of(cudaDeviceGetPCIBusId(name, size, ordinal));
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice ordinal) {
  return gave_of(ordinal, uuid, CUuuid{"emulated device"});
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice) { return gave(can, 0); }
CUresult cuDeviceTotalMem(size_t* size, CUdevice ordinal) {
  return gave_of(ordinal, size, device().memory_bytes);
}

CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
    case CUDA_SUCCESS: return gave(name, "CUDA_SUCCESS");
#define NAMED(value) \
  case value: return gave(name, #value);
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
CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return load_file(reinterpret_cast<void**>(module), path);
}
CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return cuModuleLoadData(module, image);
}
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
CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option*, void**,
                               unsigned, CUlibraryOption*, void**, unsigned) {
  return load_file(reinterpret_cast<void**>(library), path);
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
  if (attribute == CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED)
    kernel->large_clusters = value;
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
  return status_of(set_dynamic_limit(*kernel, value));
}
CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice) {
  return cuFuncSetAttribute(reinterpret_cast<CUfunction>(kernel), attribute, value);
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  const Kernel* kernel = known_kernel(function);
  if (!kernel) return no_kernel();
  return gave(value, attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? int(kernel->max_threads)
                     : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES ? int(kernel->shared_bytes)
                     : attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                         ? kernel->dynamic_limit
                         : 0);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments,
                          void** extra) {
  Kernel* kernel = known_kernel(function);
  if (!kernel) return no_kernel();
  if (!config || (config->numAttrs && !config->attrs))
    return status_of(complain("a launch by a null pointer"));
  Shape shape{{config->gridDimX, config->gridDimY, config->gridDimZ},
              {config->blockDimX, config->blockDimY, config->blockDimZ}};
  shape.dynamic_bytes = config->sharedMemBytes;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const auto& value = config->attrs[i].value;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
      shape.cluster[0] = value.clusterDim.x, shape.cluster[1] = value.clusterDim.y,
      shape.cluster[2] = value.clusterDim.z;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
      shape.programmatic = value.programmaticStreamSerializationAllowed;
    if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
      shape.cooperative = value.cooperative;
  }
  shape.stream = config->hStream;
  if (const int status = ready(shape.stream)) return status_of(status);
  std::string block;
  return status_of(launch(*kernel, shape, arguments, block_of(extra, block) ? &block : nullptr));
}
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned bytes,
                        CUstream stream, void** arguments, void** extra) {
  CUlaunchConfig config{};
  config.hStream = stream;
  config.gridDimX = grid_x, config.gridDimY = grid_y, config.gridDimZ = grid_z;
  config.blockDimX = block_x, config.blockDimY = block_y, config.blockDimZ = block_z;
  config.sharedMemBytes = bytes;
  return cuLaunchKernelEx(&config, function, arguments, extra);
}
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned bytes, CUstream stream,
                                   void** arguments) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  CUlaunchConfig config{};
  config.hStream = stream, config.attrs = &attribute, config.numAttrs = 1;
  config.gridDimX = grid_x, config.gridDimY = grid_y, config.gridDimZ = grid_z;
  config.blockDimX = block_x, config.blockDimY = block_y, config.blockDimZ = block_z;
  config.sharedMemBytes = bytes;
  return cuLaunchKernelEx(&config, function, arguments, nullptr);
}

}  // extern "C"

namespace {

// Functions that have changed: the release from which on a program gets which of them.
struct Version {
  const char *name, *symbol;
  int since;
};
constexpr Version VERSIONS[] = {
    {"cuCtxCreate", "cuCtxCreate_v4", 12050},    {"cuCtxCreate", "cuCtxCreate_v3", 11040},
    {"cuCtxCreate", "cuCtxCreate_v2", 0},        {"cuCtxGetDevice", "cuCtxGetDevice_v2", 13000},
    {"cuCtxGetDevice", "cuCtxGetDevice", 0},     {"cuCtxSynchronize", "cuCtxSynchronize_v2", 13000},
    {"cuCtxSynchronize", "cuCtxSynchronize", 0}, {"cuStreamGetCtx", "cuStreamGetCtx_v2", 12050},
    {"cuStreamGetCtx", "cuStreamGetCtx", 0},
};

// A function by its name: its version, else that with the suffix of its newest one.
void* named(void* library, const std::string& name, int release) {
  for (const Version& version : VERSIONS)
    if (name == version.name && release >= version.since) return dlsym(library, version.symbol);
  for (const char* suffix : {"_v3", "_v2", ""})
    if (void* found = dlsym(library, (name + suffix).c_str())) return found;
  return nullptr;
}

}  // namespace

extern "C" CUresult cuGetProcAddress(const char* name, void** function, int release, cuuint64_t,
                                     CUdriverProcAddressQueryResult* result) {
  if (!name || !function) return status_of(complain("a function by a null pointer"));
  Dl_info own{};
  dladdr(reinterpret_cast<void*>(&cuInit), &own);
  void* library = dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  *function = named(library, name, release);
  if (result)
    *result = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
