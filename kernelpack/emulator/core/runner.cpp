// A launch run to its end under a schedule, in rounds of turns (emulator/runner.py).
#include <algorithm>

#include "machine.hpp"

namespace kernelpack {

namespace {

constexpr int64_t SLICE = 200, HELD_SLICE = 4;
constexpr int64_t PATIENCE_ROUNDS = 300, SETTLING_ROUNDS = 8, STUCK_NODES = 20000;
constexpr int64_t LOOK_STEPS = 100000;
constexpr int64_t FIRST_LEAP = 1ll << 10, LAST_LEAP = 1ll << 40;

}  // namespace

// One way to interleave (emulator/schedule.py).
struct Schedule {
  Tempo tempo = Tempo::EAGER;
  int held_rank = -1, held_warp = -1;
  int resident = 1;
};

class Runner {
public:
  Runner(Machine& machine, const Schedule& schedule, int64_t step_limit)
      : machine_(machine),
        schedule_(schedule),
        step_limit_(step_limit),
        turns_(machine),
        rest_(machine) {
    const Shape& shape = machine.shape;
    for (int i = 0; i < 3; ++i) counts_[i] = shape.grid[i] / shape.cluster[i];
    left_ = static_cast<int64_t>(counts_[0]) * counts_[1] * counts_[2];
    if (shape.only >= 0) taken_ = shape.only, left_ = 1;
  }

  // `look` is shown the step between rounds, and where one of the warps stands (its CTA's x, y and
  // z, its index, its instruction). It ends the run by anything but 0.
  void run(int (*look)(int64_t, const int64_t*)) {
    if (left_ > step_limit_) doubt("more clusters than steps");
    admit(schedule_.resident);
    for (int64_t shown = 0; !live_.empty();) {
      go_on();
      if (!look || machine_.step - shown < LOOK_STEPS) continue;
      shown = machine_.step;
      const Warp& warp = live_.empty() ? *machine_.current : *live_.front();
      const int64_t where[] = {warp.cta->x, warp.cta->y, warp.cta->z, warp.index, warp.at};
      if (look(shown, where)) doubt("the caller ends the run");
    }
    while (!machine_.engine.empty()) advance();
  }

  // Where every split of every warp stands: a row of its CTA's x, y and z, the warp, the
  // instruction, the lanes, and whether it waits.
  std::vector<int64_t> standings() const {
    std::vector<int64_t> rows;
    for (const Warp* warp : live_) {
      const Cta& cta = *warp->cta;
      for (const auto& split : warp->splits) {
        const int64_t at = machine_.program->nodes[split->pc].first;
        const int64_t row[] = {cta.x, cta.y, cta.z, warp->index, at, split->lanes(), split->waits};
        rows.insert(rows.end(), std::begin(row), std::end(row));
      }
    }
    return rows;
  }

private:
  // A round; where nothing comes of it, something that need not have happened yet.
  void go_on() {
    const int64_t before = machine_.changes;
    const int64_t moved = round();
    retire();
    // A single launch has no other to begin with it: Python's `queue.next` stays 0 until all are
    // taken.
    if (schedule_.tempo == Tempo::FAIR) some_operations();
    if (machine_.changes != before) {
      idle_ = stuck_ = leap_ = 0;
      return;
    }
    ++idle_;
    std::vector<Warp*> restless;
    if (moved)
      for (Warp* warp : live_)
        if (!is_held(warp) && !rest_.look(*warp)) restless.push_back(warp);
    if (!restless.empty() && idle_ < PATIENCE_ROUNDS) return;
    for (Warp* warp : restless) rest_.presumed.insert(warp->agent);
    if (release() || rouse() || (moved && !rest_.presumed.empty()) || pass_time()) return;
    stick(moved);
  }

  // Every warp that is not held back has a turn; how many nodes were run.
  int64_t round() {
    std::vector<Warp*> order = live_;
    if (schedule_.tempo != Tempo::EAGER) machine_.rng.shuffle(order);
    int64_t moved = 0;
    for (Warp* warp : order)
      if (is_awake(*warp) && !is_standing(*warp)) moved += turn(*warp, SLICE);
    return moved;
  }

  bool is_held(const Warp* warp) const {
    return std::find(held_.begin(), held_.end(), warp) != held_.end();
  }

  // Whether a turn may be more than a look at what did not change.
  bool is_awake(const Warp& warp) const {
    if (warp.asleep_at == machine_.changes || is_held(&warp)) return false;
    return warp.dozes_on.empty() || !dozes(warp);
  }

  bool is_standing(Warp& warp) {
    const bool is_so = stands(warp);
    if (is_so && roused_at_ == machine_.changes) warp.dozes_on.clear();
    return is_so;
  }

  // Whether warps doze: from now on these have turns as all others, until something changes.
  bool rouse() {
    bool found = false;
    for (Warp* warp : live_) {
      found = found || !warp->dozes_on.empty();
      warp->dozes_on.clear();
    }
    roused_at_ = machine_.changes;
    return found;
  }

  int64_t turn(Warp& warp, int64_t budget) {
    const int64_t before = machine_.changes;
    const int64_t moved = turns_.take(warp, budget);
    if (machine_.changes != before) {
      rest_.forget(warp);
      ++warp.acts;
    }
    if (roused_at_ == machine_.changes) warp.dozes_on.clear();
    ended_ = ended_ || warp.splits.empty();
    if (machine_.step > step_limit_) doubt("more steps than the limit");
    return moved;
  }

  // The warps kept back have short turns until something changes; false if nothing will.
  bool held_move() {
    const int64_t before = machine_.changes;
    while (machine_.changes == before) {
      int64_t ran = 0;
      const std::vector<Warp*> now = held_;
      for (Warp* warp : now) ran += turn(*warp, HELD_SLICE);
      bool all = true;
      for (Warp* warp : held_)
        if (!warp->splits.empty()) all = rest_.look(*warp) && all;
      if (!ran || all) break;
    }
    retire();
    return machine_.changes != before;
  }

  void some_operations() {
    while (!machine_.engine.empty() && machine_.rng.real() < 0.5) advance();
  }

  bool advance() {
    ++machine_.changes;
    return machine_.engine.advance();
  }

  // Let something happen that need not have happened yet; false if there is nothing.
  bool release() {
    if (!machine_.engine.empty()) return advance();
    if (!held_.empty() && held_move()) return true;
    if (left_) {
      admit(1);
      return true;
    }
    return false;
  }

  // Let time leap ahead, if anybody reads it, since nobody can do anything before then.
  bool pass_time() {
    int64_t reads = 0;
    for (const Warp* warp : live_) reads += warp->clock_reads;
    const bool is_read = reads != clock_reads_;
    clock_reads_ = reads;
    if (!is_read || leap_ > LAST_LEAP) return false;
    const int64_t leap = std::max(leap_, FIRST_LEAP);
    machine_.leapt += leap;
    leap_ += leap;
    return true;
  }

  // Nothing can come but from a `try_wait` that answers before its phase completes.
  void stick(int64_t moved) {
    stuck_ += moved;
    bool is_certain = true;
    for (const Warp* warp : live_) is_certain = is_certain && rest_.is_certain(*warp);
    for (Warp* warp : live_) rest_.watch(*warp);
    const bool woken = wake_spuriously();
    if (is_certain || stuck_ > STUCK_NODES || !(moved || woken)) settle_or_doubt();
  }

  // Let every suspended `try_wait` answer "not yet".
  bool wake_spuriously() {
    bool woken = false;
    for (Warp* warp : live_) {
      for (const auto& split : warp->splits) {
        if (!split->waits || !split->wait.spurious || split->token || split->remembered) continue;
        split->waits = false;
        split->token = TOKEN_NOT_YET;
        warp->asleep_at = NEVER;
        warp->stopped = false;
        woken = true;
      }
    }
    return woken;
  }

  // A deadlock, unless a warp changes something while they all come to rest.
  void settle_or_doubt() {
    const int64_t before = machine_.changes;
    for (int64_t i = 0; i < SETTLING_ROUNDS; ++i) {
      int64_t moved = round();
      const std::vector<Warp*> now = held_;
      for (Warp* warp : now) moved += turn(*warp, SLICE);
      if (machine_.changes != before) return;
      if (!moved) break;
    }
    doubt("a deadlock");
  }

  // -- clusters -----------------------------------------------------------------------------

  void admit(int count) {
    for (; count > 0 && left_; --count) {
      Cluster& cluster = make_cluster();
      ++machine_.changes;
      for (const auto& cta : cluster.ctas) {
        for (const auto& warp : cta->warps) {
          live_.push_back(warp.get());
          if (cta->rank == schedule_.held_rank && warp->index == schedule_.held_warp)
            held_.push_back(warp.get());
        }
      }
    }
  }

  Cluster& make_cluster() {
    const Shape& shape = machine_.shape;
    const int64_t number = taken_++;
    --left_;
    const int first[3] = {
        static_cast<int>(number % counts_[0]) * shape.cluster[0],
        static_cast<int>(number / counts_[0] % counts_[1]) * shape.cluster[1],
        static_cast<int>(number / (int64_t{counts_[0]} * counts_[1])) * shape.cluster[2]};
    machine_.resident.push_back(std::make_unique<Cluster>());
    Cluster& cluster = *machine_.resident.back();
    for (int k = 0; k < shape.cluster[2]; ++k)
      for (int j = 0; j < shape.cluster[1]; ++j)
        for (int i = 0; i < shape.cluster[0]; ++i)
          make_cta(cluster, first[0] + i, first[1] + j, first[2] + k);
    cluster.key = cluster.ctas.front()->number;
    cluster.present = static_cast<int64_t>(cluster.ctas.size()) * shape.threads;
    for (const auto& cta : cluster.ctas)
      for (int index = 0; index < (shape.threads + 31) / 32; ++index) make_warp(*cta, index);
    return cluster;
  }

  void make_cta(Cluster& cluster, int x, int y, int z) {
    const Shape& shape = machine_.shape;
    auto made = std::make_unique<Cta>();
    Cta& cta = *made;
    cta.machine = &machine_;
    cta.cluster = &cluster;
    cta.x = x, cta.y = y, cta.z = z;
    cta.number = x + shape.grid[0] * (y + shape.grid[1] * z);
    cta.rank = static_cast<int>(cluster.ctas.size());
    cta.shared.make(SHARED_START + shape.shared_bytes + 64,
                    machine_.new_unit(Kind::SHARED, 0, cta.number));
    cta.shared.open(SHARED_START, shape.shared_bytes);
    cta.may_have_neighbour =
        2 * int64_t{SHARED_START + shape.shared_bytes} <= shape.multiprocessor_shared_bytes;
    cta.tensor.unit =
        machine_.new_unit(Kind::TENSOR, TENSOR_LANES / 16 * TENSOR_COLUMNS, cta.number);
    cta.tensor.uses = machine_.new_unit(Kind::PAIR_USE, TENSOR_COLUMNS / 32, cta.number);
    cta.tensor.ends = machine_.new_unit(Kind::PAIR_ALLOC, TENSOR_COLUMNS / 32, cta.number);
    cta.present = shape.threads;
    cluster.ctas.push_back(std::move(made));
  }

  void make_warp(Cta& cta, int index) {
    const Shape& shape = machine_.shape;
    auto made = std::make_unique<Warp>();
    Warp& warp = *made;
    warp.cta = &cta;
    warp.machine = &machine_;
    warp.index = index;
    warp.agent = machine_.new_agent(cta, true);
    const int lanes = std::min(shape.threads - index * WIDTH, WIDTH);
    warp.alive = lanes == WIDTH ? EVERY : (Mask{1} << lanes) - 1;
    blank(warp);
    warp.local_bytes = shape.local_bytes;
    warp.local.make(uint64_t{WIDTH} * shape.local_bytes + 16,
                    machine_.new_unit(Kind::LOCAL, 0, cta.number));
    if (shape.local_bytes) warp.local.open(0, uint64_t{WIDTH} * shape.local_bytes);
    std::fill(warp.arrivals, warp.arrivals + WIDTH, NOT_ARRIVED);
    warp.specials.resize(machine_.program->specials.size());
    warp.splits.push_back(std::make_unique<Split>());
    warp.splits.front()->mask = warp.alive;
    warp.splits.front()->every = warp.alive == EVERY;
    cta.warps.push_back(std::move(made));
  }

  // Registers that were never written: all ones, predicates false.
  void blank(Warp& warp) {
    const Program& program = *machine_.program;
    uint8_t* file = warp.file.make(program.file_bytes);
    std::memset(file, 0, program.mask_bytes);
    for (const Blank& blank : program.blanks)
      std::memset(file + blank.begin, 0xff, blank.end - blank.begin);
    warp.landing_of.assign(program.widths.size(), -1);
    warp.kept.begin(program, warp.file);
  }

  // Let go of warps and clusters that have ended; bring in the next ones.
  void retire() {
    if (!ended_) return;
    ended_ = false;
    const auto is_over = [](const Warp* warp) { return warp->splits.empty(); };
    live_.erase(std::remove_if(live_.begin(), live_.end(), is_over), live_.end());
    held_.erase(std::remove_if(held_.begin(), held_.end(), is_over), held_.end());
    auto& resident = machine_.resident;
    for (size_t i = 0; i < resident.size();) {
      if (!has_ended(*resident[i])) {
        ++i;
        continue;
      }
      end(*resident[i]);
      gone_.push_back(std::move(resident[i]));
      resident.erase(resident.begin() + i);
      if (gone_.size() > KEPT) gone_.erase(gone_.begin());
    }
    admit(schedule_.resident - static_cast<int>(resident.size()));
  }

  static bool has_ended(const Cluster& cluster) {
    for (const auto& cta : cluster.ctas)
      for (const auto& warp : cta->warps)
        if (!warp->splits.empty()) return false;
    return true;
  }

  // The CTAs of a cluster have ended: what they left in flight takes effect now.
  void end(Cluster& cluster) {
    for (const OperationPtr& operation : machine_.engine.in_flight()) {
      if (operation->warp->cta->cluster != &cluster) continue;
      if (!operation->harmless) doubt("an operation in flight when its CTA ends");
      machine_.engine.finish(operation);
    }
    for (const auto& cta : cluster.ctas) exited(*cta);
  }

  void exited(Cta& cta) {
    if (!cta.tensor.allocations.empty()) doubt("tensor memory that was never deallocated");
    for (const auto& ask : cta.on_end) ask();
    std::vector<int> agents;
    for (const auto& warp : cta.warps) agents.push_back(warp->agent);
    agents.insert(agents.end(), cta.agents.begin(), cta.agents.end());
    ++machine_.changes;
    machine_.bus.exited(cta.number, agents,
                        {&cta.shared.unit, &cta.tensor.unit, &cta.tensor.uses, &cta.tensor.ends});
  }

  static constexpr size_t KEPT = 4;  // clusters that have ended, for what may still point at them

  Machine& machine_;
  const Schedule schedule_;
  const int64_t step_limit_;
  Turns turns_;
  Rest rest_;
  std::vector<Warp*> live_, held_;
  std::vector<std::unique_ptr<Cluster>> gone_;
  int counts_[3];
  int64_t taken_ = 0, left_ = 0;
  bool ended_ = false;
  int64_t idle_ = 0, stuck_ = 0, leap_ = 0, clock_reads_ = 0;
  int64_t roused_at_ = NEVER;
};

}  // namespace kernelpack
