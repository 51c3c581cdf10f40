// setmaxnreg: registers move between the warps of a CTA (PTX ISA 9.7.19.5; semantics/registers.py
// is the definition). Counts are of one thread: the 32 of a warp have as many each.
#include <algorithm>

#include "machine.hpp"

namespace kernelpack {
namespace {

// What warps of a CTA gave back, and nobody took.
struct RegisterPool {
  int64_t count = 0;
};

struct OwnRegisters {
  int64_t count = -1;        // -1: as many as the launch gave it
  std::vector<int64_t> ran;  // the instructions that it ran: a count, negated of `.dec`
};

constexpr size_t WARPS_OF_GROUP = 4;

// At the CTA's end the warps of a warpgroup must have run the same ones.
void check_warpgroups(Cta& cta) {
  const auto ran = [&](size_t index) { return cta.warps[index]->units.of<OwnRegisters>().ran; };
  for (size_t i = 0; i < cta.warps.size(); ++i)
    if (ran(i) != ran(i / WARPS_OF_GROUP * WARPS_OF_GROUP))
      doubt("warps of one warpgroup ran different setmaxnreg instructions");
}

void note_registers(Warp& warp, int64_t what) {
  Cta* cta = warp.cta;
  const auto has_run = [](const std::unique_ptr<Warp>& other) {
    const OwnRegisters* found = other->units.find<OwnRegisters>();
    return found && !found->ran.empty();
  };
  if (std::none_of(cta->warps.begin(), cta->warps.end(), has_run))
    cta->on_end.push_back([cta] { check_warpgroups(*cta); });
  warp.units.of<OwnRegisters>().ran.push_back(what);
}

enum RegistersArg { REGISTERS_COUNT = 0, REGISTERS_MORE = 1 };

Step run_set_registers(Warp& warp, Split& split, const Instr& instr, Mask) {
  const int64_t count = instr.arg[REGISTERS_COUNT], more = instr.arg[REGISTERS_MORE];
  OwnRegisters& own = warp.units.of<OwnRegisters>();
  if (own.count < 0) own.count = warp.machine->shape.registers;
  if (own.count < 0) doubt("setmaxnreg where nothing says how many registers there are");
  if (split.token == 0) {
    if (more ? count < own.count : count > own.count) doubt("setmaxnreg in the other direction");
    note_registers(warp, more ? count : -count);
  }
  RegisterPool& pool = warp.cta->units.of<RegisterPool>();
  const int64_t needed = count - own.count;
  if (needed > 0 && pool.count < needed) {
    split.token = needed;
    split.wait_for([&pool, needed] { return pool.count >= needed; });
    return Step::WAIT;
  }
  split.token = 0;
  pool.count -= needed;
  own.count = count;
  ++warp.machine->changes;
  return Step::DONE;
}

bool prepare_set_registers(Instr& instr) {
  const Form& form = *instr.form;
  if (form.constants.empty() || form.modifiers.empty()) return false;
  const int64_t count = form.constants[0];
  if (count < 24 || count > 256 || count % 8) return false;
  instr.arg[REGISTERS_COUNT] = count;
  instr.arg[REGISTERS_MORE] = form.modifiers[0] == "inc";
  instr.control = run_set_registers;
  return true;
}
ROW("setmaxnreg.inc setmaxnreg.dec", prepare_set_registers);

}  // namespace
}  // namespace kernelpack
