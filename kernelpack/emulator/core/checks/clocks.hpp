// The clocks of every agent, kept up to date by listening (checks/clocks.py: the definition, which
// says what the rows are; and why slots are given to others when a CTA ends).
#pragma once

#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "channels.hpp"
#include "flights.hpp"
#include "pipelines.hpp"

namespace kernelpack::checks {

// What an agent acquired and does not know by the model; a fence may help.
struct Heard {
  Source source;
  Clock clock;
};

struct Agent {
  bool is_warp = false, is_alone = true, outward = false;
  int cta = 0;
  Slot slot;
  int32_t step = 0;
  Clock known;
  Fences fenced;
  std::vector<Heard> heard;
};

// What an operation in flight knows, by its issuer.
struct Issued {
  int parent = 0;
  int32_t step = 0;
  Clock known;
  Fences fenced;
  bool is_staged = false;
  Stage stage;
};

class Clocks {
public:
  const Agent& agent(int number) const { return agents_[static_cast<size_t>(number)]; }
  int32_t step(int number) const { return agent(number).step; }

  // The last step of another one that an agent knows of; 0 for one it has never heard of.
  int32_t known(const Agent& mine, int other, int row) const {
    return mine.known.step(agent(other).slot, row);
  }
  // The last step of another one whose generic accesses come before async ones of an agent.
  int32_t fenced(const Agent& mine, int other, int kind) const {
    const Clock* fence = kind < 0 ? nullptr : mine.fenced.of(kind);
    return fence ? fence->step(agent(other).slot, CAUSAL) : 0;
  }

  void on_started(const Started&);
  void on_release(const Release&);
  void on_acquire(const Acquire&);
  void on_fenced(const Fenced&);
  void on_proxy_fence(const ProxyFence&);
  void on_issued(int64_t operation, int parent, const Stage*);
  void on_began(int64_t operation, int agent, bool ordered);
  void on_ended(int64_t operation) { issued_.end(operation); }
  void on_exited(const std::vector<int>& agents);

private:
  // The parts of a CTA's agents, and how many of their slots are taken.
  struct Place {
    std::vector<int32_t> parts;
    int taken = 0;
    int64_t cluster = 0;
  };

  Agent& mine(int number) { return agents_[static_cast<size_t>(number)]; }
  void tick(Agent& agent) { agent.known.set(agent.slot, ++agent.step); }
  Slot slot_in(Place& place);
  bool release_relaxed(Agent&, const Release&, bool is_word);
  int row_reached(const Agent&, Source, Scope) const;
  void hear(Agent&, Scope);
  void run_in_pipe(Agent&, int number, const Issued&);

  std::vector<Agent> agents_;
  std::unordered_map<int, Place> ctas_;
  std::vector<std::array<int32_t, SLOTS>> last_steps_;  // by part: of the owners so far
  std::vector<int32_t> free_;                           // parts
  Channels channels_;
  Flights<Issued> issued_;
  Pipelines pipelines_;
};

}  // namespace kernelpack::checks
