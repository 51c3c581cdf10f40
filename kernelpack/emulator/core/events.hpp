// What happens while a kernel runs (events.py), handed to the checks; on request also to a log,
// which tests compare with what the Python engine emits.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "memory.hpp"

namespace kernelpack {

using Mask = uint32_t;  // lane i is bit i
constexpr int WIDTH = 32;
constexpr Mask EVERY = ~Mask{0};

enum class Proxy : uint8_t { GENERIC, ASYNC, TENSOR };
enum class Scope : uint8_t { CTA, CLUSTER, DEVICE };
enum class Use : uint8_t { NONE, INIT, USE, INVAL };  // of an mbarrier

// A thing through which one agent's past becomes another's. Python's tuples, as numbers:
//   WORD(unit, word) MBARRIER(cta, offset, phase) BAR(cta, number, generation)
//   CLUSTER(number of its first CTA, generation) OPERATION(number) GRID(launch)
//   TENSOR_LOAD(agent) TENSOR_STORE(agent) TENSOR_ALLOC(cta) TENSOR_FREE(cta)
//   OTHER(...): whatever else; say here what it is of.
struct Channel {
  enum Of : uint8_t {
    WORD,
    MBARRIER,
    BAR,
    CLUSTER,
    OPERATION,
    GRID,
    TENSOR_LOAD,
    TENSOR_STORE,
    TENSOR_ALLOC,
    TENSOR_FREE,
    OTHER
  };
  Of of;
  int64_t a = 0, b = 0, c = 0;
  bool operator==(const Channel& o) const { return of == o.of && a == o.a && b == o.b && c == o.c; }
};

struct ChannelHash {
  size_t operator()(const Channel& ch) const {
    uint64_t h = static_cast<uint64_t>(ch.of) * 0x9e3779b97f4a7c15ull;
    for (int64_t v : {ch.a, ch.b, ch.c})
      h = (h ^ static_cast<uint64_t>(v)) * 0xff51afd7ed558ccdull, h ^= h >> 32;
    return h;
  }
};

// A number for cells that are accessed again and again, by which the checks know them again.
inline int64_t new_layout() {
  static thread_local int64_t last = 0;
  return ++last;
}

// An access to cells (4-byte words; of tensor memory, columns of 16 lanes). `masks` are the bytes
// of each cell, null where all are meant. `has_lanes`: it is of lanes of a warp.
struct Access {
  const Unit* unit;
  const uint32_t* cells;
  size_t count;
  int agent;
  bool write;
  Proxy proxy = Proxy::GENERIC;
  int64_t layout = 0;  // the number of these cells, if they have one
  const uint8_t* masks = nullptr;
  bool atomic = false;
  bool has_lanes = false;
  Use mbarrier = Use::NONE;
  // Of a store, whether memory holds these values already (asked before it is made); may be empty.
  std::function<bool()> unchanged = {};
};

// Which pattern a box was written with, or is read by: a number of `Swizzle` (swizzle.hpp).
struct Swizzled {
  const Unit* unit;
  const uint32_t* cells;
  size_t count;
  bool write;
  int pattern;
};

// What an operation is to the others of a pipe (events.Stage); kinds as numbers, -1 for none.
struct Stage {
  int64_t pipe = -1;
  int64_t kind = -1;
  std::vector<int64_t> behind;
};

struct Started {
  int agent;
  bool is_warp;
  int cta;
  int64_t cluster;
  bool is_alone;
};

struct Release {
  int agent;
  Channel channel;
  bool relaxed = false;
  Scope scope = Scope::DEVICE;
  bool tolerated = false;
  Mask by = EVERY;
};

struct Acquire {
  int agent;
  Channel channel;
  Mask lanes = EVERY;
  bool relaxed = false;
  Scope scope = Scope::DEVICE;
  Mask by = EVERY;
};

struct Fenced {
  int agent;
  Scope scope = Scope::DEVICE;
  bool acquires = true, releases = true;
};

struct Arrived {
  int agent;
  int barrier;
  int64_t phase;
  bool waits;
};

struct ProxyFence {
  int agent;
  bool shared, global;
  Mask lanes;
};

struct Reached {
  int agent;
  int cta;
};

// Checks listen. Each finding that Python's checks would report (at level `warn` or below) is a
// doubt; so is whatever they would have to look at twice.
class Checks;

// The events of a run, in order: to the checks, and to the log where there is one.
class Bus {
public:
  Checks* checks = nullptr;  // null: nobody watches
  std::vector<int64_t>* log = nullptr;

  bool watched() const { return checks != nullptr || log != nullptr; }

  void started(const Started&);
  void release(const Release&);
  void acquire(const Acquire&);
  void fenced(const Fenced&);
  void arrived(const Arrived&);
  void met(int agent, Mask lanes, bool whole);
  void tensor_fence(int agent, bool is_before);
  void proxy_fence(const ProxyFence&);
  void issued(int64_t operation, int parent, int agent, const Stage*);
  void began(int64_t operation, int agent, bool ordered);
  void ended(int64_t operation, int agent);
  void access(const Access&);
  void swizzled(const Swizzled&);
  void reached(const Reached&);
  void exited(int cta, const std::vector<int>& agents, const std::vector<const Unit*>& units);
  void ran(int agent, int first, int count);  // for the log alone

private:
  void note(std::initializer_list<int64_t> words) {
    if (log) log->insert(log->end(), words);
  }
};

}  // namespace kernelpack
