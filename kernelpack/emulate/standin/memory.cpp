// The CUDA runtime API: memory. Every copy happens at once, which in-order streams allow.
#include <cstdint>

#include "runtime.hpp"

using namespace standin;

namespace {

int copy_rows(void* target, size_t target_pitch, const void* source, size_t source_pitch,
              size_t width, size_t rows, cudaMemcpyKind kind) {
  int status = 0;
  if (width > target_pitch || width > source_pitch)
    return complain(
        "a copy of rows of " + std::to_string(width) + " bytes, which are longer than a pitch",
        cudaErrorInvalidPitchValue);
  for (size_t row = 0; row < rows && !status; ++row)
    status = copy(static_cast<char*>(target) + row * target_pitch,
                  static_cast<const char*>(source) + row * source_pitch, width, kind);
  return status;
}

int copy_symbol(const void* symbol, size_t offset, void* host_target, const void* host_source,
                size_t size) {
  void* address = nullptr;
  size_t held = 0;
  if (!symbol_of(symbol, &address, &held)) return cudaErrorInvalidSymbol;
  if (offset > held || size > held - offset) return cudaErrorInvalidValue;
  char* at = static_cast<char*>(address) + offset;
  return host_source ? copy(at, host_source, size, cudaMemcpyDefault)
                     : copy(host_target, at, size, cudaMemcpyDefault);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, size_t size) {
  return told(allocate(address, size, Kind::device));
}
cudaError_t cudaMallocAsync(void** address, size_t size, cudaStream_t stream) {
  const int status = settle(stream);
  return status ? told(status) : cudaMalloc(address, size);
}
cudaError_t cudaMallocManaged(void** address, size_t size, unsigned) {
  return told(size ? allocate(address, size, Kind::managed)
                   : complain("managed memory of no bytes"));
}
cudaError_t cudaMallocPitch(void** address, size_t* pitch, size_t width, size_t height) {
  const size_t rounded = (width + 511) / 512 * 512;
  if (rounded < width || (rounded && height > SIZE_MAX / rounded))
    return told(cudaErrorMemoryAllocation);
  const int status = give(pitch, rounded);
  return told(status ? status : allocate(address, rounded * height, Kind::device));
}
cudaError_t cudaFree(void* address) {
  const int status = settle(nullptr);
  return told(status ? status : release(address));
}
cudaError_t cudaFreeAsync(void* address, cudaStream_t stream) {
  const int status = settle(stream);
  return told(status ? status : release(address));
}

// Pinned memory is reached by kernels at the same address, as unified addressing has it.
cudaError_t cudaHostAlloc(void** address, size_t size, unsigned) {
  return told(allocate(address, size, Kind::pinned));
}
#undef cudaMallocHost
cudaError_t cudaMallocHost(void** address, size_t size) { return cudaHostAlloc(address, size, 0); }
cudaError_t cudaFreeHost(void* address) {
  const int status = settle(nullptr);
  return told(status ? status : release(address, true));
}
cudaError_t cudaHostGetDevicePointer(void** on_device, void* on_host, unsigned) {
  if (held_at(on_host).kind == Kind::pinned) return told(give(on_device, on_host));
  return told(refuse("cudaHostGetDevicePointer of memory that cudaHostAlloc did not make"));
}
// What malloc made is copied as before; a kernel that is given its address goes out of bounds.
cudaError_t cudaHostRegister(void* address, size_t size, unsigned flags) {
  if (!address || !size) return told(complain("no memory to register"));
  return told(
      flags & cudaHostRegisterMapped ? refuse("cudaHostRegister with cudaHostRegisterMapped") : 0);
}
cudaError_t cudaHostUnregister(void* address) {
  return told(address ? 0 : complain("no memory to unregister"));
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t size, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const int status = settle(stream);
  return told(status ? status : copy(target, source, size, kind));
}
cudaError_t cudaMemcpy(void* target, const void* source, size_t size, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(target, source, size, kind, nullptr);
}
cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return cudaMemcpy2DAsync(target, target_pitch, source, source_pitch, width, height, kind,
                           nullptr);
}
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source,
                              size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  const int status = settle(stream);
  return told(status ? status
                     : copy_rows(target, target_pitch, source, source_pitch, width, height, kind));
}
cudaError_t cudaMemsetAsync(void* target, int value, size_t size, cudaStream_t stream) {
  const int status = settle(stream);
  return told(status ? status : fill(target, value, 1, size));
}
cudaError_t cudaMemset(void* target, int value, size_t size) {
  return cudaMemsetAsync(target, value, size, nullptr);
}
cudaError_t cudaMemset2DAsync(void* target, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  if (width > pitch)
    return told(
        complain("a fill of rows that are longer than their pitch", cudaErrorInvalidPitchValue));
  int status = settle(stream);
  for (size_t row = 0; row < height && !status; ++row)
    status = fill(static_cast<char*>(target) + row * pitch, value, 1, width);
  return told(status);
}
cudaError_t cudaMemset2D(void* target, size_t pitch, int value, size_t width, size_t height) {
  return cudaMemset2DAsync(target, pitch, value, width, height, nullptr);
}
// Hints: where managed memory lies makes no difference here.
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) {
  return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned,
                                 cudaStream_t stream) {
  return told(settle(stream));
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t size, size_t offset,
                               cudaMemcpyKind) {
  return told(copy_symbol(symbol, offset, nullptr, source, size));
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t size,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyToSymbol(symbol, source, size, offset, kind);
}
cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, size_t size, size_t offset,
                                 cudaMemcpyKind) {
  return told(copy_symbol(symbol, offset, target, nullptr, size));
}
cudaError_t cudaMemcpyFromSymbolAsync(void* target, const void* symbol, size_t size, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyFromSymbol(target, symbol, size, offset, kind);
}
cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  size_t size = 0;
  if (!address) return told(complain("a null pointer for a result"));
  return told(symbol_of(symbol, address, &size) ? cudaSuccess : cudaErrorInvalidSymbol);
}
cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  void* address = nullptr;
  if (!size) return told(complain("a null pointer for a result"));
  return told(symbol_of(symbol, &address, size) ? cudaSuccess : cudaErrorInvalidSymbol);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  const int status = give(free_bytes, device().memory_bytes - bytes_held());
  return told(status ? status : give(total_bytes, device().memory_bytes));
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  if (!attributes) return told(complain("a null pointer for a result"));
  std::memset(attributes, 0, sizeof *attributes);
  const Held held = held_at(address);
  if (!held.size) return attributes->device = cudaInvalidDeviceId, cudaSuccess;
  const auto here = const_cast<void*>(address);
  attributes->type = held.kind == Kind::device    ? cudaMemoryTypeDevice
                     : held.kind == Kind::managed ? cudaMemoryTypeManaged
                                                  : cudaMemoryTypeHost;
  attributes->devicePointer = here;
  attributes->hostPointer = held.kind == Kind::device ? nullptr : here;
  return cudaSuccess;
}

}  // extern "C"
