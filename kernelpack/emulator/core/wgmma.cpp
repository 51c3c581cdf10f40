// wgmma: matrices multiplied by a warpgroup, asynchronously (semantics/wgmma.py, warpgroup.py,
// models/wgmma.py; PTX ISA 9.7.15).
//
// Each warp does its 16 rows by itself, but an instruction is over when every warp of the warpgroup
// has issued and done its part. The accumulators are registers that are filled when it was waited
// for; until then a later wgmma adds to the numbers of the one before it.
#include <array>
#include <deque>

#include "landings.hpp"
#include "matrix_operands.hpp"
#include "truncated_sums.hpp"

namespace kernelpack {

namespace wgmma {

constexpr int WGMMA_ROWS = 16, WARPGROUP = 4;

struct WgmmaForm {
  int n, k;
  Element a, b;
  bool negate_a, negate_b, a_transposed, b_transposed, in_registers;
};

// One wgmma of one warp, from its issue until it was waited for.
struct WgmmaJob {
  const WgmmaForm* form;
  Warp* warp;
  int agent;
  int64_t number = 0;
  uint64_t a = 0, b = 0;
  std::array<uint32_t, 4 * WIDTH> a_registers;
  bool accumulates = false;
  std::shared_ptr<WgmmaJob> before;  // it adds to the numbers of this one
  const Operand* targets = nullptr;  // else to these registers
  OperationPtr operation;
  int32_t landing = NO_LANDING;
  std::vector<float> numbers;  // of D, 16 rows
};
using WgmmaJobPtr = std::shared_ptr<WgmmaJob>;

// What a warp remembers.
struct WgmmaState {
  enum Fence : uint8_t { NONE, FENCED, WAITED } fence = NONE;
  std::deque<WgmmaJobPtr> landings;
  std::vector<int64_t> committed;  // how many wgmmas each group has
  int64_t open = 0, waited = 0;
};

// What a CTA remembers: which instructions the warps of a warpgroup have run, from the one that is
// last on; and every wgmma of each warp, in order.
struct WarpgroupSteps {
  std::deque<int32_t> places;
  int64_t dropped = 0;
  int64_t done[WARPGROUP] = {};
};
struct WgmmaOfCta {
  std::vector<WarpgroupSteps> steps;
  std::vector<std::vector<OperationPtr>> issued;
};

WgmmaOfCta& of_cta(Cta& cta) {
  WgmmaOfCta& found = cta.units.of<WgmmaOfCta>();
  if (found.issued.empty()) {
    found.issued.resize(cta.warps.size());
    found.steps.resize(cta.warps.size() / WARPGROUP + 1);
  }
  return found;
}

// A warp runs one of these instructions, which is the same as the others' of that number.
void step(Warp& warp) {
  WarpgroupSteps& steps = of_cta(*warp.cta).steps[warp.index / WARPGROUP];
  const int64_t number = steps.done[warp.index % WARPGROUP]++ - steps.dropped;
  if (number == static_cast<int64_t>(steps.places.size()))
    steps.places.push_back(warp.at);
  else if (steps.places[number] != warp.at)
    doubt("warps of a warpgroup run other wgmma instructions");
  if (*std::min_element(steps.done, steps.done + WARPGROUP) > steps.dropped) {
    steps.places.pop_front();
    ++steps.dropped;
  }
}

// -- numbers and registers -------------------------------------------------------------------

// Register r of lane t holds row t / 4 + 8 (r / 2 % 2), column 8 (r / 4) + 2 (t % 4) + r % 2.
void row_to_numbers(const uint32_t* lanes, int r, float* numbers, int n) {
  float* first = numbers + 8 * (r / 2 % 2) * n + 8 * (r / 4) + r % 2;
  for (int t = 0; t < WIDTH; ++t) std::memcpy(first + t / 4 * n + 2 * (t % 4), lanes + t, 4);
}

void numbers_to_row(const float* numbers, int r, uint32_t* lanes, int n) {
  const float* first = numbers + 8 * (r / 2 % 2) * n + 8 * (r / 4) + r % 2;
  for (int t = 0; t < WIDTH; ++t) std::memcpy(lanes + t, first + t / 4 * n + 2 * (t % 4), 4);
}

void accumulator_of(WgmmaJob& job) {
  const int n = job.form->n;
  job.numbers.resize(WGMMA_ROWS * n);
  if (!job.accumulates) return;
  if (job.before) {
    job.numbers = job.before->numbers;
    job.before = nullptr;
    return;
  }
  const auto& items = job.targets->items;
  for (size_t r = 0; r < items.size(); ++r)
    row_to_numbers(job.warp->lanes<uint32_t>(items[r].offset), static_cast<int>(r),
                   job.numbers.data(), n);
}

// A of one warp from its four registers: elements of 4 bytes a register, in columns of 4 lanes.
void decode_registers(const WgmmaJob& job, double* to) {
  const int each = 32 / bits_of(job.form->a), k = job.form->k;
  uint8_t bytes[WGMMA_ROWS * 32];
  for (int r = 0; r < 4; ++r)
    for (int t = 0; t < WIDTH; ++t) {
      const int row = t / 4 + 8 * (r % 2), column = each * (t % 4 + 4 * (r / 2));
      std::memcpy(bytes + row * 32 + column * bits_of(job.form->a) / 8,
                  &job.a_registers[r * WIDTH + t], 4);
    }
  Region packed;
  packed.rows = WGMMA_ROWS;
  packed.row_bytes = 32;
  for (uint32_t chunk = 0; chunk < 2 * WGMMA_ROWS; ++chunk) packed.chunks.push_back(16 * chunk);
  decode_operand(job.form->a, packed, bytes, {k, 1}, to);
}

// -- effect ----------------------------------------------------------------------------------

const Region& shared_region(const WgmmaJob& job, uint64_t raw, bool transposed, uint32_t first,
                            uint32_t rows, Element type) {
  const uint8_t element_bytes = transposed ? bits_of(type) / 8 : 0;
  return region({raw, first, rows, 32, element_bytes, MatrixUnit::WGMMA});
}

struct WgmmaSides {
  Side a, b;
};

void take_effect(WgmmaJob& job) {
  static thread_local std::unique_ptr<WgmmaSides> sides = std::make_unique<WgmmaSides>();
  const WgmmaForm& form = *job.form;
  Cta& cta = *job.warp->cta;
  const Region& of_b = shared_region(job, job.b, form.b_transposed, 0, form.n, form.b);
  tell_operand(cta, of_b, job.agent);
  decode_operand(form.b, of_b, cta.shared.bytes, {1, form.n}, sides->b.values);
  if (form.in_registers) {
    decode_registers(job, sides->a.values);
  } else {
    const uint32_t first = WGMMA_ROWS * (job.warp->index % WARPGROUP);
    const Region& of_a = shared_region(job, job.a, form.a_transposed, first, WGMMA_ROWS, form.a);
    tell_operand(cta, of_a, job.agent);
    decode_operand(form.a, of_a, cta.shared.bytes, {form.k, 1}, sides->a.values);
  }
  if (form.negate_a) negate(sides->a, WGMMA_ROWS * form.k);
  if (form.negate_b) negate(sides->b, form.n * form.k);
  accumulator_of(job);
  const double *left = sides->a.values, *right = sides->b.values;
  Range a, b;
  a.fraction = fraction_bits(form.a);
  b.fraction = fraction_bits(form.b);
  a.add(left, WGMMA_ROWS * form.k);
  b.add(right, form.n * form.k);
  const Product product = product_of(left, a, right, b, WGMMA_ROWS, form.n, form.k, form.n);
  if (bits_of(form.a) == 8) {
    sum_truncated(product, least_exponent(form.a), least_exponent(form.b), job.accumulates,
                  job.numbers.data());
  } else {
    float* rows[WGMMA_ROWS];
    for (int row = 0; row < WGMMA_ROWS; ++row) rows[row] = job.numbers.data() + row * form.n;
    multiply(product, rows, 1, job.accumulates);
  }
  cta.machine->bus.release({job.agent, {Channel::OPERATION, job.number}});
}

// -- instructions ----------------------------------------------------------------------------

// The wgmma whose numbers a new one adds to, where its accumulators are still in flight; null where
// they are in registers.
WgmmaJobPtr job_before(Warp& warp, const WgmmaForm& form, const Operand& targets) {
  const int32_t number = landing_at(warp, targets.items[0].index);
  for (const Slot& slot : targets.items)
    if (landing_at(warp, slot.index) != number) doubt("accumulators of which some are in flight");
  if (number == NO_LANDING) return nullptr;
  const auto& held = warp.landings.at(number)->registers;
  size_t at = 0;
  for (size_t row = 0; row < targets.items.size(); ++row, ++at) {
    const std::pair<int32_t, int32_t> wanted{targets.items[row].index, static_cast<int32_t>(row)};
    if (at < held.size() && held[at] == wanted) continue;
    at = std::find(held.begin(), held.end(), wanted) - held.begin();
    if (at == held.size()) doubt("accumulators in flight in another order");
  }
  for (const WgmmaJobPtr& job : warp.units.of<WgmmaState>().landings)
    if (job->landing == number && job->form->n == form.n) return job;
  doubt("accumulators in flight of another instruction");
}

void read_a(Warp& warp, const Instr& instr, const WgmmaForm& form, int lane, WgmmaJob& job) {
  const Operand& from = instr.form->sources[0];
  if (!form.in_registers) {
    uint64_t room[WIDTH];
    job.a = values<uint64_t>(warp, from.items[0], room)[lane];
    return;
  }
  for (int r = 0; r < 4; ++r) {
    uint32_t room[WIDTH];
    check_landed(warp, from.items[r]);
    std::memcpy(job.a_registers.data() + r * WIDTH, values<uint32_t>(warp, from.items[r], room),
                4 * WIDTH);
  }
}

Step multiply_async(Warp& warp, Split&, const Instr& instr, Mask mask) {
  const WgmmaForm& form = *static_cast<const WgmmaForm*>(instr.plan.get());
  Machine& machine = *warp.machine;
  if (machine.exact) doubt("sums as hardware makes them");
  step(warp);
  WgmmaState& state = warp.units.of<WgmmaState>();
  if (state.fence == WgmmaState::NONE) doubt("the first wgmma has no wgmma.fence before it");
  const int lane = first_lane(mask);
  auto job = std::make_shared<WgmmaJob>();
  job->form = &form;
  job->warp = &warp;
  read_a(warp, instr, form, lane, *job);
  uint64_t room[WIDTH];
  job->b = values<uint64_t>(warp, instr.source(1), room)[lane];
  job->accumulates = predicate(warp, instr.source(2)) >> lane & 1;
  job->targets = &instr.form->targets[0];
  if (job->accumulates) job->before = job_before(warp, form, *job->targets);
  job->agent = warp.cta->agent(Cta::Agent::WGMMA, warp.index);
  job->number = machine.engine.count + 1;
  Engine::How how;
  how.queue = {QueueKey::WGMMA, warp.agent};
  job->operation = machine.engine.issue(warp, job->agent, [job] { take_effect(*job); }, how);
  of_cta(*warp.cta).issued[warp.index].push_back(job->operation);
  ++machine.changes;
  ++state.open;
  job->landing = take_off(warp, *job->targets);
  state.landings.push_back(std::move(job));
  return Step::DONE;
}

Step fence_async(Warp& warp, Split&, const Instr&, Mask) {
  step(warp);
  warp.units.of<WgmmaState>().fence = WgmmaState::FENCED;
  return Step::DONE;
}

Step commit_group(Warp& warp, Split&, const Instr&, Mask) {
  step(warp);
  WgmmaState& state = warp.units.of<WgmmaState>();
  state.committed.push_back(state.open);
  state.open = 0;
  return Step::DONE;
}

// Whether every warp of the warpgroup has issued so many.
bool have_issued(Cta& cta, int index, int64_t count) {
  const auto& issued = of_cta(cta).issued;
  const size_t first = index / WARPGROUP * WARPGROUP;
  for (size_t i = first; i < std::min(first + WARPGROUP, issued.size()); ++i)
    if (static_cast<int64_t>(issued[i].size()) < count) return false;
  return true;
}

// Those with numbers `begin` to `end` of the warpgroup are over, for every warp's rows.
void finish_jobs(Warp& warp, WgmmaState& state, int64_t begin, int64_t end) {
  Machine& machine = *warp.machine;
  for (int64_t i = begin; i < end && !state.landings.empty(); ++i) {
    const WgmmaJobPtr job = std::move(state.landings.front());
    state.landings.pop_front();
    machine.engine.finish(job->operation);
    machine.bus.acquire({warp.agent, {Channel::OPERATION, job->number}});
    touch_down(warp, job->landing, [&job](uint32_t* to, int32_t row) {
      numbers_to_row(job->numbers.data(), row, to, job->form->n);
    });
  }
  auto& issued = of_cta(*warp.cta).issued;
  const size_t first = warp.index / WARPGROUP * WARPGROUP;
  for (size_t i = first; i < std::min(first + WARPGROUP, issued.size()); ++i)
    for (int64_t k = begin; k < end; ++k) {
      machine.engine.finish(issued[i][k]);
      machine.bus.acquire({warp.agent, {Channel::OPERATION, issued[i][k]->number}});
    }
  state.waited = end;
}

Step wait_group(Warp& warp, Split& split, const Instr& instr, Mask) {
  WgmmaState& state = warp.units.of<WgmmaState>();
  const int64_t groups = static_cast<int64_t>(state.committed.size());
  const int64_t over = std::max<int64_t>(groups - instr.arg[0], 0);
  int64_t end = state.waited;
  for (int64_t i = 0; i < over; ++i) end += state.committed[i];
  if (!have_issued(*warp.cta, warp.index, end)) {
    split.wait_for(
        [cta = warp.cta, index = warp.index, end] { return have_issued(*cta, index, end); });
    return Step::WAIT;
  }
  step(warp);
  finish_jobs(warp, state, state.waited, end);
  state.committed.erase(state.committed.begin(), state.committed.begin() + over);
  if (state.fence != WgmmaState::NONE) state.fence = WgmmaState::WAITED;
  return Step::DONE;
}

// -- rows ------------------------------------------------------------------------------------

bool element_of(const std::string& name, Element& to) {
  if (name == "f16")
    to = Element::FP16;
  else if (name == "bf16")
    to = Element::BF16;
  else if (name == "tf32")
    to = Element::TF32;
  else if (name == "e4m3")
    to = Element::E4M3;
  else if (name == "e5m2")
    to = Element::E5M2;
  else
    return false;
  return true;
}

// The integer behind the four operands, counted from the first of these; `otherwise` where none is.
int64_t immediate(const Form& form, size_t position, int64_t otherwise) {
  return 4 + position < form.constants.size() ? form.constants[4 + position] : otherwise;
}

bool prepare_multiply_async(Instr& instr) {
  const Form& form = *instr.form;
  auto made = std::make_shared<WgmmaForm>();
  if (form.types.size() != 3 || form.types[0] != "f32" || form.has("satfinite")) return false;
  if (!element_of(form.types[1], made->a) || !element_of(form.types[2], made->b)) return false;
  if (bits_of(made->a) != bits_of(made->b) || (bits_of(made->a) != 8 && made->a != made->b))
    return false;
  const std::string shape = form.starting("m64n");
  made->n = std::stoi(shape);
  made->k = 256 / bits_of(made->a);
  if (shape.find("k" + std::to_string(made->k)) == std::string::npos) return false;
  made->in_registers = form.sources[0].is_vector;
  made->negate_a = immediate(form, 0, 1) == -1;
  made->negate_b = immediate(form, 1, 1) == -1;
  const bool both = form.constants.size() == 8;
  made->a_transposed = both && immediate(form, 2, 0) != 0;
  made->b_transposed =
      form.constants.size() > 6 && immediate(form, form.constants.size() - 5, 0) != 0;
  const Operand& targets = form.targets[0];
  if (static_cast<int>(targets.items.size()) != made->n / 2 || !are_plain_targets(targets))
    return false;
  for (const Slot& slot : targets.items)
    if (slot.of == Slot::SINK) return false;
  if (made->in_registers && form.sources[0].items.size() != 4) return false;
  instr.plan = made;
  instr.control = multiply_async;
  return true;
}

bool prepare_wait_group(Instr& instr) {
  instr.arg[0] = instr.form->constants[0];
  instr.control = wait_group;
  return instr.arg[0] != NO_CONSTANT;
}

bool prepare_fence_async(Instr& instr) {
  instr.control = fence_async;
  return true;
}

bool prepare_commit_group(Instr& instr) {
  instr.control = commit_group;
  return true;
}

ROW("wgmma.mma_async.sync", prepare_multiply_async);
ROW("wgmma.wait_group.sync", prepare_wait_group);
ROW("wgmma.fence.sync", prepare_fence_async);
ROW("wgmma.commit_group.sync", prepare_commit_group);

}  // namespace wgmma

}  // namespace kernelpack
