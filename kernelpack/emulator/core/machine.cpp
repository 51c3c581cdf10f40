// CTAs and clusters: made, joined by barriers, ended (machine/grid.py, machine/cluster.py).
#include "machine.hpp"

namespace kernelpack {

int Machine::new_agent(Cta& cta, bool is_warp) {
  const int number = agents++;
  const Cluster& cluster = *cta.cluster;
  bus.started({number, is_warp, cta.number, cluster.key, cluster.ctas.size() == 1});
  return number;
}

int Cta::agent(Agent of, int64_t a, int64_t b) {
  const auto key = std::make_tuple(static_cast<uint8_t>(of), a, b);
  const auto found = agent_of_.find(key);
  if (found != agent_of_.end()) return found->second;
  const int number = machine->new_agent(*this, false);
  agents.push_back(number);
  return agent_of_[key] = number;
}

void Cluster::arrive(int64_t threads) {
  arrived += threads;
  look();
}

void Cluster::leave(int64_t threads, int64_t arrived_too) {
  present -= threads;
  arrived -= arrived_too;
  look();
}

void Cluster::look() {
  if (arrived && arrived >= present) {
    arrived = 0;
    ++generation;
  }
}

Cta& peer(Warp& warp, uint32_t rank) {
  auto& ctas = warp.cta->cluster->ctas;
  if (rank >= ctas.size()) doubt("a shared address names a CTA that the cluster has not");
  Cta& cta = *ctas[rank];
  if (&cta != warp.cta) {
    if (!cta.present) doubt("shared memory of a CTA that has ended");
    reach(warp, cta);
  }
  return cta;
}

void reach(Warp& warp, Cta& cta) {
  if (&cta != warp.cta && warp.machine->bus.watched())
    warp.machine->bus.reached({warp.agent, cta.number});
}

}  // namespace kernelpack
