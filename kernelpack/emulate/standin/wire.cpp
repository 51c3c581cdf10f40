// The connection to the emulator, the mapping of device memory, and what both APIs ask for.
#include "wire.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>

namespace standin {
namespace {

constexpr int LOST = 125;  // exit code of a program whose emulator is not there

[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "emulated CUDA: %s\n", why);
  _exit(LOST);
}

class Wire {
public:
  Wire() {
    const char* path = std::getenv("KERNELPACK_EMULATOR");
    if (!path) give_up("run this program as `kernelpack emulate PROGRAM`");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    socket_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address))
      give_up("the emulator does not answer");
  }
  Answer ask(Operation operation, const Request& request) {
    const uint32_t head[2] = {static_cast<uint32_t>(operation), static_cast<uint32_t>(request.bytes.size())};
    send(head, sizeof head);
    send(request.bytes.data(), request.bytes.size());
    uint32_t back[2];
    receive(back, sizeof back);
    Answer answer;
    answer.status = static_cast<int>(back[0]);
    answer.bytes.resize(back[1]);
    receive(answer.bytes.data(), back[1]);
    return answer;
  }

private:
  void send(const void* data, size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size) {
      const ssize_t done = ::send(socket_, at, size, MSG_NOSIGNAL);
      if (done <= 0) give_up("the emulator has ended");
      at += done;
      size -= done;
    }
  }
  void receive(void* data, size_t size) {
    char* at = static_cast<char*>(data);
    while (size) {
      const ssize_t done = recv(socket_, at, size, 0);
      if (done <= 0) give_up("the emulator has ended");
      at += done;
      size -= done;
    }
  }
  int socket_;
};

std::recursive_mutex& lock() {
  static std::recursive_mutex mutex;
  return mutex;
}

void map_memory(Device& device, const std::string& path, uint64_t base) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* wanted = reinterpret_cast<void*>(base);
  const int flags = MAP_SHARED | MAP_FIXED_NOREPLACE;
  void* got = mmap(wanted, device.memory_bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  close(file);
  if (got != wanted) give_up("device memory cannot be mapped at its address");
  device.memory = static_cast<uint8_t*>(got);
}

Device* greet() {
  auto* device = new Device;
  Answer answer = ask(Operation::hello);
  const std::string path = answer.text();
  const uint64_t base = answer.take<uint64_t>();
  device->memory_bytes = answer.take<uint64_t>();
  device->name = answer.text();
  for (uint32_t left = answer.take<uint32_t>(); left; --left) {
    const int number = answer.take<int>();
    device->attributes[number] = answer.take<int>();
  }
  map_memory(*device, path, base);
  return device;
}

Kernel read_kernel(Answer& answer, const char* name) {
  Kernel kernel;
  kernel.name = name;
  kernel.id = answer.take<uint32_t>();
  kernel.parameter_bytes = answer.take<uint32_t>();
  kernel.shared_bytes = answer.take<uint32_t>();
  kernel.max_threads = answer.take<uint32_t>();
  for (uint32_t left = answer.take<uint32_t>(); left; --left) {
    const uint32_t offset = answer.take<uint32_t>();
    kernel.slots.emplace_back(offset, answer.take<uint32_t>());
  }
  return kernel;
}

bool is_legal(const Kernel& kernel, const Shape& shape) {
  const uint32_t ctas = shape.cluster[0] * shape.cluster[1] * shape.cluster[2];
  if (static_cast<int>(shape.dynamic_bytes) > kernel.dynamic_limit) {
    std::fprintf(stderr, "emulated CUDA: %u bytes of dynamic shared memory; cudaFuncSetAttribute allowed %d\n",
                 shape.dynamic_bytes, kernel.dynamic_limit);
    return false;
  }
  return ctas <= (kernel.large_clusters ? 16 : 8);
}

}  // namespace

Answer ask(Operation operation, const Request& request) {
  const std::lock_guard<std::recursive_mutex> guard(lock());
  static Wire* wire = new Wire;
  return wire->ask(operation, request);
}

const Device& device() {
  const std::lock_guard<std::recursive_mutex> guard(lock());
  static Device* device = greet();
  return *device;
}

int& broken() {
  static int status = 0;
  return status;
}

int refuse(const char* what) {
  return ask(Operation::refuse, Request().text(what)).status;
}

Answer load_module(const void* image, size_t size) {
  device();
  return ask(Operation::module, Request().raw(image, size));
}

Kernel* find_kernel(uint32_t module, const char* name, int& status) {
  const std::lock_guard<std::recursive_mutex> guard(lock());
  static std::map<std::pair<uint32_t, std::string>, std::unique_ptr<Kernel>> known;
  auto& kernel = known[{module, name}];
  status = 0;
  if (!kernel) {
    Answer answer = ask(Operation::kernel, Request().put(module).text(name));
    status = answer.status;
    if (!status) kernel = std::make_unique<Kernel>(read_kernel(answer, name));
  }
  return kernel.get();
}

int launch(Kernel& kernel, const Shape& shape, void** arguments, const void* block) {
  if (broken()) return broken();
  if (!is_legal(kernel, shape)) return CUDA_ERROR_INVALID_VALUE;
  std::string parameters(kernel.parameter_bytes, '\0');
  for (size_t i = 0; !block && i < kernel.slots.size(); ++i)
    std::memcpy(&parameters[kernel.slots[i].first], arguments[i], kernel.slots[i].second);
  if (block) std::memcpy(parameters.data(), block, parameters.size());
  Request request;
  request.put(kernel.id).put(shape.grid).put(shape.block).put(shape.cluster).put(shape.dynamic_bytes);
  request.put(static_cast<uint32_t>(shape.programmatic)).raw(parameters.data(), parameters.size());
  const int status = ask(Operation::launch, request).status;
  if (status != CUDA_ERROR_LAUNCH_FAILED) return status;
  broken() = status;  // a launch is asynchronous: whoever waits for it is told
  return 0;
}

int blocks_held(const Kernel& kernel, int threads, size_t dynamic_bytes) {
  const Device& on = device();
  const size_t shared = kernel.shared_bytes + dynamic_bytes + on.attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  const int warps = (threads + 31) / 32;
  const int by_threads = on.attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / (32 * warps);
  const int by_shared = on.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) / static_cast<int>(shared);
  return std::min({by_threads, by_shared, on.attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)});
}

int allocate(void** address, size_t size, bool managed) {
  device();
  Answer answer = ask(Operation::allocate, Request().put<uint64_t>(size).put<uint32_t>(managed));
  *address = reinterpret_cast<void*>(answer.take<uint64_t>());
  return answer.status;
}

int release(void* address) {
  if (!address) return 0;
  return ask(Operation::release, Request().put(reinterpret_cast<uint64_t>(address))).status;
}

int copy(void* target, const void* source, size_t size) {
  if (broken()) return broken();
  const bool to = device().holds(target), from = device().holds(source);
  const auto there = reinterpret_cast<uint64_t>(target), here = reinterpret_cast<uint64_t>(source);
  if (to && from)
    return ask(Operation::copy, Request().put(there).put(here).put<uint64_t>(size)).status;
  int status = 0;
  if (to) status = ask(Operation::write, Request().put(there).put<uint64_t>(size)).status;
  if (from) status = ask(Operation::read, Request().put(here).put<uint64_t>(size)).status;
  if (!status) std::memmove(target, source, size);
  return status;
}

int fill(void* target, uint32_t value, uint32_t width, size_t count) {
  if (broken()) return broken();
  const auto there = reinterpret_cast<uint64_t>(target);
  return ask(Operation::fill, Request().put(there).put(value).put(width).put<uint64_t>(count)).status;
}

}  // namespace standin
