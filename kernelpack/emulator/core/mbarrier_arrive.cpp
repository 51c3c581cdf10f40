// mbarrier.init, inval, expect_tx, complete_tx, arrive and what they return (PTX ISA 9.7.13.15;
// semantics/mbarrier_arrive.py is the definition).
#include "mbarriers.hpp"

namespace kernelpack {
namespace {

using mbarrier::Place;

// How an arrival is written, in `Instr::arg`.
enum ArriveArg { ARRIVE_HOW = 0, ARRIVE_VALUE = 1 };  // `VALUE`: the source of the count, or -1
constexpr int64_t IS_DROP = 1, EXPECTS = 2, IS_RELAXED = 4, OF_CLUSTER = 8;

// -- init and inval ------------------------------------------------------------------------------

void initialise_one(Warp& warp, int lane, uint64_t address, uint32_t count) {
  Cta& cta = peer(warp, mbarrier::rank_of(address));
  const uint32_t offset = mbarrier::offset_of(address);
  if (offset % mbarrier::BYTES || offset + mbarrier::BYTES > cta.shared.size)
    doubt("an mbarrier at an address that holds none");
  if (count < 1 || count > mbarrier::LIMIT) doubt("an mbarrier of no count, or of one too large");
  const uint64_t where = offset;
  told(warp, cta.shared, &where, 1, mbarrier::BYTES, true, Sync{}, Mask{1} << lane, Use::INIT);
  cta.shared.check_write(offset, mbarrier::BYTES);
  std::memset(cta.shared.bytes + offset, 0, mbarrier::BYTES);
  MBarrier& state = cta.mbarriers[offset];
  if (state.is_there) doubt("an mbarrier that is initialised again");
  state.expected = state.pending = count;
  state.tx = state.phase = 0;
  state.is_there = true;
  ++cta.machine->changes;
}

void run_mbarrier_init(Warp& warp, const Instr& instr, Mask mask) {
  warp.machine->current = &warp;
  uint64_t at[WIDTH];
  uint32_t room[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  const uint32_t* count = values(warp, instr.source(1), room);
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    initialise_one(warp, lane, at[lane], count[lane]);
  }
}

// Who uses another mbarrier there must know of its initialisation, so all uses are forgotten.
void run_mbarrier_inval(Warp& warp, const Instr& instr, Mask mask) {
  uint64_t at[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    const Place found = mbarrier::find(warp, at[lane]);
    const uint64_t where = found.offset;
    told(warp, found.cta->shared, &where, 1, mbarrier::BYTES, true, Sync{}, Mask{1} << lane,
         Use::INVAL);
    found.state->is_there = false;
    for (uint64_t& seen : found.state->used_by) seen = 0;
  }
}

bool prepare_mbarrier_init(Instr& instr) {
  instr.run = run_mbarrier_init;
  return instr.form->sources.size() == 2;
}
ROW("mbarrier.init", prepare_mbarrier_init);

bool prepare_mbarrier_inval(Instr& instr) {
  instr.run = run_mbarrier_inval;
  return instr.form->sources.size() == 1;
}
ROW("mbarrier.inval", prepare_mbarrier_inval);

// -- expect_tx and complete_tx -------------------------------------------------------------------

template <typename Change>
void for_each_barrier(Warp& warp, const Instr& instr, Mask mask, Change change) {
  uint64_t at[WIDTH];
  uint32_t room[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  const uint32_t* size = values(warp, instr.source(1), room);
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    change(mbarrier::find(warp, at[lane]), size[lane]);
  }
}

// It tells nobody, and counts as no change of the machine.
void run_expect_tx(Warp& warp, const Instr& instr, Mask mask) {
  for_each_barrier(warp, instr, mask, [](const Place& found, uint32_t size) {
    mbarrier::expect_tx(*found.state, size);
  });
}

void run_complete_tx(Warp& warp, const Instr& instr, Mask mask) {
  for_each_barrier(warp, instr, mask, [&](const Place& found, uint32_t size) {
    const auto change = [size](MBarrier& state) { mbarrier::complete_tx(state, size); };
    mbarrier::update(found, warp.agent, change, true);
  });
}

bool prepare_expect_tx(Instr& instr) {
  instr.run = run_expect_tx;
  return instr.form->sources.size() == 2;
}
ROW("mbarrier.expect_tx", prepare_expect_tx);

bool prepare_complete_tx(Instr& instr) {
  instr.run = run_complete_tx;
  return instr.form->sources.size() == 2;
}
ROW("mbarrier.complete_tx", prepare_complete_tx);

// -- arrive
// ----------------------------------------------------------------------------------------

uint64_t token_of(const mbarrier::Before& before) {
  return static_cast<uint64_t>(before.phase) << 20 | static_cast<uint64_t>(before.pending);
}

struct Arrival {
  bool is_drop, expects, relaxed;
  Scope scope;

  explicit Arrival(int64_t how)
      : is_drop(how & IS_DROP),
        expects(how & EXPECTS),
        relaxed(how & IS_RELAXED),
        scope(how & OF_CLUSTER ? Scope::CLUSTER : Scope::CTA) {}

  // `value` counts bytes where the arrival expects them, else arrivals; -1 where none is written.
  void change(MBarrier& state, int64_t value) const {
    int64_t count = value < 0 ? 1 : value;
    if (expects) {
      mbarrier::expect_tx(state, value < 0 ? 0 : value);
      count = 1;
    }
    mbarrier::check_count(state, count);
    if (is_drop) state.expected -= count;
    state.pending -= count;
    mbarrier::settle(state);
  }
};

template <typename T>
bool same_in_all(const T* values, Mask mask) {
  const T first = values[first_lane(mask)];
  bool same = true;
  for (int lane = 0; lane < WIDTH; ++lane) same &= values[lane] == first || !(mask >> lane & 1);
  return same;
}

// Arrivals of all lanes at one mbarrier, in one phase: one by one they would do the same.
bool arrive_together(Warp& warp, const Arrival& how, Mask mask, const uint64_t* at,
                     const uint32_t* value, uint64_t* tokens) {
  if (!(mask & (mask - 1)) || !same_in_all(at, mask)) return false;
  const Place found = mbarrier::find(warp, at[first_lane(mask)]);
  int64_t each = 1;
  if (value) each = same_in_all(value, mask) ? value[first_lane(mask)] : 0;
  const int64_t count = each * __builtin_popcount(mask);
  if (!mbarrier::fits(*found.state, count)) return false;
  const auto change = [count](MBarrier& state) { mbarrier::arrive(state, count); };
  uint64_t token =
      token_of(mbarrier::update(found, warp.agent, change, how.relaxed, how.scope, mask));
  for (Mask left = mask; left; left &= left - 1, token -= each) tokens[first_lane(left)] = token;
  return true;
}

void arrive_one_by_one(Warp& warp, const Arrival& how, Mask mask, const uint64_t* at,
                       const uint32_t* value, uint64_t* tokens) {
  mbarrier::Together together;
  for (Mask left = mask; left; left &= left - 1) {
    const int lane = first_lane(left);
    const Place found = mbarrier::find(warp, at[lane]);
    const int64_t given = value ? int64_t{value[lane]} : -1;
    const auto change = [&](MBarrier& state) { how.change(state, given); };
    const mbarrier::Before before =
        mbarrier::update(found, warp.agent, change, how.relaxed, how.scope, Mask{1} << lane);
    together.look(found.state, before.phase);
    tokens[lane] = token_of(before);
  }
}

void run_arrive(Warp& warp, const Instr& instr, Mask mask) {
  const Arrival how(instr.arg[ARRIVE_HOW]);
  warp.machine->current = &warp;
  settle(warp);
  uint64_t at[WIDTH], tokens[WIDTH] = {};
  uint32_t room[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  const uint32_t* value = nullptr;
  if (instr.arg[ARRIVE_VALUE] >= 0) value = values(warp, instr.source(1), room);
  const bool is_plain = !how.is_drop && !how.expects;
  if (!is_plain || !arrive_together(warp, how, mask, at, value, tokens))
    arrive_one_by_one(warp, how, mask, at, value, tokens);
  if (!instr.form->targets.empty()) put(warp, instr.target(), tokens, mask);
}

bool prepare_arrive(Instr& instr) {
  const Form& form = *instr.form;
  if (form.has("noComplete") || form.sources.empty() || form.sources.size() > 2) return false;
  const bool is_drop = form.modifiers[0] == "arrive_drop";
  instr.arg[ARRIVE_HOW] = (is_drop ? IS_DROP : 0) | (form.has("expect_tx") ? EXPECTS : 0) |
                          (form.has("relaxed") ? IS_RELAXED : 0) |
                          (form.has("cluster") ? OF_CLUSTER : 0);
  instr.arg[ARRIVE_VALUE] = form.sources.size() == 2 ? 1 : -1;
  instr.run = run_arrive;
  return true;
}
ROW("mbarrier.arrive mbarrier.arrive_drop", prepare_arrive);

void run_pending_count(Warp& warp, const Instr& instr, Mask mask) {
  uint64_t room[WIDTH];
  uint32_t counts[WIDTH];
  const uint64_t* token = values(warp, instr.source(0), room);
  for (int lane = 0; lane < WIDTH; ++lane)
    counts[lane] = static_cast<uint32_t>(token[lane] & mbarrier::LIMIT);
  put(warp, instr.target(), counts, mask);
}

bool prepare_pending_count(Instr& instr) {
  instr.run = run_pending_count;
  return true;
}
ROW("mbarrier.pending_count", prepare_pending_count);

}  // namespace
}  // namespace kernelpack
