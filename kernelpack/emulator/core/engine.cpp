// Asynchronous operations: when what was issued takes effect (machine/engine.py).
#include <algorithm>

#include "machine.hpp"

namespace kernelpack {

OperationPtr Engine::issue(Warp& warp, int agent, std::function<void()> effect, const How& how) {
  ++count;
  auto operation = std::make_shared<Operation>();
  operation->number = count;
  operation->agent = agent;
  operation->ordered = how.ordered;
  operation->effect = std::move(effect);
  operation->warp = &warp;
  operation->at = warp.at;
  operation->harmless = how.harmless;
  bus->issued(count, warp.agent, agent, how.stage);
  Queue* queue = nullptr;
  if (how.queue.of != QueueKey::ALONE)
    for (const auto& each : queues_)
      if (each->key == how.queue) queue = each.get();
  if (!queue) {
    queues_.push_back(std::make_unique<Queue>());
    queue = queues_.back().get();
    queue->key = how.queue;
  }
  queue->operations.push_back(operation);
  operation->queue = queue;
  if (how.at_once || tempo == Tempo::EAGER) finish(operation);
  return operation;
}

void Engine::finish(const OperationPtr& operation) {
  while (!operation->done) run_first(operation->queue);
}

bool Engine::advance() {
  if (queues_.empty()) return false;
  run_first(queues_[rng->below(static_cast<uint32_t>(queues_.size()))].get());
  return true;
}

void Engine::run_first(Queue* queue) {
  const OperationPtr operation = queue->operations.front();
  queue->operations.pop_front();
  if (queue->operations.empty()) {
    const auto is_it = [queue](const std::unique_ptr<Queue>& each) { return each.get() == queue; };
    queues_.erase(std::find_if(queues_.begin(), queues_.end(), is_it));
  }
  operation->queue = nullptr;
  Operation* const outer = running;
  running = operation.get();
  bus->began(operation->number, operation->agent, operation->ordered);
  operation->effect();
  running = outer;
  operation->done = true;
  operation->effect = nullptr;
  bus->ended(operation->number, operation->agent);
}

std::vector<OperationPtr> Engine::in_flight() const {
  std::vector<OperationPtr> found;
  for (const auto& queue : queues_)
    found.insert(found.end(), queue->operations.begin(), queue->operations.end());
  return found;
}

}  // namespace kernelpack
