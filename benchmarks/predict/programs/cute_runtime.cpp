// In place of CuTe-DSL's runtime library: the same calls, of whichever CUDA runtime is found.
//
// The library of the wheel has CUDA's runtime inside it, which cannot be replaced. Compiled host
// code calls CUDA through these names, with CUDA's own arguments and an underscore.
#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

static const void* next;
static std::vector<int> packed;

// Compiled host code packs the words of tensor maps itself, as the hardware has them: 64 bits of
// address, a word of kinds, four strides in units of 16 bytes, their upper bits, five extents and
// five boxes less one. CUDA's own call makes of it what a kernel here takes.
static CUtensorMap unpacked(const uint32_t* words) {
  const unsigned kinds = words[2], rank = (kinds >> 4 & 7) + 1;
  const auto* bytes = reinterpret_cast<const uint8_t*>(words);
  cuuint64_t dims[5], strides[5];
  cuuint32_t box[5], steps[5] = {1, 1, 1, 1, 1};
  for (unsigned i = 0; i < rank; ++i) {
    dims[i] = cuuint64_t(words[8 + i]) + 1;
    box[i] = bytes[55 + i] + 1u;
    strides[i] = (cuuint64_t(words[7] >> 4 * i & 15) << 32 | words[3 + i]) << 4;
  }
  const unsigned type = kinds >> 7 & 15;  // 10 is bf16 here, 9 is in CUDA's numbers
  if (type != 10) std::abort();           // others were not needed yet
  CUtensorMap made;
  const CUresult status = cuTensorMapEncodeTiled(
      &made, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, rank,
      reinterpret_cast<void*>(uint64_t(words[1]) << 32 | words[0]), dims, strides, box, steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(kinds >> 13 & 3),
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) std::abort();
  return made;
}

extern "C" {
// The program says which PTX the next library has, for what is compiled in has none, and which of
// the kernel's parameters are packed maps.
void take_ptx(const char* text, const int* maps, int count) {
  next = text;
  packed.assign(maps, maps + count);
}

// A library is a module here, and a kernel a function.
CUresult _cudaLibraryLoadData(CUmodule* library, const void* code, void*, void*, unsigned, void*,
                              void*, unsigned) {
  return cuModuleLoadData(library, next ? next : code);
}
CUresult _cudaLibraryGetKernel(CUfunction* kernel, CUmodule library, const char* name) {
  return cuModuleGetFunction(kernel, library, name);
}
cudaError_t _cudaGetDevice(int* device) { return cudaGetDevice(device); }
cudaError_t _cudaGetDeviceCount(int* count) { return cudaGetDeviceCount(count); }
cudaError_t _cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return cudaDeviceGetAttribute(value, attribute, device);
}
CUresult _cudaFuncSetAttribute(CUfunction kernel, CUfunction_attribute attribute, int value) {
  return cuFuncSetAttribute(kernel, attribute, value);
}
CUresult _cudaKernelSetAttributeForDevice(CUfunction kernel, CUfunction_attribute attribute,
                                          int value, int) {
  return cuFuncSetAttribute(kernel, attribute, value);
}
CUresult _cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUfunction kernel,
                               CUdevice) {
  return cuFuncGetAttribute(value, attribute, kernel);
}
CUresult _cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank,
                                 void* address, const cuuint64_t* dims, const cuuint64_t* strides,
                                 const cuuint32_t* box, const cuuint32_t* steps,
                                 CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                 CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return cuTensorMapEncodeTiled(map, type, rank, address, dims, strides, box, steps, interleave,
                                swizzle, promotion, fill);
}
CUresult _cudaLaunchKernelEx(const cudaLaunchConfig_t* given, CUfunction kernel, void** arguments) {
  CUlaunchConfig config{};
  config.gridDimX = given->gridDim.x, config.blockDimX = given->blockDim.x;
  config.gridDimY = given->gridDim.y, config.blockDimY = given->blockDim.y;
  config.gridDimZ = given->gridDim.z, config.blockDimZ = given->blockDim.z;
  config.sharedMemBytes = unsigned(given->dynamicSmemBytes);
  config.hStream = given->stream;
  config.attrs = reinterpret_cast<CUlaunchAttribute*>(given->attrs);
  config.numAttrs = given->numAttrs;
  alignas(64) CUtensorMap maps[8];
  for (size_t i = 0; i < packed.size(); ++i) {
    maps[i] = unpacked(static_cast<const uint32_t*>(arguments[packed[i]]));
    arguments[packed[i]] = &maps[i];
  }
  return cuLaunchKernelEx(&config, kernel, arguments, nullptr);
}

void cuda_dialect_assert_success(int status) {
  if (status == 0) return;
  std::fprintf(stderr, "CUDA: %s\n", cudaGetErrorString(static_cast<cudaError_t>(status)));
  std::abort();
}

const char* cuda_dialect_get_error_name(int status) {
  return cudaGetErrorName(static_cast<cudaError_t>(status));
}

// The first call makes the library; `prepare` readies it for one device.
int cuda_dialect_init_library_once(void** made, int (*make)(void**), int (*prepare)(void**, int),
                                   void (*)(const char*, const char*)) {
  if (*made) return 0;
  void* library = nullptr;
  if (int status = make(&library)) cuda_dialect_assert_success(status);
  if (prepare) cuda_dialect_assert_success(prepare(&library, 0));
  *made = library;
  return 0;
}

void cuda_dialect_unload_library_once(void**) {}
void CuteDSLRT_TVMFFISetRaisedCudaError(int status) { cuda_dialect_assert_success(status); }
void CuteDSLRT_TVMFFISetRaisedCudaLaunchError(int status) { cuda_dialect_assert_success(status); }
}
