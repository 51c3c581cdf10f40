// A host program: what it does is named by its first argument. Prints what it sees.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <thread>
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
  const int asked =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 13000, 0, &found);
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

// The statuses of calls with null pointers and with invalid handles.
static int nothing(const char* path) {
  CUmodule module = module_of(path);
  CUfunction kernel;
  cuModuleGetFunction(&kernel, module, "scale");
  cudaEvent_t event;
  cudaEventCreate(&event);
  cudaEventDestroy(event);
  cudaDeviceProp properties;
  char bytes[2][8];
  int blocks;
  CUmodule gone = module_of(path);
  CUfunction stale;
  cuModuleGetFunction(&stale, gone, "scale");
  cuModuleUnload(gone);
  const int statuses[] = {
      cudaMalloc(static_cast<void**>(nullptr), 8),
      cuModuleLoadData(&module, nullptr),
      cuModuleGetFunction(&kernel, module, nullptr),
      cuModuleGetFunction(&kernel, reinterpret_cast<CUmodule>(77), "scale"),
      cuModuleGetFunction(&kernel, nullptr, "scale"),
      cuModuleGetFunction(&kernel, module_of(path), "nothing"),
      cuLaunchKernel(nullptr, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr),
      cuMemcpyHtoD(0, bytes, 4),
      cudaMemcpy(bytes[0], bytes[1], 8, cudaMemcpyDeviceToHost),
      cudaGetDeviceProperties(&properties, 99),
      cudaEventDestroy(event),
      cudaEventRecord(nullptr, nullptr),
      cudaGetDeviceCount(nullptr),
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 0, 0),
      cuModuleUnload(gone),
      cuModuleGetFunction(&kernel, gone, "scale"),
      cuLaunchKernel(stale, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr),
  };
  for (const int status : statuses) std::printf("%d ", status);
  return 0;
}

// The statuses of launches that CUDA refuses at once, and of a wait for them.
static int shapes(const char* path) {
  CUmodule module = module_of(path);
  CUfunction kernel;
  cuModuleGetFunction(&kernel, module, "scale");
  void* data;
  float factor = 2, pad[3] = {};
  cudaMalloc(&data, 128);
  void* arguments[] = {&data, &factor, pad};
  const auto launch = [&](unsigned x, unsigned y, unsigned threads, unsigned z, unsigned cluster,
                          unsigned bytes) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {cluster, cluster, 1};
    CUlaunchConfig config{x, y, 1, threads, 1, z, bytes, nullptr, &attribute, 1};
    std::printf("%d ", cuLaunchKernelEx(&config, kernel, arguments, nullptr));
  };
  launch(0, 1, 32, 1, 1, 0);
  launch(1, 70000, 32, 1, 1, 0);
  launch(1, 1, 2048, 1, 1, 0);
  launch(1, 1, 1, 65, 1, 0);
  launch(1, 1, 32, 1, 0, 0);
  launch(65536, 65536, 32, 1, 65536, 0);
  launch(3, 3, 32, 1, 2, 0);
  launch(1, 1, 32, 1, 1, 1u << 31);
  std::printf("%d %d\n", cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr),
              cuCtxSynchronize());
  return 0;
}

// CUDA in the child of a fork, and in its parent.
static int forks(const char*) {
  void* data;
  cudaMalloc(&data, 8);
  const pid_t child = fork();
  if (!child) _exit(cudaMalloc(&data, 8));
  int status;
  waitpid(child, &status, 0);
  std::printf("%d %d\n", WEXITSTATUS(status), cudaMalloc(&data, 8));
  return 0;
}

// Another CUDA program, waited for.
static int nests(const char* own) {
  void* data;
  cudaMalloc(&data, 8);
  return std::system((std::string(own) + " properties").c_str());
}

// An end in the middle of a launch.
static int leaves(const char* path) {
  CUfunction kernel;
  cuModuleGetFunction(&kernel, module_of(path), "spin");
  std::thread([&] {
    cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
  }).detach();
  usleep(200000);
  _exit(0);
}

// More memory than there is, a piece at a time.
static int recycles(const char*) {
  int status = 0;
  for (int i = 0; i < 40 && !status; ++i) {
    void* data;
    status = cudaMalloc(&data, 1 << 18);
    if (!status) cudaFree(data);
  }
  std::printf("%d\n", status);
  return 0;
}

// The host reads device memory.
static int touches(const char*) {
  void* data;
  cudaMalloc(&data, 128);
  std::printf("%g", static_cast<float*>(data)[3]);
  return 0;
}

// A timer whose handler interrupts every wait for the emulator; then a launch.
static int interrupts(const char* path) {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 300}, {0, 300}};
  setitimer(ITIMER_REAL, &often, nullptr);
  return scale(path);
}

// A host function that waits for the caller, work after it, and a child that outlives us.
static int defers(const char*) {
  static std::promise<void> called;
  static int order = 0;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaLaunchHostFunc(stream, [](void*) { called.get_future().wait(), order = 1; }, nullptr);
  const int pending = cudaStreamQuery(stream);
  called.set_value();
  cudaStreamSynchronize(stream);
  std::printf("%d %d %d\n", pending, order, cudaStreamQuery(stream));
  return 0;
}

// A child of ours that holds our connection, and outlives us.
static int outlived(const char*) {
  void* data;
  cudaMalloc(&data, 8);
  if (!fork()) return sleep(60), 0;
  std::printf("gone\n");
  return 0;
}

// What calls answer that are wrong, or ask what is so.
static int answers(const char* path) {
  void *data, *nothing = &data, *pinned, *managed;
  size_t before, after, total;
  cudaMalloc(&data, 1 << 10);
  cudaMemGetInfo(&before, &total);
  cudaMallocHost(&pinned, 1 << 12);
  cudaMallocManaged(&managed, 1 << 12, cudaMemAttachGlobal);
  cudaMemGetInfo(&after, &total);
  const int empty = cudaMalloc(&nothing, 0);
  std::printf("%d %d ", empty, nothing == nullptr);
  std::printf("%d ", before - after == 2 << 12);
  cudaPointerAttributes about;
  for (void* each : {data, pinned, managed, static_cast<void*>(&data)})
    cudaPointerGetAttributes(&about, each), std::printf("%d ", about.type);
  cudaEvent_t event;
  cudaEventCreate(&event);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaStreamDestroy(stream);
  float time;
  size_t limit = 0;
  void* function;
  char rows[2][8];
  const int statuses[] = {
      cudaEventElapsedTime(&time, event, event),
      cudaStreamSynchronize(stream),
      cudaStreamDestroy(reinterpret_cast<cudaStream_t>(&stream)),
      cudaMemcpy(data, rows, 8, static_cast<cudaMemcpyKind>(99)),
      cudaMemcpy2D(data, 4, rows, 8, 8, 2, cudaMemcpyHostToDevice),
      cudaDeviceGetLimit(&limit, cudaLimitStackSize),
      cuGetProcAddress("cuNoSuchCall", &function, 13000, 0, nullptr),
      cudaFree(pinned),
      cudaDeviceReset(),
  };
  for (const int status : statuses) std::printf("%d ", status);
  cudaMemGetInfo(&after, &total);
  std::printf("%zu %d\n", limit, after == total);
  return static_cast<void>(path), 0;
}

// A kernel on memory that the host reads and writes itself.
static int shares(const char* path) {
  CUfunction kernel;
  cuModuleGetFunction(&kernel, module_of(path), "scale");
  float *pinned, *managed, factor = 2, pad[3] = {};
  cudaMallocHost(reinterpret_cast<void**>(&pinned), 128);
  cudaMallocManaged(reinterpret_cast<void**>(&managed), 128, cudaMemAttachGlobal);
  for (float* data : {pinned, managed}) {
    for (int i = 0; i < 32; ++i) data[i] = 1.5f;
    void* arguments[] = {&data, &factor, pad};
    cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
    std::printf("%d %g ", cudaDeviceSynchronize(), data[31]);
  }
  return 0;
}

static void say(long value) { std::printf("%ld ", value); }
static void say(const char* text) { std::printf("%s ", text); }

// A call that is not modelled, by its name; and a name that CUDA does not know.
static int looks_up(const char*) {
  int (*create)(void**, unsigned) = nullptr;
  void* other = nullptr;
  const int found =
      cuGetProcAddress("cuGraphCreate", reinterpret_cast<void**>(&create), 13000, 0, nullptr);
  say(found);
  say(create(&other, 0));
  say(cuGetProcAddress("cuNoSuchCall", &other, 13000, 0, nullptr));
  return 0;
}

// Contexts: which one is current, and which one a stream belongs to.
static int contexts(const char*) {
  CUcontext primary, made, now, of_stream, of_default;
  CUstream stream;
  CUdevice ordinal = 7;
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0, other = 0;
  void *old_one, *new_one;
  cuDevicePrimaryCtxRetain(&primary, 0);
  cuCtxGetCurrent(&now);
  say(now == primary);
  say(cuCtxCreate(&made, nullptr, 0, 0));
  cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -9);
  say(cuCtxPopCurrent(&now));
  say(now == made);
  say(cuStreamGetCtx(stream, &of_stream));
  say(of_stream == made);
  say(cuStreamGetCtx(nullptr, &of_default));
  say(of_default == primary);
  cuStreamGetFlags(stream, &flags), cuStreamGetPriority(stream, &priority),
      cuStreamGetId(stream, &id);
  cuStreamGetId(nullptr, &other), cuStreamGetDevice(stream, &ordinal);
  say(flags);
  say(priority);
  say(id != other);
  say(ordinal);
  say(cuStreamGetCtx(reinterpret_cast<CUstream>(0x50), &of_stream));
  say(cuCtxDestroy(made));
  say(cuCtxPushCurrent(made));
  cuGetProcAddress("cuStreamGetCtx", &old_one, 12000, 0, nullptr);
  cuGetProcAddress("cuStreamGetCtx", &new_one, 13000, 0, nullptr);
  say(old_one == reinterpret_cast<void*>(&cuStreamGetCtx) && new_one && new_one != old_one);
  return 0;
}

// What a kernel is, and what an address is.
static int enquires(const char* path) {
  CUmodule module = module_of(path), of_kernel;
  CUfunction kernel;
  cuModuleGetFunction(&kernel, module, "scale");
  const char* name;
  size_t count, offset, bytes;
  int clusters = 0, grid, block;
  say(cuFuncGetName(&name, kernel));
  say(name);
  say(cuFuncGetModule(&of_kernel, kernel));
  say(of_kernel == module);
  cuFuncGetParamCount(kernel, &count), cuFuncGetParamInfo(kernel, 1, &offset, &bytes);
  say(count);
  say(offset);
  say(bytes);
  say(cuFuncGetParamInfo(kernel, 3, &offset, &bytes));
  CUlaunchAttribute pairs{};
  pairs.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  pairs.value.clusterDim.x = 2, pairs.value.clusterDim.y = pairs.value.clusterDim.z = 1;
  CUlaunchConfig config{};
  config.gridDimX = 2, config.gridDimY = config.gridDimZ = 1, config.attrs = &pairs,
  config.numAttrs = 1;
  config.blockDimX = 1024, config.blockDimY = config.blockDimZ = 1;
  say(cuOccupancyMaxActiveClusters(&clusters, kernel, &config));
  say(clusters);
  cuOccupancyMaxPotentialBlockSize(&grid, &block, kernel, nullptr, 0, 0);
  say(grid);
  say(block);
  CUdeviceptr data, start;
  CUmemorytype type;
  bool managed = true;
  cuMemAlloc(&data, 256);
  say(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, data + 8));
  cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, data + 8);
  cuMemGetAddressRange(&start, &bytes, data + 8);
  say(type);
  say(managed);
  say(start == data);
  say(bytes);
  say(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 64));
  unsigned char rows[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}}, back[2][2];
  cuMemsetD2D8(data, 16, 9, 4, 2);
  CUDA_MEMCPY2D in{}, out{};
  in.srcMemoryType = out.dstMemoryType = CU_MEMORYTYPE_HOST, in.srcHost = rows, out.dstHost = back;
  in.dstMemoryType = out.srcMemoryType = CU_MEMORYTYPE_DEVICE, in.dstDevice = out.srcDevice = data;
  in.srcPitch = 4, in.dstPitch = out.srcPitch = 16, out.dstPitch = 2;
  in.WidthInBytes = 3, out.WidthInBytes = 2, in.Height = out.Height = 2, out.srcXInBytes = 2;
  say(cuMemcpy2D(&in));
  say(cuMemcpy2D(&out));
  say(back[0][0]);
  say(back[0][1]);
  say(back[1][0]);
  say(back[1][1]);
  return 0;
}

static int fails(const char*) { return 7; }

static int captures(const char*) {
  std::printf("%d\n", cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal));
  return 0;
}

// Memory of malloc: locked, it is copied as before; it has no address for a kernel.
static int registers(const char*) {
  static char bytes[4096];
  void* there;
  say(cudaHostRegister(bytes, sizeof bytes, cudaHostRegisterDefault));
  say(cudaHostGetDevicePointer(&there, bytes, 0));
  say(cudaHostUnregister(bytes));
  say(cudaHostRegister(bytes, sizeof bytes, cudaHostRegisterMapped));
  say(cudaHostRegister(nullptr, sizeof bytes, cudaHostRegisterDefault));
  return 0;
}

int main(int, char** words) {
  const struct {
    const char* name;
    int (*act)(const char*);
  } acts[] = {{"scale", scale},       {"symbol", symbol},       {"properties", properties},
              {"memory", memory},     {"maps", maps},           {"captures", captures},
              {"fails", fails},       {"nothing", nothing},     {"forks", forks},
              {"shapes", shapes},     {"recycles", recycles},   {"leaves", leaves},
              {"nests", nests},       {"touches", touches},     {"interrupts", interrupts},
              {"defers", defers},     {"outlived", outlived},   {"answers", answers},
              {"shares", shares},     {"registers", registers}, {"looks_up", looks_up},
              {"contexts", contexts}, {"enquires", enquires}};
  for (const auto& act : acts)
    if (!std::strcmp(act.name, words[1])) return act.act(words[2]);
  return 99;
}
