// The CUDA driver API: contexts. They are names: all share one memory, and the primary one is
// current where no other is. A thread has a stack of them; a stream belongs to the one that was
// current when it was made.
#include <mutex>
#include <set>
#include <vector>

#include "wire.hpp"

using namespace standin;

namespace {

CUresult status_of(int status) { return static_cast<CUresult>(status); }
template <class T, class U>
CUresult gave(T* to, const U& value) {
  return status_of(give(to, value));
}

CUcontext named(uintptr_t number) { return reinterpret_cast<CUcontext>(number); }
const CUcontext PRIMARY = named(1);

// The contexts that live.
struct Contexts {
  std::mutex lock;
  uintptr_t last = 1;
  std::set<CUcontext> live = {PRIMARY};
  unsigned flags = 0;
};
Contexts& contexts() {
  static auto* one = new Contexts;
  return *one;
}
thread_local std::vector<CUcontext> stack;

bool lives(CUcontext context) {
  const std::lock_guard<std::mutex> guard(contexts().lock);
  return contexts().live.count(context);
}
CUresult no_context() {
  return status_of(complain("no context has this handle", CUDA_ERROR_INVALID_CONTEXT));
}

// Make a context, which is current from now on.
CUresult make(CUcontext* context, CUdevice ordinal) {
  if (ordinal) return CUDA_ERROR_INVALID_DEVICE;
  const std::lock_guard<std::mutex> guard(contexts().lock);
  const CUcontext made = named(++contexts().last);
  if (const int status = give(context, made)) return status_of(status);
  contexts().live.insert(made);
  return stack.push_back(made), CUDA_SUCCESS;
}

}  // namespace

CUcontext standin::current_context() { return stack.empty() ? PRIMARY : stack.back(); }

extern "C" {

#undef cuCtxCreate
CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice ordinal) {
  return make(context, ordinal);
}
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int, unsigned, CUdevice ordinal) {
  return make(context, ordinal);
}
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams*, unsigned, CUdevice ordinal) {
  return make(context, ordinal);
}
// What was allocated while it was current stays: a GPU frees it.
CUresult cuCtxDestroy(CUcontext context) {
  if (const int status = settle(nullptr)) return status_of(status);
  const std::lock_guard<std::mutex> guard(contexts().lock);
  if (context == PRIMARY || !contexts().live.erase(context)) return no_context();
  if (!stack.empty() && stack.back() == context) stack.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) { return gave(context, current_context()); }
CUresult cuCtxSetCurrent(CUcontext context) {
  if (context && !lives(context)) return no_context();
  if (!stack.empty()) stack.pop_back();
  if (context) stack.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
  if (!lives(context)) return no_context();
  return stack.push_back(context), CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) {
  const CUcontext top = current_context();
  if (!stack.empty()) stack.pop_back();
  return context ? gave(context, top) : CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* ordinal) { return gave(ordinal, 0); }
CUresult cuCtxGetDevice_v2(CUdevice* ordinal, CUcontext context) {
  return context && !lives(context) ? no_context() : gave(ordinal, 0);
}
CUresult cuCtxSynchronize() { return status_of(settle(nullptr)); }
CUresult cuCtxSynchronize_v2(CUcontext context) {
  return context && !lives(context) ? no_context() : status_of(settle(nullptr));
}
CUresult cuCtxGetId(CUcontext context, unsigned long long* number) {
  if (context && !lives(context)) return no_context();
  return gave(number, reinterpret_cast<uintptr_t>(context ? context : current_context()));
}
CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  return context && !lives(context) ? no_context() : gave(version, 3020u);
}
CUresult cuCtxGetFlags(unsigned* flags) { return gave(flags, contexts().flags); }
CUresult cuCtxSetFlags(unsigned flags) { return contexts().flags = flags, CUDA_SUCCESS; }
CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  return status_of(cudaDeviceGetLimit(value, static_cast<cudaLimit>(limit)));
}
CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  return status_of(cudaDeviceSetLimit(static_cast<cudaLimit>(limit), value));
}
CUresult cuCtxGetStreamPriorityRange(int* least, int* most) {
  return status_of(cudaDeviceGetStreamPriorityRange(least, most));
}
CUresult cuCtxResetPersistingL2Cache() { return CUDA_SUCCESS; }
CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  return gave(config, CU_FUNC_CACHE_PREFER_NONE);
}
CUresult cuCtxSetCacheConfig(CUfunc_cache) { return CUDA_SUCCESS; }
CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  return gave(config, CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE);
}
CUresult cuCtxSetSharedMemConfig(CUsharedconfig) { return CUDA_SUCCESS; }

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice ordinal) {
  return ordinal ? CUDA_ERROR_INVALID_DEVICE : gave(context, PRIMARY);
}
CUresult cuDevicePrimaryCtxRelease(CUdevice ordinal) {
  return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice ordinal, unsigned flags) {
  return ordinal ? CUDA_ERROR_INVALID_DEVICE : cuCtxSetFlags(flags);
}
CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
  if (ordinal) return CUDA_ERROR_INVALID_DEVICE;
  const CUresult status = gave(flags, contexts().flags);
  return status ? status : gave(active, 1);
}
CUresult cuDevicePrimaryCtxReset(CUdevice ordinal) {
  return ordinal ? CUDA_ERROR_INVALID_DEVICE : status_of(cudaDeviceReset());
}

}  // extern "C"
