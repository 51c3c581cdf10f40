// The stand-in's end of the wire: requests to the emulator, answers from it. The bytes are
// described in kernelpack/emulate/protocol.py.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace standin {

// The operations, as protocol.py numbers them.
enum class Operation : uint32_t {
  hello,
  module,
  kernel,
  launch,
  allocate,
  release,
  write,
  read,
  copy,
  fill,
  symbol,
  tensor_map,
  refuse,
  complain,
  touch,
  settle
};

// The payload of a request: values one after the other, little endian, unpadded.
class Request {
public:
  template <class T>
  Request& put(const T& value) {
    return raw(&value, sizeof value);
  }
  Request& raw(const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
    return *this;
  }
  Request& text(const char* value) {
    const uint32_t size = std::strlen(value);
    return put(size).raw(value, size);
  }
  std::string bytes;
};

// An answer: a CUDA status (0 is success), and values read in the order in which they were put.
class Answer {
public:
  template <class T>
  T take() {
    T value{};
    if (at + sizeof value <= bytes.size()) std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
    return value;
  }
  std::string text() {
    const uint32_t size = take<uint32_t>();
    std::string value = bytes.substr(at, size);
    at += size;
    return value;
  }
  int status = 0;
  std::string bytes;
  size_t at = 0;
};

// Ask the emulator and wait for its answer; one thread at a time.
Answer ask(Operation operation, const Request& request = {});

// What the program runs on, as the emulator says.
struct Device {
  std::string name;
  std::map<int, int> attributes;  // CUdevice_attribute -> value
  uint8_t* memory = nullptr;      // where device memory is mapped, at its own addresses
  uint8_t* copy = nullptr;        // the same memory, where the stand-in itself reads and writes it
  uint64_t memory_bytes = 0;

  int attribute(int number) const {
    const auto found = attributes.find(number);
    return found == attributes.end() ? 0 : found->second;
  }
  bool holds(const void* address) const {
    const auto* byte = static_cast<const uint8_t*>(address);
    return byte >= memory && byte < memory + memory_bytes;
  }
};
const Device& device();

// A kernel of a loaded module. `slots` are the offset and size of each parameter in its block.
struct Kernel {
  uint32_t id = 0, module = 0;
  std::string name;
  std::vector<std::pair<uint32_t, uint32_t>> slots;
  uint32_t parameter_bytes = 0, shared_bytes = 0, max_threads = 0;
  int dynamic_limit = 48 * 1024;  // cudaFuncAttributeMaxDynamicSharedMemorySize
  bool large_clusters = false;    // cudaFuncAttributeNonPortableClusterSizeAllowed
};

// The numbers of a launch.
struct Shape {
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1}, cluster[3] = {1, 1, 1};
  uint64_t dynamic_bytes = 0;
  const void* stream = nullptr;
  bool programmatic = false;
  bool cooperative = false;
};

// Load a fat binary or a PTX text; the number of the module, or an answer that says no.
Answer load_module(const void* image, size_t size);
// The kernel of that name; null if the module has none.
Kernel* find_kernel(uint32_t module, const char* name, int& status);
// The kernel of a handle that was given out; null for any other pointer.
Kernel* known_kernel(const void* handle);
// A module is unloaded: the handles of its kernels are invalid from now on.
void forget_kernels(uint32_t module);
// Run a kernel on the emulator; a CUDA status.
int launch(Kernel& kernel, const Shape& shape, void** arguments, const std::string* block);
// Blocks of a kernel that one multiprocessor holds; a CUDA status.
int blocks_held(int* blocks, const Kernel& kernel, int threads, size_t dynamic_bytes);
// What CUDA allows: a value of cudaFuncAttributeMaxDynamicSharedMemorySize; a CUDA status.
int set_dynamic_limit(Kernel& kernel, int bytes);

// Memory that kernels reach: of the device alone, of host and device, or the host's pinned one.
enum class Kind { device, managed, pinned };
struct Held {
  size_t size = 0;
  Kind kind = Kind::device;
  uint64_t start = 0;
};
// The allocation that an address lies in; of size 0 where it lies in none.
Held held_at(const void* address);
uint64_t bytes_held();
// Device memory: a CUDA status each. A kind of copy that names the device holds a pointer to it.
int allocate(void** address, size_t size, Kind kind);
int release(void* address, bool pinned = false);
void release_all();
int copy(void* target, const void* source, size_t size, cudaMemcpyKind kind);
int fill(void* target, uint32_t value, uint32_t width, size_t count);

// The host may read and write device memory there.
void open_to_host(const void* address, size_t size);
// From now on a host access to other device memory is reported with its address.
void watch_host();

// The context that is current in this thread, and that of a stream, which must live.
CUcontext current_context();
int context_of(const void* stream, CUcontext* context);

// Wait for what host functions of a stream still do, of all for the default one; it must be a
// stream that lives. A CUDA status, the failure of an earlier launch included.
int ready(const void* stream);
// Wait for launches too: one that is asked for may wait for the next, which may overlap it.
int settle(const void* stream);
int settle_launches();

// The status of the launch that failed first: from then on every call fails, as on a GPU.
int broken();
// A launch has failed.
void breaks(int status);
// The device is reset: earlier failures are forgotten.
void mend();
// Say that a call is not modelled, by name; the run counts as failed.
int refuse(const char* what);
// Say what is wrong with a call; the run counts as failed. The status is CUDA's for it.
int complain(const std::string& what, int status = CUDA_ERROR_INVALID_VALUE);

// Hand a value to the caller, who must have said where to; a CUDA status.
template <class T, class U>
int give(T* to, const U& value) {
  if (!to) return complain("a null pointer for a result");
  *to = value;
  return 0;
}

}  // namespace standin
