// tcgen05.ld, st, wait and fence: tensor memory and registers (semantics/tensor_memory.py; PTX ISA
// 9.7.16.8, 9.7.16.11).
#include "landings.hpp"
#include "tensor_areas.hpp"

namespace kernelpack {

namespace tensor_registers {

struct TensorLoad {
  OperationPtr operation;
  int32_t landing;
  std::shared_ptr<std::vector<uint32_t>> rows;
};

// What a warp remembers of its loads and stores.
struct TensorAccesses {
  std::vector<TensorLoad> loads;
  OperationPtr last_store;
  int store_agent = 0;
};

// What an instruction is: `arg[0]` its shape, `arg[1]` how many registers.
const Area& registers_of(Warp& warp, const Instr& instr, const Operand& at, Mask mask) {
  uint64_t lanes[WIDTH];
  addresses(warp, at, lanes);
  const uint32_t address = static_cast<uint32_t>(lanes[first_lane(mask)]);
  const int own = 32 * (warp.index % 4), named = lane_of(address);
  const int given = named / TENSOR_LANES == 1 ? named - TENSOR_LANES : named;
  if (given >= 32 && (given < own || given >= own + 32))
    doubt("a warp at another quadrant of tensor memory");
  const uint32_t whole =
      static_cast<uint32_t>(given < 32 ? own + given : given) << 16 | (address & 0xffff);
  const auto shape = static_cast<RegisterShape>(instr.arg[0]);
  const int count = static_cast<int>(instr.arg[1]);
  return area(area_key(AreaOf::REGISTERS, static_cast<int>(shape), count), whole,
              [=] { return registers_area(shape, count, whole); });
}

// Lane by lane, as a warp's registers of 32x32b are rows of neighbours.
void gather_rows(const uint32_t* words, const Area& where, uint32_t* rows) {
  const size_t count = where.starts.size();
  for (size_t i = 0; i < count; ++i) rows[i] = words[where.starts[i]];
}

Step load(Warp& warp, Split&, const Instr& instr, Mask mask) {
  Cta& cta = *warp.cta;
  const Area& where = registers_of(warp, instr, instr.form->sources[0], mask);
  check_columns(cta, where);
  const int agent = cta.agent(Cta::Agent::TENSOR_LOAD, warp.index);
  auto rows = std::make_shared<std::vector<uint32_t>>(where.starts.size());
  const Area* from = &where;
  const auto effect = [&cta, from, agent, rows] {
    read_area(cta, *from, agent);
    gather_rows(cta.tensor.words, *from, rows->data());
    cta.machine->bus.release({agent, {Channel::TENSOR_LOAD, agent}});
  };
  Engine::How how;
  how.queue = {QueueKey::TENSOR_LOAD, warp.agent};
  OperationPtr operation = warp.machine->engine.issue(warp, agent, effect, how);
  const int32_t landing = take_off(warp, instr.form->targets[0]);
  warp.units.of<TensorAccesses>().loads.push_back({std::move(operation), landing, std::move(rows)});
  return Step::DONE;
}

Step wait_loads(Warp& warp, Split&, const Instr&, Mask) {
  const std::vector<TensorLoad> loads = std::move(warp.units.of<TensorAccesses>().loads);
  warp.units.of<TensorAccesses>().loads.clear();
  for (const TensorLoad& each : loads) {
    warp.machine->engine.finish(each.operation);
    const int agent = each.operation->agent;
    warp.machine->bus.acquire({warp.agent, {Channel::TENSOR_LOAD, agent}});
    touch_down(warp, each.landing, [&each](uint32_t* to, int32_t row) {
      std::memcpy(to, each.rows->data() + row * WIDTH, 4 * WIDTH);
    });
  }
  return Step::DONE;
}

Step store(Warp& warp, Split&, const Instr& instr, Mask mask) {
  Cta& cta = *warp.cta;
  const Area* where = &registers_of(warp, instr, instr.form->sources[0], mask);
  const int agent = cta.agent(Cta::Agent::TENSOR_STORE, warp.index);
  const auto& items = instr.form->sources[1].items;
  auto rows = std::make_shared<std::vector<uint32_t>>(items.size() * WIDTH);
  for (size_t i = 0; i < items.size(); ++i) {
    uint32_t room[WIDTH];
    std::memcpy(rows->data() + i * WIDTH, values<uint32_t>(warp, items[i], room), 4 * WIDTH);
  }
  const auto effect = [&cta, where, agent, rows] {
    write_area(cta, *where, agent);
    for (size_t i = 0; i < rows->size(); ++i) cta.tensor.words[where->starts[i]] = (*rows)[i];
    cta.machine->bus.release({agent, {Channel::TENSOR_STORE, agent}});
  };
  Engine::How how;
  how.queue = {QueueKey::TENSOR_STORE, warp.agent};
  warp.units.of<TensorAccesses>().last_store = warp.machine->engine.issue(warp, agent, effect, how);
  return Step::DONE;
}

Step wait_stores(Warp& warp, Split&, const Instr&, Mask) {
  TensorAccesses& accesses = warp.units.of<TensorAccesses>();
  if (!accesses.last_store) return Step::DONE;
  const OperationPtr last = std::move(accesses.last_store);
  accesses.last_store = nullptr;
  warp.machine->engine.finish(last);
  warp.machine->bus.acquire({warp.agent, {Channel::TENSOR_STORE, last->agent}});
  return Step::DONE;
}

Step fence(Warp& warp, Split&, const Instr& instr, Mask) {
  warp.machine->bus.tensor_fence(warp.agent, instr.arg[0]);
  return Step::DONE;
}

// The shape and the number of registers; false where it is not written here.
bool read_shape(Instr& instr, const Operand& registers) {
  const Form& form = *instr.form;
  if (form.has("pack::16b") || form.has("unpack::16b")) return false;
  const std::string shape = form.one_of({"32x32b", "16x64b", "16x128b", "16x256b"});
  if (shape.empty()) return false;
  const auto of = shape == "32x32b"    ? RegisterShape::S32X32
                  : shape == "16x64b"  ? RegisterShape::S16X64
                  : shape == "16x128b" ? RegisterShape::S16X128
                                       : RegisterShape::S16X256;
  const std::string repeats = form.one_of({"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  const int count =
      REGISTERS_OF[static_cast<int>(of)] * (repeats.empty() ? 1 : std::stoi(repeats.substr(1)));
  instr.arg[0] = static_cast<int64_t>(of);
  instr.arg[1] = count;
  return count <= 128 && static_cast<int>(registers.items.size()) == count;
}

bool prepare_load(Instr& instr) {
  instr.control = load;
  return read_shape(instr, instr.form->targets[0]) && are_plain_targets(instr.form->targets[0]);
}

bool prepare_store(Instr& instr) {
  instr.control = store;
  return instr.form->sources.size() == 2 && read_shape(instr, instr.form->sources[1]);
}

bool prepare_wait_loads(Instr& instr) {
  instr.control = wait_loads;
  return true;
}

bool prepare_wait_stores(Instr& instr) {
  instr.control = wait_stores;
  return true;
}

bool prepare_fence(Instr& instr) {
  instr.control = fence;
  instr.arg[0] = instr.form->name == "tcgen05.fence::before_thread_sync";
  return true;
}

ROW("tcgen05.ld", prepare_load);
ROW("tcgen05.st", prepare_store);
ROW("tcgen05.wait::ld", prepare_wait_loads);
ROW("tcgen05.wait::st", prepare_wait_stores);
ROW("tcgen05.fence::before_thread_sync tcgen05.fence::after_thread_sync", prepare_fence);

}  // namespace tensor_registers

// Nothing but tcgen05.wait::st orders a warp's stores before it tells others that it got here. Yet
// hardware has them done by then.
void settle(Warp& warp) {
  const auto* accesses = warp.units.find<tensor_registers::TensorAccesses>();
  if (accesses && accesses->last_store) warp.machine->engine.finish(accesses->last_store);
}

}  // namespace kernelpack
