// The connection to the emulator, the mapping of device memory, and how calls fail.
#include "wire.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
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
    while (connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address))
      if (errno != EINTR) give_up("the emulator does not answer");
  }
  Answer ask(Operation operation, const Request& request) {
    const uint32_t head[2] = {static_cast<uint32_t>(operation),
                              static_cast<uint32_t>(request.bytes.size())};
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
      if (done < 0 && errno == EINTR) continue;  // a handler of the program's ran
      if (done <= 0) give_up("the emulator has ended");
      at += done;
      size -= done;
    }
  }
  void receive(void* data, size_t size) {
    char* at = static_cast<char*>(data);
    while (size) {
      const ssize_t done = recv(socket_, at, size, 0);
      if (done < 0 && errno == EINTR) continue;  // a handler of the program's ran
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
  std::call_once(told, [] {
    std::fputs("emulated CUDA: used in a fork of a process that uses CUDA\n", stderr);
  });
  Answer answer;
  answer.status = CUDA_ERROR_NOT_INITIALIZED;
  return answer;
}

std::atomic<pid_t> owner{0};  // the process whose connection it is

std::recursive_mutex& lock() {
  static std::recursive_mutex mutex;
  return mutex;
}

// The device's addresses, closed to the host, and the same memory where the stand-in copies.
void map_memory(Device& device, const std::string& path, uint64_t base) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  void* wanted = reinterpret_cast<void*>(base);
  void* got =
      mmap(wanted, device.memory_bytes, PROT_NONE, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
  void* copy = mmap(nullptr, device.memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (got != wanted || copy == MAP_FAILED) give_up("device memory cannot be mapped at its address");
  device.memory = static_cast<uint8_t*>(got);
  device.copy = static_cast<uint8_t*>(copy);
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
  watch_host();
  return device;
}

}  // namespace

Answer ask(Operation operation, const Request& request) {
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
// A launch is asynchronous: whoever waits for it gets its error.
int settle_launches() {
  if (const int later = ask(Operation::settle).take<int>()) breaks(later);
  return broken();
}
// A program that ends has launched all that it will.
__attribute__((destructor)) static void at_the_end() {
  if (owner == getpid()) ask(Operation::settle);
}
void mend() { first_failure = 0; }
void breaks(int status) {
  int none = 0;
  first_failure.compare_exchange_strong(none, status);
}

int refuse(const char* what) { return ask(Operation::refuse, Request().text(what)).status; }

int complain(const std::string& what, int status) {
  device();
  ask(Operation::complain, Request().text(what.c_str()));
  return status;
}

Answer load_module(const void* image, size_t size) {
  device();
  return ask(Operation::module, Request().raw(image, size));
}

}  // namespace standin
