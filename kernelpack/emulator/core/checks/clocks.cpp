// Events that order (checks/clocks.py).
#include "clocks.hpp"

namespace kernelpack::checks {

// Where a release comes from: of a word that every CTA may count on, it makes no difference.
static Source source_of(Scope scope, const Agent& agent, bool is_word) {
  return {static_cast<int>(scope), is_word && scope == Scope::DEVICE ? ANY : agent.cta};
}

// What fences ordered, each for the widest scope it did so for, from the device's to `narrowest`.
template <typename Each>
static void by_scope(const Fences& fences, int narrowest, Each each) {
  int64_t last = 0;
  for (int scope = static_cast<int>(Scope::DEVICE); scope >= narrowest; --scope) {
    const Fence* fence = fences.scope(scope);
    if (!fence || fence->same == last) continue;
    last = fence->same;
    each(static_cast<Scope>(scope), fence->row->clock);
  }
}

// A new agent knows nothing but itself.
void Clocks::on_started(const Started& event) {
  if (event.agent != static_cast<int>(agents_.size())) doubt("agents start out of order");
  Place& place = ctas_[event.cta];
  place.cluster = event.cluster;
  Agent& agent = agents_.emplace_back();
  agent.is_warp = event.is_warp;
  agent.is_alone = event.is_alone;
  agent.cta = event.cta;
  agent.slot = slot_in(place);
  agent.step =
      last_steps_[static_cast<size_t>(agent.slot.part)][static_cast<size_t>(agent.slot.at)];
  tick(agent);
}

Slot Clocks::slot_in(Place& place) {
  const size_t part = static_cast<size_t>(place.taken) / SLOTS;
  if (part == place.parts.size()) {
    if (free_.empty()) {
      free_.push_back(static_cast<int32_t>(last_steps_.size()));
      last_steps_.emplace_back().fill(0);
    }
    place.parts.push_back(free_.back());
    free_.pop_back();
  }
  return {place.parts[part], place.taken++ % SLOTS};
}

// What the agent knows goes into the channel; what it does next is not part of it.
void Clocks::on_release(const Release& event) {
  Agent& agent = mine(event.agent);
  const bool is_word = event.channel.of == Channel::WORD;
  if (!agent.is_warp) {
    channels_.put(event.channel, {OF_UNIT, agent.cta}, agent.known, agent.fenced);
  } else if (!event.relaxed) {
    channels_.put(event.channel, source_of(event.scope, agent, is_word), agent.known, agent.fenced);
    if (is_word || !agent.is_alone)
      by_scope(agent.fenced, static_cast<int>(event.scope) + 1, [&](Scope scope, const Clock& row) {
        channels_.put(event.channel, source_of(scope, agent, is_word), row.fenced_only(),
                      agent.fenced);
      });
  } else if (!release_relaxed(agent, event, is_word)) {
    return;
  }
  tick(agent);
  if (is_word || event.channel.of == Channel::GRID) agent.outward = true;
}

// Make known what fences ordered, and that the agent got here; whether that is anything.
bool Clocks::release_relaxed(Agent& agent, const Release& event, bool is_word) {
  const bool is_ordered = agent.fenced.scope(0) || agent.fenced.scope(1) || agent.fenced.scope(2);
  if (is_word && !is_ordered && !event.tolerated) return false;
  Clock told = agent.known;
  told.forget_before(event.tolerated ? CAUSAL : EXECUTED);
  const auto put = [&](Scope scope) {
    channels_.put(event.channel, source_of(scope, agent, is_word), told, agent.fenced);
  };
  if (!is_ordered) put(event.scope);
  by_scope(agent.fenced, 0, [&](Scope scope, const Clock& row) {
    told.learn(row.fenced_only());
    put(scope);
    told = Clock();
  });
  return true;
}

// The agent learns what is in the channel; some of it for good only at its next fence.
void Clocks::on_acquire(const Acquire& event) {
  const std::vector<Told>* content = channels_.get(event.channel);
  if (!content) return;
  Agent& agent = mine(event.agent);
  for (const Told& told : *content) {
    const int row = event.relaxed ? CAUSAL : row_reached(agent, told.source, event.scope);
    agent.known.learn(told.clock, row);
    agent.fenced.join(told.fences);
    if (row == SCOPED) continue;
    const auto same = [&](const Heard& heard) { return heard.source == told.source; };
    const auto before = std::find_if(agent.heard.begin(), agent.heard.end(), same);
    if (before == agent.heard.end())
      agent.heard.push_back({told.source, told.clock});
    else
      before->clock.learn(told.clock);
  }
}

// The row from which on an acquire of a scope knows what a source released.
int Clocks::row_reached(const Agent& agent, Source source, Scope scope) const {
  if (source.reach == OF_UNIT || source.cta == agent.cta || !agent.is_warp) return SCOPED;
  const bool is_near =
      source.cta != ANY && ctas_.at(source.cta).cluster == ctas_.at(agent.cta).cluster;
  const int needed = static_cast<int>(is_near ? Scope::CLUSTER : Scope::DEVICE);
  return std::min(source.reach, static_cast<int>(scope)) >= needed ? SCOPED : CAUSAL;
}

// Remember what a relaxed release will make known; know what relaxed acquires told.
void Clocks::on_fenced(const Fenced& event) {
  Agent& agent = mine(event.agent);
  if (event.acquires) hear(agent, event.scope);
  if (!event.releases) return;
  agent.fenced.put(OF_SCOPES, OF_SCOPES + static_cast<int>(event.scope), agent.known);
  tick(agent);
}

// Know what was acquired before a fence of this scope; keep what needs a wider one.
void Clocks::hear(Agent& agent, Scope scope) {
  std::vector<Heard> later;
  for (Heard& heard : agent.heard) {
    const int row = row_reached(agent, heard.source, scope);
    agent.known.learn(heard.clock, row);
    if (row != SCOPED) later.push_back(std::move(heard));
  }
  agent.heard = std::move(later);
}

// Everything the agent knows of is ordered before asynchronous accesses.
void Clocks::on_proxy_fence(const ProxyFence& event) {
  Agent& agent = mine(event.agent);
  if (event.shared || event.global)
    agent.fenced.put(event.shared ? OF_SHARED : OF_GLOBAL, event.global ? OF_GLOBAL : OF_SHARED,
                     agent.known);
}

// An operation starts with what its issuer knows; what the issuer does next is not part.
void Clocks::on_issued(int64_t operation, int parent, const Stage* stage) {
  Agent& agent = mine(parent);
  issued_.add(operation, {parent, agent.step, agent.known, agent.fenced, stage != nullptr,
                          stage ? *stage : Stage{}});
  tick(agent);
}

// The unit takes over what the operation knows; an ordered one also keeps what it knew.
void Clocks::on_began(int64_t operation, int number, bool ordered) {
  const Issued& issued = issued_.at(operation);
  Agent& agent = mine(number);
  if (!ordered) {
    agent.known = issued.known;
    agent.known.set(agent.slot, agent.step);
    agent.fenced = issued.fenced;
    return;
  }
  tick(agent);
  agent.known.learn(issued.known);
  agent.fenced.join(issued.fenced);
  if (issued.is_staged) run_in_pipe(agent, number, issued);
}

// Know of the operations of other threads that this one runs behind.
void Clocks::run_in_pipe(Agent& agent, int number, const Issued& issued) {
  pipelines_.run(
      issued.stage, issued.parent, issued.step, number, agent.step,
      [&](int issuer) { return issued.known.step(mine(issuer).slot, EXECUTED); },
      [&](int other, int32_t step) { agent.known.raise(mine(other).slot, step); });
}

// Give the slots of an ended CTA's agents to those who come; unless they released to others.
void Clocks::on_exited(const std::vector<int>& agents) {
  if (agents.empty()) return;
  bool kept = false;
  for (const int number : agents) kept |= agent(number).outward;
  pipelines_.forget(agents);
  for (const int number : agents) {
    Agent& gone = mine(number);
    gone.heard.clear();
    gone.fenced.clear();
    if (kept) continue;
    last_steps_[static_cast<size_t>(gone.slot.part)][static_cast<size_t>(gone.slot.at)] = gone.step;
    gone.slot = Slot{};
    gone.known = Clock();
  }
  if (kept) return;
  Place& place = ctas_.at(agent(agents[0]).cta);
  free_.insert(free_.end(), place.parts.rbegin(), place.parts.rend());
  place.parts.clear();
  place.taken = 0;
}

}  // namespace kernelpack::checks
