// `cp.async`: 4 to 16 bytes a thread from global to shared memory (PTX ISA 9.7.9.25.3;
// semantics/copy_async.py is the definition).
#include <algorithm>

#include "copies.hpp"

namespace kernelpack {
namespace {

// The copies of a warp; they write as its threads would (9.7.9.25.3: not an async proxy).
Doer async_doer(Warp& warp) {
  return {warp.cta->agent(Cta::Agent::CP_ASYNC, warp.index), &warp, Proxy::GENERIC};
}

// The copies that the lanes of one instruction start, `size` bytes each, `wanted` of them from
// afar.
struct AsyncCopies {
  int count = 0, size;
  uint32_t rank;
  uint32_t to[WIDTH];
  uint64_t from[WIDTH];
  uint32_t wanted[WIDTH];
  Doer doer;

  void operator()() const {
    uint8_t data[WIDTH * 16] = {};
    copies::Cells& cells = copies::room(doer).cells;
    read(cells, data);
    write(peer(*doer.warp, rank).shared, cells, data);
  }

  // Whole words in order; where a source ends within one, each word once, sorted.
  void read(copies::Cells& cells, uint8_t* data) const {
    const Memory& memory = doer.warp->machine->memory;
    bool whole = true;
    cells.clear();
    for (int i = 0; i < count; ++i) {
      const uint64_t offset = from[i] - memory.base;
      memory.check_read(offset, wanted[i]);
      std::memcpy(data + i * size, memory.bytes + offset, wanted[i]);
      for (uint32_t byte = 0; byte < wanted[i]; byte += 4)
        cells.push_back(static_cast<uint32_t>((offset + byte) / 4));
      whole &= wanted[i] % 4 == 0;
    }
    if (!whole) {
      std::sort(cells.begin(), cells.end());
      cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
    }
    copies::tell(memory, cells, doer, false);
  }

  void write(Memory& shared, copies::Cells& cells, const uint8_t* data) const {
    cells.clear();
    for (int i = 0; i < count; ++i) {
      shared.check_write(to[i], size);
      for (int word = 0; word < size / 4; ++word) cells.push_back(to[i] / 4 + word);
    }
    copies::tell(shared, cells, doer, true);
    for (int i = 0; i < count; ++i) std::memcpy(shared.bytes + to[i], data + i * size, size);
    ++doer.warp->machine->changes;
  }
};

enum AsyncArg { ASYNC_SIZE = 0, ASYNC_IS_PARTIAL = 1 };

Step run_copy_async(Warp& warp, Split&, const Instr& instr, Mask mask) {
  AsyncCopies started;
  started.size = static_cast<int>(instr.arg[ASYNC_SIZE]);
  uint64_t to[WIDTH], from[WIDTH];
  uint32_t room[WIDTH];
  addresses(warp, instr.form->sources[0], to);
  addresses(warp, instr.form->sources[1], from);
  const uint32_t* wanted = nullptr;
  if (instr.arg[ASYNC_IS_PARTIAL]) wanted = values(warp, instr.source(2), room);
  const uint32_t rank = static_cast<uint32_t>(to[first_lane(mask)] >> RANK_SHIFT);
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left), i = started.count++;
    if ((to[lane] | from[lane]) & (started.size - 1)) doubt("a cp.async that is not aligned");
    if (to[lane] >> RANK_SHIFT != rank) doubt("a cp.async to several CTAs");
    started.to[i] = mbarrier::offset_of(to[lane]);
    started.from[i] = from[lane];
    started.wanted[i] = wanted ? wanted[lane] : started.size;
    if (started.wanted[i] > static_cast<uint32_t>(started.size))
      doubt("a cp.async of more bytes than it has");
  }
  started.rank = rank;
  started.doer = async_doer(warp);
  copies::in_group<copies::AsyncGroups>(started.doer, started);
  return Step::DONE;
}

bool prepare_copy_async(Instr& instr) {
  const Form& form = *instr.form;
  if (form.constants.size() < 3 || form.sources.size() < 2) return false;
  const int64_t size = form.constants[2];
  const bool is_cached_in_l2 = form.modifiers.size() > 1 && form.modifiers[1] == "cg";
  if ((size != 4 && size != 8 && size != 16) || (is_cached_in_l2 && size != 16)) return false;
  instr.arg[ASYNC_SIZE] = size;
  instr.arg[ASYNC_IS_PARTIAL] = form.sources.size() - form.has("L2::cache_hint") == 3;
  instr.control = run_copy_async;
  return true;
}
ROW("cp.async.ca cp.async.cg", prepare_copy_async);

// -- groups: here they are the whole warp's ------------------------------------------------------

Step run_async_commit(Warp& warp, Split&, const Instr&, Mask) {
  warp.units.of<copies::AsyncGroups>().commit(EVERY);
  return Step::DONE;
}

Step run_async_wait(Warp& warp, Split&, const Instr& instr, Mask) {
  warp.units.of<copies::AsyncGroups>().finish(warp, instr.arg[0], EVERY);
  return Step::DONE;
}

Step run_async_wait_all(Warp& warp, Split&, const Instr&, Mask) {
  auto& groups = warp.units.of<copies::AsyncGroups>();
  groups.commit(EVERY);
  groups.finish(warp, 0, EVERY);
  return Step::DONE;
}

bool prepare_async_commit(Instr& instr) {
  instr.control = run_async_commit;
  return true;
}
ROW("cp.async.commit_group", prepare_async_commit);

bool prepare_async_wait(Instr& instr) {
  if (instr.form->constants.empty() || instr.form->constants[0] < 0) return false;
  instr.arg[0] = instr.form->constants[0];
  instr.control = run_async_wait;
  return true;
}
ROW("cp.async.wait_group", prepare_async_wait);

bool prepare_async_wait_all(Instr& instr) {
  instr.control = run_async_wait_all;
  return true;
}
ROW("cp.async.wait_all", prepare_async_wait_all);

// -- cp.async.mbarrier.arrive (9.7.13.15.15)
// -------------------------------------------------------

// The arrivals of the lanes of one instruction, which come when the copies before it are done.
struct AsyncArrivals {
  std::vector<OperationPtr> before;
  int count = 0;
  mbarrier::Place at[WIDTH];
  Doer doer;

  bool is_one() const {
    for (int i = 1; i < count; ++i)
      if (at[i].state != at[0].state) return false;
    return count > 1;
  }

  void operator()() const {
    for (const OperationPtr& operation : before) doer.warp->machine->engine.finish(operation);
    if (is_one() && mbarrier::fits(*at[0].state, count)) {
      mbarrier::update_arrive(at[0], doer.agent, count);
      return;
    }
    mbarrier::Together together;
    for (int i = 0; i < count; ++i)
      together.look(at[i].state, mbarrier::update_arrive(at[i], doer.agent, 1).phase);
  }
};

// Without `.noinc` the arrival is one that was added for it.
void expect_arrivals(const AsyncArrivals& arrivals) {
  for (int i = 0; i < arrivals.count; ++i) {
    MBarrier& state = *arrivals.at[i].state;
    if (state.pending >= mbarrier::LIMIT) doubt("more pending arrivals than an mbarrier counts");
    ++state.pending;
  }
}

Step run_async_arrive(Warp& warp, Split&, const Instr& instr, Mask mask) {
  uint64_t at[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  AsyncArrivals arrivals;
  for (Mask left = mask; left; left &= left - 1)
    arrivals.at[arrivals.count++] = mbarrier::find(warp, at[first_lane(left)]);
  if (!instr.arg[0]) expect_arrivals(arrivals);
  arrivals.doer = async_doer(warp);
  arrivals.before = warp.units.of<copies::AsyncGroups>().in_flight();
  const Doer doer = arrivals.doer;
  copies::alone(doer, std::move(arrivals));
  return Step::DONE;
}

bool prepare_async_arrive(Instr& instr) {
  if (instr.form->sources.size() != 1) return false;
  instr.arg[0] = instr.form->has("noinc");
  instr.control = run_async_arrive;
  return true;
}
ROW("cp.async.mbarrier.arrive", prepare_async_arrive);

}  // namespace
}  // namespace kernelpack
