// Asynchronous operations, and the queues in which they wait to take effect (machine/engine.py).
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "events.hpp"
#include "random.hpp"

namespace kernelpack {

struct Warp;

struct Operation {
  int64_t number;
  int agent;
  bool ordered;
  std::function<void()> effect;
  Warp* warp;
  int32_t at;
  bool harmless;  // it may still be in flight when its CTA ends (a tcgen05.commit): else a doubt
  bool done = false;
  struct Queue* queue = nullptr;
};
using OperationPtr = std::shared_ptr<Operation>;

// A queue of the engine: {kind, a, b}; ALONE ones hold one operation.
struct QueueKey {
  enum Of : uint8_t { ALONE, WGMMA, TENSOR_LOAD, TENSOR_STORE, PIPE, OTHER } of = ALONE;
  int64_t a = 0, b = 0;
  bool operator==(const QueueKey& o) const { return of == o.of && a == o.a && b == o.b; }
};
struct Queue {
  QueueKey key;
  std::list<OperationPtr> operations;  // mostly one: an empty list takes no memory of its own
};

enum class Tempo : uint8_t { EAGER, FAIR, LAZY };

// machine/engine.py
class Engine {
public:
  Bus* bus = nullptr;
  Tempo tempo = Tempo::EAGER;
  Random* rng = nullptr;
  int64_t count = 0;
  Operation* running = nullptr;

  struct How {
    QueueKey queue = {};
    bool ordered = true;
    bool at_once = false;
    const Stage* stage = nullptr;
    bool harmless = false;
  };
  OperationPtr issue(Warp& warp, int agent, std::function<void()> effect, const How& how);
  // `copies.alone`, and in `in_group`: unordered, in a queue of its own.
  OperationPtr alone(Warp& warp, int agent, std::function<void()> effect) {
    How how;
    how.ordered = false;
    return issue(warp, agent, std::move(effect), how);
  }
  void finish(const OperationPtr& operation);
  bool advance();
  bool empty() const { return queues_.empty(); }
  std::vector<OperationPtr> in_flight() const;

private:
  void run_first(Queue* queue);
  std::vector<std::unique_ptr<Queue>> queues_;  // in the order in which Python's dict has them
};

}  // namespace kernelpack
