// The connection to the emulator, device memory and its mapping, and how calls fail.
#include "wire.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
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

// CUDA does not work in the child of a process that used it: the connection is the parent's.
Answer forked() {
  static std::once_flag told;
  std::call_once(told, [] { std::fputs("emulated CUDA: used in a fork of a process that uses CUDA\n", stderr); });
  Answer answer;
  answer.status = CUDA_ERROR_NOT_INITIALIZED;
  return answer;
}

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

}  // namespace

Answer ask(Operation operation, const Request& request) {
  static std::atomic<pid_t> owner{0};
  if (owner && owner != getpid()) return forked();
  const std::lock_guard<std::recursive_mutex> guard(lock());
  static Wire* wire = new Wire;
  owner = getpid();
  return wire->ask(operation, request);
}

const Device& device() {
  const std::lock_guard<std::recursive_mutex> guard(lock());
  static Device* device = greet();
  return *device;
}

std::atomic<int> first_failure{0};
int broken() { return first_failure; }
void breaks(int status) {
  int none = 0;
  first_failure.compare_exchange_strong(none, status);
}

int refuse(const char* what) {
  return ask(Operation::refuse, Request().text(what)).status;
}

int complain(const std::string& what, int status) {
  device();
  ask(Operation::complain, Request().text(what.c_str()));
  return status;
}

Answer load_module(const void* image, size_t size) {
  device();
  return ask(Operation::module, Request().raw(image, size));
}

int allocate(void** address, size_t size, bool managed) {
  if (broken()) return broken();
  if (!address) return complain("a null pointer for an address");
  device();
  Answer answer = ask(Operation::allocate, Request().put<uint64_t>(size).put<uint32_t>(managed));
  if (!answer.status) *address = reinterpret_cast<void*>(answer.take<uint64_t>());
  return answer.status;
}

int release(void* address) {
  if (broken()) return broken();
  if (!address) return 0;
  device();
  return ask(Operation::release, Request().put(reinterpret_cast<uint64_t>(address))).status;
}

int copy(void* target, const void* source, size_t size, cudaMemcpyKind kind) {
  if (broken()) return broken();
  if (!size) return 0;
  const bool to = device().holds(target), from = device().holds(source);
  const bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if ((wants_to && !to) || (wants_from && !from)) return complain("a copy whose device pointer is none");
  if (!target || !source) return complain("a copy with a null pointer");
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
  device();
  const auto there = reinterpret_cast<uint64_t>(target);
  if (there % width) return complain("a fill that is not aligned to its values");
  return ask(Operation::fill, Request().put(there).put(value).put(width).put<uint64_t>(count)).status;
}

}  // namespace standin
