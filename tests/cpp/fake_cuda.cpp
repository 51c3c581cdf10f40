// A stand-in for libcuda.so: records calls, answers what a test sets, and refuses what the real one
// refuses: work without a current context, shared memory above 48 KiB that was not asked for.
//
// Machine code is text: the sizes of a kernel's parameters in bytes. A stream is a number whose
// hundreds are its device; an odd one is being captured. Two devices: an H100, then a B200.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace {

constexpr int kInvalidValue = 1, kInvalidContext = 201, kInvalidHandle = 400;
constexpr std::uint32_t kDefaultSharedBytes = 48 * 1024;

std::mutex mutex;
std::string log_lines;
std::map<std::string, int> answers;
std::map<std::uintptr_t, std::string> images;                               // of libraries
std::map<std::uintptr_t, std::tuple<std::uintptr_t, std::string>> kernels;  // library, name
std::map<std::tuple<std::uintptr_t, int, int>, int> attributes;             // of kernel, device
std::uintptr_t next_handle = 0x5000;
std::uint32_t gpc = 0;  // multiprocessors of a GPC; 0: all of a device are one
thread_local std::vector<std::uintptr_t> contexts;
std::atomic<int> calls_left{-1}, fail_code{0};  // calls before one that fails; the code it gives
std::atomic<const char*> failed{""};            // that call

int answer(const char* call) {
  if (calls_left-- == 0) return failed = call, fail_code;
  const auto found = answers.find(call);
  return found == answers.end() ? 0 : found->second;
}

/// Gives up a call that a test makes fail.
#define ANSWER(call) \
  if (const int code = answer(call)) return code

template <class... Parts>
void note(const Parts&... parts) {
  std::ostringstream line;
  (line << ... << parts);
  log_lines += line.str() + "\n";
}

std::string numbers(const std::uint32_t* values, int count) {
  std::ostringstream text;
  for (int i = 0; i < count; ++i) text << (i ? "," : "") << values[i];
  return text.str();
}

std::string hex(const void* bytes, std::size_t size) {
  std::string text;
  char pair[3];
  for (std::size_t i = 0; i < size; ++i) {
    std::snprintf(pair, sizeof pair, "%02x", static_cast<const std::uint8_t*>(bytes)[i]);
    text += pair;
  }
  return text;
}

int device_of(std::uintptr_t stream) { return static_cast<int>(stream / 0x100); }
bool is_default(std::uintptr_t stream) { return stream <= 2; }

struct Attribute {
  std::uint32_t id, padding, value[16];
};
struct Config {
  std::uint32_t grid[3], block[3], shared_bytes;
  std::uintptr_t stream;
  const Attribute* attributes;
  std::uint32_t attribute_count;
};

}  // namespace

extern "C" {

// What a test asks of the stand-in.

/// The calls since the last time this was asked, a line each.
void fake_take_log(char* text, std::size_t size) {
  const std::lock_guard lock(mutex);
  std::snprintf(text, size, "%s", log_lines.c_str());
  log_lines.clear();
}

/// What a call answers from now on.
void fake_answer(const char* call, int code) {
  const std::lock_guard lock(mutex);
  answers[call] = code;
}

/// One call fails: the first of those from now on, after so many others.
void fake_fail(int others, int code) { fail_code = code, failed = "", calls_left = others; }

/// The call that failed, and how many contexts the thread has.
void fake_state(const char** call, int* stack) {
  *call = failed, *stack = static_cast<int>(contexts.size());
}

/// Multiprocessors of a GPC from now on; a CTA takes one, and a cluster lies in a GPC.
void fake_gpc(int multiprocessors) {
  const std::lock_guard lock(mutex);
  gpc = static_cast<std::uint32_t>(multiprocessors);
}

// What a program calls.

int cuInit(unsigned) { return answer("cuInit"); }
int cuDriverGetVersion(int* version) {
  ANSWER("cuDriverGetVersion");
  return *version = 13000, 0;
}
int cuGetErrorName(int code, const char** text) {
  *text = code == kInvalidContext ? "CUDA_ERROR_INVALID_CONTEXT" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int code, const char** text) {
  if (code == 999) return kInvalidValue;
  *text = "text of the error";
  return 0;
}
int cuDeviceGetCount(int* count) {
  ANSWER("cuDeviceGetCount");
  return *count = 2, 0;
}
int cuDeviceGetName(char* name, int size, int device) {
  ANSWER("cuDeviceGetName");
  return std::snprintf(name, size, device ? "NVIDIA B200" : "NVIDIA H100"), 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  ANSWER("cuDeviceGetAttribute");
  *value = attribute == 16 ? (device ? 148 : 132) : attribute == 75 ? (device ? 10 : 9) : 0;
  return 0;
}
int cuDevicePrimaryCtxRetain(std::uintptr_t* context, int device) {
  ANSWER("cuDevicePrimaryCtxRetain");
  return *context = 0xC000 + device, 0;
}
int cuCtxPushCurrent_v2(std::uintptr_t context) {
  ANSWER("cuCtxPushCurrent");
  return contexts.push_back(context), 0;
}
int cuCtxPopCurrent_v2(std::uintptr_t* context) {
  ANSWER("cuCtxPopCurrent");
  if (contexts.empty()) return kInvalidContext;
  *context = contexts.back();
  return contexts.pop_back(), 0;
}
int cuCtxGetCurrent(std::uintptr_t* context) {
  ANSWER("cuCtxGetCurrent");
  return *context = contexts.empty() ? 0 : contexts.back(), 0;
}
int cuCtxGetDevice(int* device) {
  ANSWER("cuCtxGetDevice");
  if (contexts.empty()) return kInvalidContext;
  return *device = static_cast<int>(contexts.back() - 0xC000), 0;
}
int cuStreamGetCtx(std::uintptr_t stream, std::uintptr_t* context) {
  ANSWER("cuStreamGetCtx");
  return *context = 0xC000 + device_of(stream), 0;
}
int cuStreamIsCapturing(std::uintptr_t stream, int* status) {
  ANSWER("cuStreamIsCapturing");
  if (contexts.empty()) return kInvalidContext;
  return *status = !is_default(stream) && stream % 2, 0;
}

int cuLibraryLoadData(std::uintptr_t* library, const char* image, void*, void*, unsigned, void*,
                      void*, unsigned) {
  const std::lock_guard lock(mutex);
  *library = next_handle += 16;
  images[*library] = image;
  note("load ", image);
  return answer("cuLibraryLoadData");
}
int cuLibraryUnload(std::uintptr_t library) {
  const std::lock_guard lock(mutex);
  note("unload");
  ANSWER("cuLibraryUnload");
  return images.erase(library) ? 0 : kInvalidHandle;
}
int cuLibraryGetKernel(std::uintptr_t* kernel, std::uintptr_t library, const char* name) {
  const std::lock_guard lock(mutex);
  *kernel = next_handle += 16;
  kernels[*kernel] = {library, name};
  return answer("cuLibraryGetKernel");
}
int cuKernelGetFunction(std::uintptr_t* function, std::uintptr_t kernel) {
  ANSWER("cuKernelGetFunction");
  return *function = kernel + 1, contexts.empty() ? kInvalidContext : 0;
}
int cuKernelSetAttribute(int attribute, int value, std::uintptr_t kernel, int device) {
  ANSWER("cuKernelSetAttribute");
  const std::lock_guard lock(mutex);
  attributes[{kernel, device, attribute}] = value;
  note("attribute ", attribute, " ", value, " on ", device);
  return 0;
}

int cuOccupancyMaxActiveClusters(int* count, std::uintptr_t function, const Config* config) {
  const std::lock_guard lock(mutex);
  if (contexts.empty()) return kInvalidContext;
  if (!kernels.count(function - 1)) return kInvalidHandle;
  std::uint32_t ctas = 1;
  for (std::uint32_t i = 0; i < config->attribute_count; ++i)
    if (config->attributes[i].id == 4)
      for (int side = 0; side < 3; ++side) ctas *= config->attributes[i].value[side];
  const int device = static_cast<int>(contexts.back() - 0xC000);
  note("clusters of ", ctas, ": ", config->block[0], " threads, ", config->shared_bytes, " on ",
       device);
  const std::uint32_t all = device ? 148 : 132, each = gpc ? gpc : all;
  *count = static_cast<int>(all / each * (each / ctas));
  return answer("cuOccupancyMaxActiveClusters");
}

/// The descriptor holds what was asked: address, codes, dims, strides, box and steps.
int cuTensorMapEncodeTiled(std::uint64_t* map, std::uint32_t element, std::uint32_t rank,
                           std::uint64_t address, const std::uint64_t* dims,
                           const std::uint64_t* strides, const std::uint32_t* box,
                           const std::uint32_t* steps, std::uint32_t interleave,
                           std::uint32_t swizzle, std::uint32_t promotion, std::uint32_t fill) {
  ANSWER("cuTensorMapEncodeTiled");
  if (contexts.empty()) return kInvalidContext;
  if (reinterpret_cast<std::uintptr_t>(map) % 64) return kInvalidValue;
  std::memset(map, 0, 128);
  map[0] = address;
  const std::uint64_t codes[] = {rank, element, interleave, swizzle, promotion, fill};
  for (int i = 0; i < 6; ++i) map[1] |= codes[i] << 8 * i;
  for (std::uint32_t i = 0; i < rank; ++i) {
    map[2 + i] = dims[i];
    if (i + 1 < rank) map[7 + i] = strides[i];
    map[11] |= std::uint64_t{box[i]} << 12 * i;
    map[12] |= std::uint64_t{steps[i]} << 8 * i;
  }
  return 0;
}

int cuLaunchKernelEx(const Config* config, std::uintptr_t kernel, void** parameters, void**) {
  const std::lock_guard lock(mutex);
  if (const int code = answer("cuLaunchKernelEx")) return code;
  if (is_default(config->stream) && contexts.empty()) return kInvalidContext;
  const int device = is_default(config->stream) ? static_cast<int>(contexts.back() - 0xC000)
                                                : device_of(config->stream);
  const auto& [library, name] = kernels[kernel];
  if (!images.count(library)) return kInvalidHandle;
  const auto granted = attributes.find({kernel, device, 8});
  const std::uint32_t most = granted == attributes.end()
                                 ? kDefaultSharedBytes
                                 : static_cast<std::uint32_t>(granted->second);
  if (config->shared_bytes > most) return kInvalidValue;
  std::string cluster = "1,1,1", programmatic = "0";
  for (std::uint32_t i = 0; i < config->attribute_count; ++i) {
    if (config->attributes[i].id == 4) cluster = numbers(config->attributes[i].value, 3);
    if (config->attributes[i].id == 6) programmatic = numbers(config->attributes[i].value, 1);
  }
  std::ostringstream bytes;
  std::istringstream sizes(images[library]);
  for (std::size_t size = 0, place = 0; sizes >> size; ++place)
    bytes << " " << hex(parameters[place], size);
  note("launch ", name, " ", device, " ", config->stream, " ", numbers(config->grid, 3), " ",
       numbers(config->block, 3), " ", cluster, " ", config->shared_bytes, " ", programmatic,
       bytes.str());
  return 0;
}

}  // extern "C"
