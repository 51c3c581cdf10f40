// The CUDA driver: libcuda, opened when a program connects. No CUDA header is needed: what is used
// of the driver API is declared here. Every error names the call, the code and the driver's text.
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"
#include "until_done.hpp"
#include "variant.hpp"

// The driver's own opaque structs, so that a `cudaStream_t` or `CUstream` can be given as it is.
struct CUstream_st;
struct CUctx_st;
struct CUlib_st;
struct CUkern_st;
struct CUfunc_st;

namespace kernelpack {

using Stream = CUstream_st*;

namespace detail {

// CUDA driver API, CUresult.
constexpr int kInvalidDevice = 101, kDeinitialized = 4, kNotFound = 500;
constexpr int kInvalidClusterSize = 912;  // the kernel can never have so many CTAs in a cluster
constexpr int kFirstCaptureError = 900, kCaptureImplicit = 906, kLastCaptureError = 908;
// CUdevice_attribute, CUfunction_attribute, CUlaunchAttributeID.
constexpr int kSmCount = 16, kMajorNumber = 75, kMinorNumber = 76;
constexpr int kMaxDynamicSharedBytes = 8, kNonPortableCluster = 14;
constexpr std::uint32_t kClusterDimension = 4, kProgrammaticStream = 6;

/// CUlaunchAttribute: a number, then a union of 64 bytes.
struct LaunchAttribute {
  std::uint32_t id, padding, value[16];
};

/// CUlaunchConfig: grid and block in x, y, z; dynamic shared memory in bytes.
struct LaunchConfig {
  std::uint32_t grid[3], block[3], shared_bytes;
  Stream stream;
  LaunchAttribute* attributes;
  std::uint32_t attribute_count;
};
static_assert(sizeof(LaunchAttribute) == 72 && sizeof(LaunchConfig) == 56, "libcuda's ABI");

/// The descriptor that the TMA unit reads.
struct alignas(kTensorMapAlign) EncodedMap {
  std::uint8_t opaque[kTensorMapBytes];
};

/// The functions of libcuda that a launch needs, as it exports them.
struct Api {
  int (*cuInit)(unsigned flags);
  int (*cuDriverGetVersion)(int* version);
  int (*cuGetErrorName)(int code, const char** text);
  int (*cuGetErrorString)(int code, const char** text);
  int (*cuDeviceGetCount)(int* count);
  int (*cuDeviceGetName)(char* name, int size, int device);
  int (*cuDeviceGetAttribute)(int* value, int attribute, int device);
  int (*cuDevicePrimaryCtxRetain)(CUctx_st** context, int device);
  int (*cuCtxPushCurrent)(CUctx_st* context);
  int (*cuCtxPopCurrent)(CUctx_st** context);
  int (*cuCtxGetCurrent)(CUctx_st** context);
  int (*cuCtxGetDevice)(int* device);
  int (*cuStreamGetCtx)(Stream stream, CUctx_st** context);
  int (*cuStreamIsCapturing)(Stream stream, int* status);
  int (*cuLibraryLoadData)(CUlib_st** library, const void* image, int* jit_options,
                           void** jit_values, unsigned jit_count, int* options, void** values,
                           unsigned count);
  int (*cuLibraryUnload)(CUlib_st* library);
  int (*cuLibraryGetKernel)(CUkern_st** kernel, CUlib_st* library, const char* name);
  int (*cuKernelGetFunction)(CUfunc_st** function, CUkern_st* kernel);
  int (*cuKernelSetAttribute)(int attribute, int value, CUkern_st* kernel, int device);
  int (*cuOccupancyMaxActiveClusters)(int* count, CUfunc_st* function, const LaunchConfig* config);
  int (*cuTensorMapEncodeTiled)(EncodedMap* map, std::uint32_t element, std::uint32_t rank,
                                void* address, const std::uint64_t* dims,
                                const std::uint64_t* strides_bytes, const std::uint32_t* box,
                                const std::uint32_t* element_strides, std::uint32_t interleave,
                                std::uint32_t swizzle, std::uint32_t promotion, std::uint32_t fill);
  int (*cuLaunchKernelEx)(const LaunchConfig* config, CUkern_st* kernel, void** parameters,
                          void** extra);
};

inline Error driver_error(std::string what, std::string where, std::string hint = {}) {
  return {ErrorKind::kDriver, std::move(what), std::move(where), std::move(hint)};
}

}  // namespace detail

/// A GPU as the driver describes it.
struct Device {
  int ordinal;
  std::string name;
  Capability capability;
  int sm_count;

  std::string text() const {
    return "device " + std::to_string(ordinal) + " (" + name + ", compute capability " +
           capability.text() + ")";
  }
};

/// libcuda, initialised. Shared by threads; of no use after a fork.
class Driver {
public:
  /// Open and initialise libcuda.
  static Result<std::unique_ptr<Driver>> connect(const std::string& library = "libcuda.so.1") {
    std::unique_ptr<Driver> driver(new Driver);
    KERNELPACK_CHECK(driver->open(library));
    KERNELPACK_CHECK(driver->called("cuInit", driver->api.cuInit(0)));
    KERNELPACK_CHECK(
        driver->called("cuDriverGetVersion", driver->api.cuDriverGetVersion(&driver->version_)));
    KERNELPACK_CHECK(driver->find_devices());
    return driver;
  }
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  detail::Api api{};

  /// 1000 * major + 10 * minor.
  int version() const { return version_; }
  std::string text() const {
    return "driver of CUDA " + std::to_string(version_ / 1000) + "." +
           std::to_string(version_ % 1000 / 10);
  }
  const std::vector<Device>& devices() const { return devices_; }

  Result<const Device*> device(int ordinal) const {
    if (0 <= ordinal && ordinal < static_cast<int>(devices_.size())) return &devices_[ordinal];
    return error("cuDeviceGetName", detail::kInvalidDevice);
  }

  /// What a call answered: nothing, or its error.
  Status called(const char* call, int code) const {
    if (code) return error(call, code);
    return {};
  }

  /// The error of a call that answered `code`; a capture error where a capture forbids the call.
  Error error(const char* call, int code) const {
    const std::string what = words(api.cuGetErrorName, code) + " (" + std::to_string(code) +
                             "): " + words(api.cuGetErrorString, code);
    if (detail::kFirstCaptureError <= code && code <= detail::kLastCaptureError)
      return {ErrorKind::kCapture, what, call,
              "call `library.preload(...)` before the capture begins"};
    return detail::driver_error(what, call);
  }

  /// Refuse to work in a child of the process that connected: CUDA does not survive a fork.
  Status check_process() const {
    if (::getpid() == process_) return {};
    return Error{ErrorKind::kFork,
                 "process " + std::to_string(process_) +
                     " connected to the driver, this one was forked from it",
                 {},
                 "load the bundle after the fork, or start processes with `spawn`"};
  }

  /// The primary context of a device, which frameworks share; retained once, never released.
  Result<CUctx_st*> context(int ordinal) const {
    KERNELPACK_CHECK(device(ordinal));
    Context& held = contexts_[ordinal];
    KERNELPACK_CHECK(held.once.run([&] {
      return called("cuDevicePrimaryCtxRetain",
                    api.cuDevicePrimaryCtxRetain(&held.handle, ordinal));
    }));
    return held.handle;
  }

  /// Do something with a device current for the calling thread; what was current is put back.
  template <class Action>
  Status with_current(int ordinal, Action action) const {
    KERNELPACK_TRY(handle, context(ordinal));
    return with_current(handle, action);
  }
  template <class Action>
  Status with_current(CUctx_st* context, Action action) const {
    KERNELPACK_CHECK(called("cuCtxPushCurrent", api.cuCtxPushCurrent(context)));
    Status done = action();
    CUctx_st* popped;
    const int code = api.cuCtxPopCurrent(&popped);
    return done ? called("cuCtxPopCurrent", code) : done;  // the first error is reported
  }

  /// Whether a stream belongs to no device but means the context that is current.
  static bool is_default(Stream stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

  /// Refuse a stream that belongs to another device than `ordinal`.
  Status check_stream(Stream stream, int ordinal) const {
    if (is_default(stream)) return {};
    CUctx_st* owner_context;
    KERNELPACK_CHECK(called("cuStreamGetCtx", api.cuStreamGetCtx(stream, &owner_context)));
    int owner = 0;
    KERNELPACK_CHECK(with_current(
        owner_context, [&] { return called("cuCtxGetDevice", api.cuCtxGetDevice(&owner)); }));
    if (owner == ordinal) return {};
    return Error{ErrorKind::kProblem,
                 "belongs to device " + std::to_string(owner) +
                     ", but the arguments are on device " + std::to_string(ordinal),
                 "`stream`",
                 {}};
  }

  /// Whether work given to a stream is recorded into a graph, or refused because of one.
  Result<bool> is_capturing(Stream stream, int ordinal) const {
    int code = 0, status = 0;
    KERNELPACK_CHECK(with_current(ordinal, [&] {
      code = api.cuStreamIsCapturing(stream, &status);
      return Status();
    }));
    if (code && code != detail::kCaptureImplicit) return error("cuStreamIsCapturing", code);
    return code || status;
  }

private:
  struct Context {
    detail::UntilDone once;
    CUctx_st* handle = nullptr;
  };

  Driver() = default;

  Status open(const std::string& library) {
    void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) return detail::driver_error(::dlerror(), "dlopen", "install an NVIDIA driver");
    const char* hint = "install a newer NVIDIA driver";
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(handle, symbol));
      return function ? Status()
                      : detail::driver_error(std::string("has no ") + symbol, library, hint);
    };
#define KERNELPACK_FIND(call) KERNELPACK_CHECK(find(api.call, #call))
#define KERNELPACK_FIND_AS(call, symbol) KERNELPACK_CHECK(find(api.call, #symbol))
    KERNELPACK_FIND(cuInit);
    KERNELPACK_FIND(cuDriverGetVersion);
    KERNELPACK_FIND(cuGetErrorName);
    KERNELPACK_FIND(cuGetErrorString);
    KERNELPACK_FIND(cuDeviceGetCount);
    KERNELPACK_FIND(cuDeviceGetName);
    KERNELPACK_FIND(cuDeviceGetAttribute);
    KERNELPACK_FIND(cuDevicePrimaryCtxRetain);
    KERNELPACK_FIND_AS(cuCtxPushCurrent, cuCtxPushCurrent_v2);
    KERNELPACK_FIND_AS(cuCtxPopCurrent, cuCtxPopCurrent_v2);
    KERNELPACK_FIND(cuCtxGetCurrent);
    KERNELPACK_FIND(cuCtxGetDevice);
    KERNELPACK_FIND(cuStreamGetCtx);
    KERNELPACK_FIND(cuStreamIsCapturing);
    KERNELPACK_FIND(cuLibraryLoadData);
    KERNELPACK_FIND(cuLibraryUnload);
    KERNELPACK_FIND(cuLibraryGetKernel);
    KERNELPACK_FIND(cuKernelGetFunction);
    KERNELPACK_FIND(cuKernelSetAttribute);
    KERNELPACK_FIND(cuOccupancyMaxActiveClusters);
    KERNELPACK_FIND(cuTensorMapEncodeTiled);
    KERNELPACK_FIND(cuLaunchKernelEx);
#undef KERNELPACK_FIND
#undef KERNELPACK_FIND_AS
    return {};
  }

  Status find_devices() {
    int count = 0;
    KERNELPACK_CHECK(called("cuDeviceGetCount", api.cuDeviceGetCount(&count)));
    for (int ordinal = 0; ordinal < count; ++ordinal) {
      char name[256] = {};
      Device device{ordinal, {}, {}, 0};
      const auto ask = [&](int attribute, int* value) {
        return called("cuDeviceGetAttribute", api.cuDeviceGetAttribute(value, attribute, ordinal));
      };
      KERNELPACK_CHECK(
          called("cuDeviceGetName", api.cuDeviceGetName(name, sizeof name - 1, ordinal)));
      KERNELPACK_CHECK(ask(detail::kMajorNumber, &device.capability.major_number));
      KERNELPACK_CHECK(ask(detail::kMinorNumber, &device.capability.minor_number));
      KERNELPACK_CHECK(ask(detail::kSmCount, &device.sm_count));
      device.name = name;
      devices_.push_back(std::move(device));
    }
    contexts_.reset(new Context[devices_.size()]);
    return {};
  }

  static std::string words(int (*ask)(int, const char**), int code) {
    const char* text = nullptr;
    return ask(code, &text) || !text ? "unknown error" : text;
  }

  const pid_t process_ = ::getpid();
  int version_ = 0;
  std::vector<Device> devices_;
  std::unique_ptr<Context[]> contexts_;
};

}  // namespace kernelpack
