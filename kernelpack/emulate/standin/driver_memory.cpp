// The CUDA driver API: memory, streams, events; most of it is the runtime's.
#include "wire.hpp"

using namespace standin;

namespace {

CUresult status_of(int status) { return static_cast<CUresult>(status); }
void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }

// Where a copy of rows begins on one of its sides; null where that is an array, which is not
// modelled.
const char* side(CUmemorytype type, const void* host, CUdeviceptr there, size_t x, size_t y,
                 size_t pitch) {
  const char* start = type == CU_MEMORYTYPE_HOST    ? static_cast<const char*>(host)
                      : type == CU_MEMORYTYPE_ARRAY ? nullptr
                                                    : static_cast<const char*>(pointer(there));
  return start ? start + y * pitch + x : nullptr;
}

CUresult copy_rows(const CUDA_MEMCPY2D* what, CUstream stream) {
  if (!what) return status_of(complain("a copy by a null pointer"));
  if (what->srcMemoryType == CU_MEMORYTYPE_ARRAY || what->dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return status_of(refuse("cuMemcpy2D of an array"));
  const size_t to_pitch = what->dstPitch ? what->dstPitch : what->WidthInBytes;
  const size_t from_pitch = what->srcPitch ? what->srcPitch : what->WidthInBytes;
  const char* to = side(what->dstMemoryType, what->dstHost, what->dstDevice, what->dstXInBytes,
                        what->dstY, to_pitch);
  const char* from = side(what->srcMemoryType, what->srcHost, what->srcDevice, what->srcXInBytes,
                          what->srcY, from_pitch);
  return status_of(cudaMemcpy2DAsync(const_cast<char*>(to), to_pitch, from, from_pitch,
                                     what->WidthInBytes, what->Height, cudaMemcpyDefault, stream));
}

CUresult fill_rows(CUdeviceptr at, size_t pitch, uint32_t value, uint32_t width, size_t count,
                   size_t rows, CUstream stream) {
  int status = settle(stream);
  for (size_t row = 0; row < rows && !status; ++row)
    status = fill(pointer(at + row * pitch), value, width, count);
  return status_of(status);
}

}  // namespace

extern "C" {

CUresult cuMemAlloc(CUdeviceptr* address, size_t size) {
  return status_of(size ? allocate(reinterpret_cast<void**>(address), size, Kind::device)
                        : complain("memory of no bytes"));
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

CUresult cuMemHostRegister(void* address, size_t size, unsigned flags) {
  return status_of(cudaHostRegister(address, size, flags));
}
CUresult cuMemHostUnregister(void* address) { return status_of(cudaHostUnregister(address)); }
CUresult cuMemHostGetDevicePointer(CUdeviceptr* on_device, void* on_host, unsigned flags) {
  return status_of(cudaHostGetDevicePointer(reinterpret_cast<void**>(on_device), on_host, flags));
}
CUresult cuMemAllocPitch(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                         unsigned) {
  return status_of(cudaMallocPitch(reinterpret_cast<void**>(address), pitch, width, height));
}
CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* what, CUstream stream) {
  return copy_rows(what, stream);
}
CUresult cuMemcpy2D(const CUDA_MEMCPY2D* what) { return copy_rows(what, nullptr); }
CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* what) { return copy_rows(what, nullptr); }
#define ROWS_OF(BITS, TYPE)                                                                 \
  CUresult cuMemsetD2D##BITS##Async(CUdeviceptr at, size_t pitch, TYPE value, size_t width, \
                                    size_t rows, CUstream s) {                              \
    return fill_rows(at, pitch, value, BITS / 8, width, rows, s);                           \
  }                                                                                         \
  CUresult cuMemsetD2D##BITS(CUdeviceptr at, size_t pitch, TYPE value, size_t width,        \
                             size_t rows) {                                                 \
    return fill_rows(at, pitch, value, BITS / 8, width, rows, nullptr);                     \
  }
ROWS_OF(8, unsigned char)
ROWS_OF(16, unsigned short)
ROWS_OF(32, unsigned)
#undef ROWS_OF
// Hints: where managed memory lies makes no difference here.
CUresult cuMemAdvise_v2(CUdeviceptr, size_t, CUmem_advise, CUmemLocation) { return CUDA_SUCCESS; }
CUresult cuMemPrefetchAsync_v2(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream) {
  return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return status_of(cudaStreamCreateWithPriority(stream, flags, priority));
}
CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}
CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return status_of(context_of(stream, context));
}
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green) *green = nullptr;
  return cuStreamGetCtx(stream, context);
}
CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return status_of(cudaStreamGetFlags(stream, flags));
}
CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return status_of(cudaStreamGetPriority(stream, priority));
}
CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return status_of(cudaStreamGetId(stream, id));
}
CUresult cuStreamGetDevice(CUstream stream, CUdevice* ordinal) {
  return status_of(cudaStreamGetDevice(stream, ordinal));
}
CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data,
                             unsigned flags) {
  return status_of(
      cudaStreamAddCallback(stream, reinterpret_cast<cudaStreamCallback_t>(callback), data, flags));
}
CUresult cuStreamDestroy(CUstream stream) { return status_of(cudaStreamDestroy(stream)); }
CUresult cuStreamSynchronize(CUstream stream) { return status_of(settle(stream)); }
CUresult cuStreamQuery(CUstream stream) { return status_of(cudaStreamQuery(stream)); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return status_of(cudaStreamWaitEvent(stream, event, flags));
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return status_of(
      cudaStreamIsCapturing(stream, reinterpret_cast<cudaStreamCaptureStatus*>(status)));
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return status_of(cudaLaunchHostFunc(stream, function, data));
}
CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return status_of(cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(event), flags));
}
CUresult cuEventDestroy(CUevent event) { return status_of(cudaEventDestroy(event)); }
CUresult cuEventRecord(CUevent event, CUstream stream) {
  return status_of(cudaEventRecord(event, stream));
}
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned) {
  return cuEventRecord(event, stream);
}
CUresult cuEventSynchronize(CUevent event) { return status_of(cudaEventSynchronize(event)); }
CUresult cuEventQuery(CUevent event) { return cuEventSynchronize(event); }
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return status_of(cudaEventElapsedTime(milliseconds, start, end));
}

CUresult cuProfilerStart() { return CUDA_SUCCESS; }
CUresult cuProfilerStop() { return CUDA_SUCCESS; }

}  // extern "C"
