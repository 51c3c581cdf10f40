// The CUDA runtime API: memory. Every copy happens at once, which in-order streams allow.
#include <cstdint>
#include <cstdlib>

#include "runtime.hpp"

using namespace standin;

namespace {

int copy_rows(void* target, size_t target_pitch, const void* source, size_t source_pitch, size_t width, size_t rows,
              cudaMemcpyKind kind) {
  int status = 0;
  for (size_t row = 0; row < rows && !status; ++row)
    status = copy(static_cast<char*>(target) + row * target_pitch,
                  static_cast<const char*>(source) + row * source_pitch, width, kind);
  return status;
}

int copy_symbol(const void* symbol, size_t offset, void* host_target, const void* host_source, size_t size) {
  void* address = nullptr;
  size_t held = 0;
  if (!symbol_of(symbol, &address, &held)) return cudaErrorInvalidSymbol;
  if (offset > held || size > held - offset) return cudaErrorInvalidValue;
  char* at = static_cast<char*>(address) + offset;
  return host_source ? copy(at, host_source, size, cudaMemcpyDefault) : copy(host_target, at, size, cudaMemcpyDefault);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** address, size_t size) { return told(allocate(address, size, false)); }
cudaError_t cudaMallocAsync(void** address, size_t size, cudaStream_t) { return cudaMalloc(address, size); }
cudaError_t cudaMallocManaged(void** address, size_t size, unsigned) { return told(allocate(address, size, true)); }
cudaError_t cudaMallocPitch(void** address, size_t* pitch, size_t width, size_t height) {
  const size_t rounded = (width + 511) / 512 * 512;
  if (rounded < width || (rounded && height > SIZE_MAX / rounded)) return told(cudaErrorMemoryAllocation);
  const int status = give(pitch, rounded);
  return told(status ? status : allocate(address, rounded * height, false));
}
cudaError_t cudaFree(void* address) { return told(release(address)); }
cudaError_t cudaFreeAsync(void* address, cudaStream_t) { return cudaFree(address); }

cudaError_t cudaMallocHost(void** address, size_t size) {
  void* got = size > SIZE_MAX - 4095 ? nullptr : std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  return told(got ? give(address, got) : cudaErrorMemoryAllocation);
}
cudaError_t cudaHostAlloc(void** address, size_t size, unsigned) { return cudaMallocHost(address, size); }
cudaError_t cudaFreeHost(void* address) { return std::free(address), cudaSuccess; }
cudaError_t cudaHostRegister(void*, size_t, unsigned) { return cudaSuccess; }
cudaError_t cudaHostUnregister(void*) { return cudaSuccess; }

cudaError_t cudaMemcpy(void* target, const void* source, size_t size, cudaMemcpyKind kind) {
  return told(copy(target, source, size, kind));
}
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t size, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(target, source, size, kind);
}
cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return told(copy_rows(target, target_pitch, source, source_pitch, width, height, kind));
}
cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy2D(target, target_pitch, source, source_pitch, width, height, kind);
}
cudaError_t cudaMemset(void* target, int value, size_t size) { return told(fill(target, value, 1, size)); }
cudaError_t cudaMemsetAsync(void* target, int value, size_t size, cudaStream_t) {
  return cudaMemset(target, value, size);
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, size_t size, size_t offset, cudaMemcpyKind) {
  return told(copy_symbol(symbol, offset, nullptr, source, size));
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, size_t size, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpyToSymbol(symbol, source, size, offset, kind);
}
cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, size_t size, size_t offset, cudaMemcpyKind) {
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
  const int status = give(free_bytes, device().memory_bytes);
  return told(status ? status : give(total_bytes, device().memory_bytes));
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* address) {
  if (!attributes) return told(complain("a null pointer for a result"));
  std::memset(attributes, 0, sizeof *attributes);
  const bool held = device().holds(address);
  attributes->type = held ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
  attributes->devicePointer = held ? const_cast<void*>(address) : nullptr;
  attributes->hostPointer = held ? nullptr : const_cast<void*>(address);
  return cudaSuccess;
}

}  // extern "C"
