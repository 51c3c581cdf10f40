// What runs: warps, CTAs, clusters, operations in flight (emulator/machine/). Names are Python's.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "doubt.hpp"
#include "engine.hpp"
#include "events.hpp"
#include "kept_registers.hpp"
#include "memory.hpp"
#include "program.hpp"
#include "random.hpp"

namespace kernelpack {

struct Cta;
struct Cluster;
struct Machine;
struct Warp;

constexpr int RANK_SHIFT = 24;
constexpr uint32_t OFFSET_MASK = (1u << RANK_SHIFT) - 1;
constexpr uint32_t SHARED_START = 1024;
constexpr int TENSOR_LANES = 128, TENSOR_COLUMNS = 512;
constexpr int64_t NEVER = -1;
constexpr int64_t NOT_ARRIVED = -1;

// What hardware units remember, by their type: `warp.units.of<WgmmaState>()`.
class Units {
public:
  template <typename T>
  T& of() {
    auto& slot = slots_[key<T>()];
    if (!slot) slot = std::make_shared<T>();
    return *static_cast<T*>(slot.get());
  }
  // What there is of it; null where nobody asked for it yet.
  template <typename T>
  T* find() const {
    const auto found = slots_.find(key<T>());
    return found == slots_.end() ? nullptr : static_cast<T*>(found->second.get());
  }

private:
  template <typename T>
  static const void* key() {
    static const char here = 0;
    return &here;
  }
  std::map<const void*, std::shared_ptr<void>> slots_;
};

// Why lanes stand still. `ready` says when they can go on.
struct Wait {
  std::function<bool()> ready;
  bool spurious = false;  // the instruction may also answer "not yet"
  bool inner = false;     // it waits for other lanes of its warp alone
};

// The last thing that a split asked for twice (machine/polls.py).
struct Poll {
  int64_t at, changes, step, period;
};

// Lanes that run together.
struct Split {
  int32_t pc = 0;
  Mask mask = EVERY;  // as long as the warp is in one piece, its lanes that are alive at least
  bool every = true;  // Python's `mask is None`: all 32 lanes
  bool waits = false;
  Wait wait;
  int64_t token = 0;                 // what an instruction remembers between its tries; 0 is none
  std::shared_ptr<void> remembered;  // the same, where a number is not enough (Python's token too)
  int64_t spins = 0;
  bool polls = false;
  Poll poll{};

  Mask lanes() const { return every ? EVERY : mask; }
  void wait_for(std::function<bool()> ready, bool spurious = false, bool inner = false) {
    waits = true;
    wait = Wait{std::move(ready), spurious, inner};
  }
};
constexpr int64_t TOKEN_NOT_YET = -7;  // Answer.NOT_YET

// Registers that an asynchronous instruction fills when it takes effect. To touch one before the
// instruction was waited for is a finding in Python, so a doubt here: `finish` alone is needed.
// Values go straight into the registers; copies of these by `mov` are filled with them.
struct Landing {
  // Which register (index) each row goes to; rows of 32 words. A copy adds a pair.
  std::vector<std::pair<int32_t, int32_t>> registers;  // register, row
};

// What an instruction asked last (polls.Asked).
struct Asked {
  std::vector<uint8_t> what, answer;
  int64_t changes, step, acts;
  std::function<bool()> same;  // empty: unknown
};

// Lanes of one member mask that wait for each other (semantics/members.py), and what they brought:
// up to four values a lane.
struct Meeting {
  static constexpr int MOST_VALUES = 4;
  const std::string* qualified;  // the instruction with its qualifiers
  Mask word;                     // the member mask
  int32_t pc;
  Mask here = 0, passed = 0, absent = 0;
  uint64_t values[MOST_VALUES][WIDTH];
  uint64_t results[2][WIDTH];
  bool over = false;
};

struct Warp {
  Cta* cta = nullptr;
  Machine* machine = nullptr;
  int index = 0;
  int agent = 0;
  Mask alive = EVERY;
  // What its registers were when rest.cpp looked at it last, kept as it goes on: many never do
  // before something changes. Due while the machine's count of changes is `copy_due`.
  KeptRegisters kept;
  int64_t copy_due = NEVER;
  Room file;  // registers: predicates are a Mask, 16/32/64/128 bits 32 lanes of them
  std::vector<std::unique_ptr<Split>> splits;
  std::vector<std::unique_ptr<Split>> ended;  // splits that are no more, until the turn is over
  Memory local;
  uint32_t local_bytes = 0;
  int64_t asleep_at = NEVER;
  bool stopped = false;  // Python's `waits_on is not None`
  std::vector<std::function<bool()>> waits_on;
  int64_t steps = 0;
  int32_t at = 0;
  int64_t clock_reads = 0;
  int64_t acts = 0;
  int64_t turn_began = NEVER;
  std::map<int32_t, Asked> asked;  // by instruction
  bool repeats = false;
  std::vector<std::function<bool()>> dozes_on;
  int64_t arrivals[WIDTH];  // generation of the cluster barrier, by lane
  std::vector<int32_t>
      landing_of;  // by register: index in `landings`, or -1; empty where none may be late
  std::map<int32_t, std::shared_ptr<Landing>> landings;
  int32_t next_landing = 0;
  std::vector<std::vector<uint8_t>> specials;  // 32 lanes of each, kept but for times
  std::map<int32_t, Mask> apart;               // Warp.apart
  std::vector<std::shared_ptr<Meeting>> meetings;
  Units units;

  template <typename T>
  T* lanes(uint32_t offset) {
    return reinterpret_cast<T*>(file.data() + offset);
  }
  Mask& predicate(uint32_t offset) { return *reinterpret_cast<Mask*>(file.data() + offset); }
};

// models/mbarrier.py, and what semantics/mbarrier.py remembers of one. It stays where it is, and
// in the map, for good: waits point to it. mbarriers.hpp has what is done to it.
struct MBarrier {
  int64_t expected = 0, pending = 0, tx = 0, phase = 0;
  bool is_there = false;     // between mbarrier.init and mbarrier.inval
  uint64_t used_by[8] = {};  // warps of the cluster that used it, or whose copies did
};

// cluster.NamedBarrier
struct NamedBarrier {
  int64_t arrived = 0;
  int64_t generation = 0;
  int64_t expected = -1;  // -1: every thread that has not exited
  std::vector<std::pair<int, int>> votes;
  std::map<int64_t, std::vector<std::pair<int, int>>> result;
};

// cluster.TensorMemory. Rules of allocation that Python remarks on are doubts.
struct TensorMemory {
  // See tensor_areas.hpp; none before the first allocation.
  uint32_t* words = nullptr;  // with anything in them
  uint8_t* written = nullptr;
  uint8_t busy[TENSOR_COLUMNS] = {};
  std::map<int, int> allocations;
  bool relinquished = false;
  int asked = 0;
  int granted = -1;
  Unit unit, uses, ends;
  bool is_used = false;

  void make(size_t cells) {
    words = reinterpret_cast<uint32_t*>(words_.make(cells * sizeof *words));
    written = written_.make(cells);
    std::memset(written, 0, cells);
  }

private:
  Room words_, written_;
};

struct Cta {
  Machine* machine = nullptr;
  Cluster* cluster = nullptr;
  int x = 0, y = 0, z = 0;
  int number = 0;
  int rank = 0;
  Memory shared;
  TensorMemory tensor;
  std::unordered_map<uint32_t, MBarrier> mbarriers;
  std::map<int, NamedBarrier> named;  // looked at in the order of first use: `named_order`
  std::vector<int> named_order;
  int64_t present = 0;
  std::vector<std::unique_ptr<Warp>> warps;
  std::vector<int> agents;  // of its units, in the order of first use
  bool may_have_neighbour = false;
  Units units;
  std::vector<std::function<void()>> on_leave;
  std::vector<std::function<void()>> on_end;  // each may doubt

  // The agent number of a unit of this CTA, given on first use. `of` and `a`, `b` are its key.
  enum class Agent : uint8_t {
    COPIES,
    BULK,
    WGMMA,
    TENSOR_LOAD,
    TENSOR_STORE,
    TENSOR_ALLOC,
    PIPE,
    CP_ASYNC,
    OTHER
  };
  int agent(Agent of, int64_t a, int64_t b = 0);

private:
  std::map<std::tuple<uint8_t, int64_t, int64_t>, int> agent_of_;
};

struct Cluster {
  int launch = 0;
  int64_t key = 0;  // the number of its first CTA
  std::vector<std::unique_ptr<Cta>> ctas;
  int64_t arrived = 0;
  int64_t generation = 0;
  int64_t present = 0;
  void arrive(int64_t threads);
  void leave(int64_t threads, int64_t arrived_too);

private:
  void look();
};

// The numbers of a launch, as Python gives them (launch.hpp reads them).
struct Shape {
  int grid[3], block[3], cluster[3];
  int threads = 0;
  int dynamic_shared_bytes = 0;
  bool explicit_cluster = false;
  int registers = -1;  // of a thread at its start, -1 where nothing says how many
  uint32_t shared_bytes = 0;
  uint32_t local_bytes = 0;
  uint64_t workspace = 0;
  int multiprocessors = 1;
  int64_t multiprocessor_shared_bytes = 0;
  int target = 90;    // 90, 100, 103
  int64_t only = -1;  // the cluster that runs alone, by number; -1 where all do
};

struct Machine {
  const Program* program = nullptr;
  Shape shape;
  Memory memory;  // global
  Memory parameters;
  Bus bus;
  Random rng;
  Engine engine;
  bool exact = false;
  int64_t step = 0, leapt = 0, changes = 0;
  int agents = 0;
  int units_made = 0;
  Warp* current = nullptr;
  std::vector<std::unique_ptr<Cluster>> resident;
  bool fenced = false;   // order.FENCES: that a fence was run
  int tensor_group = 0;  // cta_group of the launch's tcgen05 instructions, 0 before any
  Units units;           // of the launch and of the machine
  int64_t time() const { return step + leapt; }
  int new_agent(Cta& cta, bool is_warp);
  Unit new_unit(Kind kind, uint32_t cells, int cta) { return Unit{units_made++, kind, cells, cta}; }
};

// Operands at run time -----------------------------------------------------------------------

// Whatever is not a register as wide as T.
template <typename T>
const T* other_values(Warp& warp, const Slot& slot, T (&room)[WIDTH]);
// 32 lanes of a source as T (of the operand's own width); `room` is used where they are not at
// hand.
template <typename T>
inline const T* values(Warp& warp, const Slot& slot, T (&room)[WIDTH]) {
  if (slot.of == Slot::REGISTER && slot.bits == 8 * sizeof(T) && !slot.negated)
    return warp.lanes<T>(slot.offset);
  return other_values(warp, slot, room);
}
// A predicate source.
Mask predicate(Warp& warp, const Slot& slot);
// Destinations, under a mask. A wider register is filled with the sign where T is signed.
template <typename T>
void put(Warp& warp, const Slot& slot, const T* values, Mask mask);
void put_predicate(Warp& warp, const Slot& slot, Mask value, Mask mask);
// The address of each lane: base and offset, cut to 32 bits in shared and tensor space.
void addresses(Warp& warp, const Operand& operand, uint64_t (&out)[WIDTH]);
// A special register's lanes.
const uint8_t* special(Warp& warp, int number);

inline int first_lane(Mask mask) { return __builtin_ctz(mask); }

// access.peer: the CTA of a rank; the checks hear of a visit. Doubts where it has ended.
Cta& peer(Warp& warp, uint32_t rank);
// access.reach
void reach(Warp& warp, Cta& cta);

// Loads and stores of lanes (semantics/access.py): see lanes.cpp.
enum class Order : uint8_t { NONE, RELAXED, FULL };
struct Sync {
  bool is = false;
  Order reads = Order::NONE, writes = Order::NONE;
  Scope scope = Scope::DEVICE;
};
// access.told of one place of a memory for a lane or a unit of lanes.
void told(Warp& warp, Memory& memory, const uint64_t* offsets, int count, uint32_t size, bool write,
          const Sync& sync, Mask by, Use mbarrier = Use::NONE,
          const std::function<bool()>& unchanged = {});
// polls.asked
void asked(Warp& warp, Mask mask, std::vector<uint8_t> what, std::vector<uint8_t> answer,
           std::function<bool()> same = {});
// tensor_memory.settle: the warp's tcgen05.st take effect. Set by the tensor rows.
void settle(Warp& warp);
// Between runs: what is kept of layouts of operands and of tensor memory does not grow for ever.
void keep_few_layouts();
// Registers that may be filled later are about to be used: a doubt where one is in flight.
void land(Warp& warp, const Instr& instr);

}  // namespace kernelpack
