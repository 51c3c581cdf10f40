// The doors for Python (emulator/core/library.py): read a program, run a launch of it.
#include <cstdio>

#include "checks/checks.hpp"
#include "machine.hpp"

namespace kernelpack {

namespace {

// The numbers of a launch, in the order in which library.py gives them.
struct Numbers {
  int64_t grid[3], block[3], cluster[3];
  int64_t threads, dynamic_shared_bytes, explicit_cluster, registers, shared_bytes, local_bytes;
  int64_t workspace, multiprocessors, multiprocessor_shared_bytes, target;
  int64_t tempo, held_rank, held_warp, resident, step_limit, is_watched, is_logged, exact;
  int64_t only;
};

// The memories of a launch: the caller's global memory, and the parameter block.
struct Memories {
  uint8_t *bytes, *state;
  uint64_t size, base;
  const uint8_t* parameters;
  uint64_t parameter_bytes;
};

struct Result {
  int64_t steps, operations, log_words;
  const int64_t* log;
};

void say(const std::string& why, char* out, uint64_t room) {
  std::snprintf(out, room, "%s", why.c_str());
}

Shape shape_of(const Numbers& n) {
  Shape shape;
  for (int i = 0; i < 3; ++i) {
    shape.grid[i] = static_cast<int>(n.grid[i]);
    shape.block[i] = static_cast<int>(n.block[i]);
    shape.cluster[i] = static_cast<int>(n.cluster[i]);
  }
  shape.threads = static_cast<int>(n.threads);
  shape.dynamic_shared_bytes = static_cast<int>(n.dynamic_shared_bytes);
  shape.explicit_cluster = n.explicit_cluster;
  shape.registers = static_cast<int>(n.registers);
  shape.shared_bytes = static_cast<uint32_t>(n.shared_bytes);
  shape.local_bytes = static_cast<uint32_t>(n.local_bytes);
  shape.workspace = static_cast<uint64_t>(n.workspace);
  shape.multiprocessors = static_cast<int>(n.multiprocessors);
  shape.multiprocessor_shared_bytes = n.multiprocessor_shared_bytes;
  shape.target = static_cast<int>(n.target);
  shape.only = n.only;
  return shape;
}

void place_memories(Machine& machine, const Memories& given, Journal& journal, Pages& pages) {
  Memory& global = machine.memory;
  global.bytes = given.bytes;
  global.state = given.state;
  global.size = given.size;
  global.base = given.base;
  global.unit = machine.new_unit(Kind::GLOBAL, static_cast<uint32_t>(given.size / 4), -1);
  journal.begin(given.size);
  global.journal = &journal;
  pages.begin(given.size);
  global.pages = &pages;
  const uint64_t bytes = given.parameter_bytes;
  machine.parameters.make(bytes ? bytes : 1, machine.new_unit(Kind::PARAM, 0, -1));
  std::memcpy(machine.parameters.bytes, given.parameters, bytes);
  std::memset(machine.parameters.state, WRITTEN, bytes);
}

// What was thrown, in words. That the core itself stumbles is a doubt too.
std::string reason() {
  try {
    throw;
  } catch (const Doubt& doubt) {
    return doubt.why;
  } catch (const std::exception& error) {
    return std::string("the core stumbles: ") + error.what();
  }
}

}  // namespace

}  // namespace kernelpack

#define KERNELPACK_DOOR __attribute__((visibility("default")))

extern "C" {

// A program; null, and why, where the core does not understand it.
KERNELPACK_DOOR void* kernelpack_program(const char* text, char* why, uint64_t room) {
  try {
    return kernelpack::read_program(text).release();
  } catch (...) {
    kernelpack::say(kernelpack::reason(), why, room);
    return nullptr;
  }
}

KERNELPACK_DOOR void kernelpack_forget(void* program) {
  delete static_cast<kernelpack::Program*>(program);
}

// The first form of a program that no row takes, in words; empty where there is none.
KERNELPACK_DOOR const char* kernelpack_unsupported(void* program) {
  return static_cast<kernelpack::Program*>(program)->unsupported.c_str();
}

// 0: it ran to its end, and there is nothing to remark. 1: a doubt, and why; memory is as it was.
KERNELPACK_DOOR int kernelpack_run(void* program, const kernelpack::Numbers* numbers,
                                   const kernelpack::Memories* memories, const uint32_t* rng,
                                   int (*look)(int64_t, const int64_t*), kernelpack::Result* result,
                                   char* why, uint64_t room) {
  using namespace kernelpack;
  static thread_local std::vector<int64_t> log;
  log.clear();
  Journal journal;
  Pages pages;
  keep_few_layouts();
  Checks checks;
  Machine machine;
  machine.program = static_cast<Program*>(program);
  try {
    machine.shape = shape_of(*numbers);
    place_memories(machine, *memories, journal, pages);
    machine.bus.checks = numbers->is_watched ? &checks : nullptr;
    machine.bus.log = numbers->is_logged ? &log : nullptr;
    machine.rng.set(rng);
    machine.exact = numbers->exact;
    machine.engine.bus = &machine.bus;
    machine.engine.rng = &machine.rng;
    machine.engine.tempo = static_cast<Tempo>(numbers->tempo);
    Schedule schedule;
    schedule.tempo = machine.engine.tempo;
    schedule.held_rank = static_cast<int>(numbers->held_rank);
    schedule.held_warp = static_cast<int>(numbers->held_warp);
    schedule.resident = static_cast<int>(numbers->resident);
    Runner runner(machine, schedule, numbers->step_limit);
    try {
      runner.run(look);
    } catch (...) {
      if (!numbers->is_logged) log = runner.standings();
      throw;
    }
    *result = {machine.step, machine.engine.count, static_cast<int64_t>(log.size()), log.data()};
    return 0;
  } catch (...) {
    journal.undo(memories->bytes, memories->state);
    const int at = machine.engine.running ? machine.engine.running->at
                   : machine.current      ? machine.current->at
                                          : -1;
    say(reason() + " (at instruction " + std::to_string(at) + ")", why, room);
    *result = {machine.step, machine.engine.count, static_cast<int64_t>(log.size()), log.data()};
    return 1;
  }
}

}  // extern "C"
