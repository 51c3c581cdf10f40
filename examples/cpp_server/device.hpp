// Device memory and streams. A server has its own; the loader needs neither.
#pragma once

#include <dlfcn.h>

#include <kernelpack/loader.hpp>
#include <string>
#include <utility>

namespace server {

/// A function of libcuda, which the loader has opened.
template <class Function>
Function cuda(const char* symbol) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(library, symbol));
}

/// Ends the program where the driver refuses what this example cannot do without.
inline void require(int code, const char* call) {
  if (!code) return;
  std::fprintf(stderr, "%s: error %d\n", call, code);
  std::exit(1);
}

class Memory {
public:
  explicit Memory(std::size_t size) {
    require(cuda<int (*)(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&address_, size),
            "cuMemAlloc");
  }
  Memory(Memory&& other) noexcept : address_(std::exchange(other.address_, 0)) {}
  Memory& operator=(Memory&&) = delete;
  ~Memory() {
    if (address_) cuda<int (*)(std::uint64_t)>("cuMemFree_v2")(address_);
  }

  std::uint64_t address() const { return address_; }

  void write(const void* from, std::size_t size, kernelpack::Stream stream) {
    using Copy = int (*)(std::uint64_t, const void*, std::size_t, kernelpack::Stream);
    require(cuda<Copy>("cuMemcpyHtoDAsync_v2")(address_, from, size, stream), "cuMemcpyHtoDAsync");
  }
  void read(void* to, std::size_t size, kernelpack::Stream stream) const {
    using Copy = int (*)(void*, std::uint64_t, std::size_t, kernelpack::Stream);
    require(cuda<Copy>("cuMemcpyDtoHAsync_v2")(to, address_, size, stream), "cuMemcpyDtoHAsync");
  }

private:
  std::uint64_t address_ = 0;
};

class OwnStream {
public:
  OwnStream() {
    constexpr unsigned non_blocking = 1;
    require(cuda<int (*)(kernelpack::Stream*, unsigned)>("cuStreamCreate")(&stream_, non_blocking),
            "cuStreamCreate");
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  ~OwnStream() { cuda<int (*)(kernelpack::Stream)>("cuStreamDestroy_v2")(stream_); }

  operator kernelpack::Stream() const { return stream_; }
  void wait() const {
    require(cuda<int (*)(kernelpack::Stream)>("cuStreamSynchronize")(stream_),
            "cuStreamSynchronize");
  }

private:
  kernelpack::Stream stream_ = nullptr;
};

}  // namespace server
