// A host program: what it does is named by its first argument. Prints what it sees.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

static CUmodule module_of(const char* path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  CUmodule module;
  if (cuModuleLoadData(&module, text.c_str())) std::exit(3);
  return module;
}

static int scale(const char* path) {
  CUfunction kernel;
  CUmodule module = module_of(path);
  cuModuleGetFunction(&kernel, module, "scale");
  std::vector<float> values(32, 1.5f);
  float factor = 2, pad[3] = {};
  void* data;
  cudaMalloc(&data, 128);
  cudaMemcpy(data, values.data(), 128, cudaMemcpyHostToDevice);
  void* arguments[] = {&data, &factor, pad};
  cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
  const int status = cudaDeviceSynchronize();
  cudaMemcpy(values.data(), data, 128, cudaMemcpyDeviceToHost);
  std::printf("%d %g %d\n", status, values[31], static_cast<int>(cudaGetLastError()));
  return 0;
}

static int symbol(const char* path) {
  CUmodule module = module_of(path);
  CUdeviceptr address;
  size_t size;
  int value = 0;
  const int status = cuModuleGetGlobal(&address, &size, module, "calls");
  cuMemcpyDtoH(&value, address, 4);
  std::printf("%d %zu %d\n", status, size, value);
  return 0;
}

static int properties(const char*) {
  cudaDeviceProp got;
  cudaGetDeviceProperties(&got, 0);
  std::printf("%s %d.%d %d\n", got.name, got.major, got.minor, got.multiProcessorCount);
  return 0;
}

static int memory(const char*) {
  void *data, *more;
  int values[2] = {1, 2};
  cudaMalloc(&data, 8);
  cudaMalloc(&more, 8);
  cudaMemset(data, 1, 4);
  cudaMemcpy(more, data, 4, cudaMemcpyDefault);
  const int outside = cudaMemcpy(data, values, 16, cudaMemcpyDefault);
  cudaMemcpy(values, more, 4, cudaMemcpyDefault);
  const int first = cudaFree(data), second = cudaFree(data);
  std::printf("%x %d %d %d\n", values[0], outside, first, second);
  return 0;
}

static int maps(const char*) {
  CUtensorMap map;
  void* encode;
  cudaDriverEntryPointQueryResult found;
  const int asked = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 13000, 0, &found);
  const cuuint64_t dims[] = {64, 64}, strides[] = {128};
  const cuuint32_t box[] = {64, 8}, ones[] = {1, 1};
  void* data;
  cudaMalloc(&data, 8192);
  const auto map_of = [&](void* address) {
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
        &map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, address, dims, strides, box, ones,
        CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_NONE,
        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  std::printf("%d %d %d %d\n", asked, found, map_of(data), map_of(static_cast<char*>(data) + 8));
  return 0;
}

static int fails(const char*) { return 7; }

static int captures(const char*) {
  std::printf("%d\n", cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  return 0;
}

int main(int, char** words) {
  const struct { const char* name; int (*act)(const char*); } acts[] = {
      {"scale", scale}, {"symbol", symbol},     {"properties", properties}, {"memory", memory},
      {"maps", maps},   {"captures", captures}, {"fails", fails}};
  for (const auto& act : acts)
    if (!std::strcmp(act.name, words[1])) return act.act(words[2]);
  return 99;
}
