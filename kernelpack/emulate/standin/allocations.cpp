// Device memory: what the program holds of it, copies and fills, and what the host itself may
// touch.
//
// A GPU's host gets SIGSEGV where it reads or writes device memory. So the mapping at the device's
// addresses is closed, but for managed and pinned memory; copies go through a second one.
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <map>
#include <mutex>
#include <utility>

#include "wire.hpp"

namespace standin {
namespace {

constexpr uintptr_t PAGE = 4096;

struct Registry {
  std::mutex lock;
  std::map<uintptr_t, Held> by_start;
};
Registry& registry() {
  static auto* one = new Registry;
  return *one;
}
using Locked = std::lock_guard<std::mutex>;

uintptr_t number(const void* address) { return reinterpret_cast<uintptr_t>(address); }

void protect(const void* address, size_t size, int how) {
  const uintptr_t first = number(address) / PAGE * PAGE,
                  last = (number(address) + size + PAGE - 1) / PAGE * PAGE;
  mprotect(reinterpret_cast<void*>(first), last - first, how);
}

struct sigaction before_ours;

bool was_a_write(const void* context) {
#ifdef __x86_64__
  return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
  return context && false;
#endif
}

// Name the address; the access is then made again, and ends the program or meets its own handler.
void on_fault(int, siginfo_t* info, void* context) {
  if (device().holds(info->si_addr))
    ask(Operation::touch, Request().put(number(info->si_addr)).put<uint32_t>(was_a_write(context)));
  sigaction(SIGSEGV, &before_ours, nullptr);
}

// Where the stand-in itself finds what lies at an address.
void* own(const void* address) {
  if (!device().holds(address)) return const_cast<void*>(address);
  return device().copy + (static_cast<const uint8_t*>(address) - device().memory);
}

Held taken(void* address) {
  const Locked guard(registry().lock);
  const auto found = registry().by_start.find(number(address));
  if (found == registry().by_start.end()) return {};
  const Held held = found->second;
  registry().by_start.erase(found);
  return held;
}

}  // namespace

void watch_host() {
  struct sigaction ours{};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &ours, &before_ours);
}

void open_to_host(const void* address, size_t size) {
  protect(address, size, PROT_READ | PROT_WRITE);
}

Held held_at(const void* address) {
  const Locked guard(registry().lock);
  auto after = registry().by_start.upper_bound(number(address));
  if (after == registry().by_start.begin()) return {};
  --after;
  const Held found = after->second;
  return number(address) < found.start + found.size ? found : Held{};
}

uint64_t bytes_held() {
  const Locked guard(registry().lock);
  uint64_t sum = 0;
  for (const auto& [start, held] : registry().by_start) sum += held.size;
  return sum;
}

int allocate(void** address, size_t size, Kind kind) {
  if (broken()) return broken();
  if (!address) return complain("a null pointer for an address");
  device();
  if (!size) return *address = nullptr, 0;
  const bool shared = kind != Kind::device;
  Answer answer = ask(Operation::allocate, Request().put<uint64_t>(size).put<uint32_t>(shared));
  if (answer.status) return answer.status;
  *address = reinterpret_cast<void*>(answer.take<uint64_t>());
  if (shared) open_to_host(*address, size);
  const Locked guard(registry().lock);
  registry().by_start[number(*address)] = {size, kind, number(*address)};
  return 0;
}

int release(void* address, bool pinned) {
  if (broken()) return broken();
  if (!address) return 0;
  device();
  const Held held = taken(address);
  if (held.size && (held.kind == Kind::pinned) != pinned)
    return complain(pinned ? "cudaFreeHost of device memory" : "cudaFree of pinned host memory");
  if (held.size && held.kind != Kind::device) protect(address, held.size, PROT_NONE);
  return ask(Operation::release, Request().put(number(address))).status;
}

void release_all() {
  std::map<uintptr_t, Held> all;
  {
    const Locked guard(registry().lock);
    all.swap(registry().by_start);
  }
  for (const auto& [start, held] : all) {
    if (held.kind != Kind::device) protect(reinterpret_cast<void*>(start), held.size, PROT_NONE);
    ask(Operation::release, Request().put(uint64_t{start}));
  }
}

int copy(void* target, const void* source, size_t size, cudaMemcpyKind kind) {
  if (broken()) return broken();
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault)
    return complain("a copy of kind " + std::to_string(kind), cudaErrorInvalidMemcpyDirection);
  if (!size) return 0;
  const bool to = device().holds(target), from = device().holds(source);
  const bool wants_to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool wants_from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if ((wants_to && !to) || (wants_from && !from))
    return complain("a copy with an invalid device pointer");
  if (!target || !source) return complain("a copy with a null pointer");
  const uint64_t there = number(target), here = number(source);
  if (to && from)
    return ask(Operation::copy, Request().put(there).put(here).put<uint64_t>(size)).status;
  int status = 0;
  if (to) status = ask(Operation::write, Request().put(there).put<uint64_t>(size)).status;
  if (from) status = ask(Operation::read, Request().put(here).put<uint64_t>(size)).status;
  if (!status) std::memmove(own(target), own(source), size);
  return status;
}

int fill(void* target, uint32_t value, uint32_t width, size_t count) {
  if (broken()) return broken();
  device();
  const uint64_t there = number(target);
  if (there % width) return complain("a fill that is not aligned to its values");
  return ask(Operation::fill, Request().put(there).put(value).put(width).put<uint64_t>(count))
      .status;
}

}  // namespace standin
