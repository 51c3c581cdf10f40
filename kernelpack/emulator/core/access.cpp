// Loads and stores of lanes, in any space (semantics/access.py, semantics/memory.py, order.py).
//
// What the Python memory would remark on is a doubt, so a lane that gets here is inside, aligned,
// and reads what was written.
#include <algorithm>
#include <cstring>

#include "machine.hpp"
#include "spaces.hpp"

namespace kernelpack {

namespace {

enum class Space : uint8_t { GENERIC, GLOBAL, SHARED, LOCAL, PARAM };

// Lanes that access one memory, lowest first.
struct Part {
  Memory* memory;
  int count = 0;
  Mask mask = 0;
  uint64_t offsets[WIDTH];
  uint8_t lanes[WIDTH];

  explicit Part(Memory& of) : memory(&of) {}
  void add(int lane, uint64_t offset) {
    offsets[count] = offset;
    lanes[count++] = static_cast<uint8_t>(lane);
    mask |= Mask{1} << lane;
  }
};

template <typename Do>
void each_lane(Mask mask, Do act) {
  for (; mask; mask &= mask - 1) act(__builtin_ctz(mask));
}

// Gives `act` each memory that lanes access, with those lanes, in the order of access.place. A CTA
// is visited just before its lanes are handled, as Python's generator does it.
template <typename Act>
class Places {
public:
  Places(Warp& warp, const uint64_t* at, Act act) : warp_(warp), at_(at), act_(act) {}

  void in(Space space, Mask mask) {
    if (space == Space::GENERIC)
      generic(mask);
    else
      in_space(space, mask, 0);
  }

private:
  void in_space(Space space, Mask mask, uint64_t base) {
    if (space == Space::SHARED) return shared(mask, base);
    Machine& machine = *warp_.machine;
    if (space == Space::LOCAL) return local(mask, base);
    Part part(space == Space::GLOBAL ? machine.memory : machine.parameters);
    const uint64_t first = base + (space == Space::GLOBAL ? machine.memory.base : 0);
    each_lane(mask, [&](int lane) { part.add(lane, at_[lane] - first); });
    act_(part);
  }

  void local(Mask mask, uint64_t base) {
    Part part(warp_.local);
    each_lane(mask, [&](int lane) {
      const uint64_t offset = at_[lane] - base;
      if (offset >= warp_.local_bytes) doubt("an address outside a thread's local memory");
      part.add(lane, uint64_t{warp_.local_bytes} * lane + offset);
    });
    act_(part);
  }

  // By rank, lowest first.
  void shared(Mask mask, uint64_t base) {
    while (mask) {
      uint64_t rank = ~0ull;
      each_lane(mask, [&](int lane) { rank = std::min(rank, (at_[lane] - base) >> RANK_SHIFT); });
      if (rank > 15) doubt("a shared address of no CTA");
      Part part(peer(warp_, static_cast<uint32_t>(rank)).shared);
      each_lane(mask, [&](int lane) {
        const uint64_t offset = at_[lane] - base;
        if (offset >> RANK_SHIFT == rank) part.add(lane, offset & OFFSET_MASK);
      });
      mask &= ~part.mask;
      act_(part);
    }
  }

  // By the names of the spaces: global, local, param, shared.
  void generic(Mask mask) {
    Mask of[4] = {0, 0, 0, 0};
    each_lane(mask, [&](int lane) {
      const uint64_t window = at_[lane] >> WINDOW_SHIFT;
      const int space = window == LOCAL_WINDOW    ? 1
                        : window == PARAM_WINDOW  ? 2
                        : window == SHARED_WINDOW ? 3
                                                  : 0;
      of[space] |= Mask{1} << lane;
    });
    if (of[0]) in_space(Space::GLOBAL, of[0], 0);
    if (of[1]) in_space(Space::LOCAL, of[1], LOCAL_WINDOW << WINDOW_SHIFT);
    if (of[2]) in_space(Space::PARAM, of[2], PARAM_WINDOW << WINDOW_SHIFT);
    if (of[3]) in_space(Space::SHARED, of[3], SHARED_WINDOW << WINDOW_SHIFT);
  }

  Warp& warp_;
  const uint64_t* at_;
  Act act_;
};

template <typename Act>
void each_place(Warp& warp, const uint64_t* at, Space space, Mask mask, Act act) {
  Places<Act>(warp, at, act).in(space, mask);
}

// What a load or store is, packed into Instr::arg by `prepare`.
struct Kind_ {
  Space space;
  uint8_t size, count;
  bool is_signed, may_poll;
  Sync sync;
};

Space space_of(const std::string& name) {
  if (name == "generic") return Space::GENERIC;
  if (name == "global" || name == "const") return Space::GLOBAL;
  if (name == "shared") return Space::SHARED;
  if (name == "local") return Space::LOCAL;
  return Space::PARAM;
}

Scope scope_of(const Form& form) {
  if (form.has("cta")) return Scope::CTA;
  return form.has("cluster") ? Scope::CLUSTER : Scope::DEVICE;
}

Sync sync_of(const Form& form, bool is_load) {
  Sync sync;
  for (const char* flag : {"relaxed", "volatile", "mmio", "acquire", "release"})
    sync.is = sync.is || form.has(flag);
  if (!sync.is) return sync;
  const bool is_full = form.has("acquire") || form.has("release");
  (is_load ? sync.reads : sync.writes) = is_full ? Order::FULL : Order::RELAXED;
  sync.scope = scope_of(form);
  return sync;
}

void check_aligned(const Part& part, uint32_t span) {
  uint64_t bits = 0;
  for (int i = 0; i < part.count; ++i) bits |= part.offsets[i];
  if (bits & (span - 1)) doubt("a misaligned access");
}

// Values as they lie in memory, lane by lane: `span` bytes each at `out + span * lane`.
void load_part(const Part& part, uint32_t span, uint8_t* out) {
  check_aligned(part, span);
  for (int i = 0; i < part.count; ++i) {
    part.memory->check_read(part.offsets[i], span);
    std::memcpy(out + span * part.lanes[i], part.memory->bytes + part.offsets[i], span);
  }
}

bool holds(const Part& part, uint32_t span, const uint8_t* from) {
  for (int i = 0; i < part.count; ++i) {
    if (part.offsets[i] + span > part.memory->size || part.offsets[i] % span) return false;
    if (std::memcmp(part.memory->bytes + part.offsets[i], from + span * part.lanes[i], span))
      return false;
  }
  return true;
}

template <typename T, typename S>
void put_values(Warp& warp, const Instr& instr, const uint8_t* raw, int count, Mask mask,
                bool is_signed) {
  T column[WIDTH];
  for (int k = 0; k < count; ++k) {
    const Slot& to = instr.form->targets[0].items[k];
    if (to.of == Slot::SINK) continue;
    for (int lane = 0; lane < WIDTH; ++lane)
      std::memcpy(&column[lane], raw + (lane * count + k) * sizeof(T), sizeof(T));
    if (is_signed)
      put<S>(warp, to, reinterpret_cast<S*>(column), mask);
    else
      put<T>(warp, to, column, mask);
  }
}

void put_loaded(Warp& warp, const Instr& instr, const Kind_& kind, const uint8_t* raw, Mask mask) {
  switch (kind.size) {
    case 1: return put_values<uint8_t, int8_t>(warp, instr, raw, kind.count, mask, kind.is_signed);
    case 2:
      return put_values<uint16_t, int16_t>(warp, instr, raw, kind.count, mask, kind.is_signed);
    case 4:
      return put_values<uint32_t, int32_t>(warp, instr, raw, kind.count, mask, kind.is_signed);
    default:
      return put_values<uint64_t, int64_t>(warp, instr, raw, kind.count, mask, kind.is_signed);
  }
}

// The bytes of all lanes, and of those of places alone, reported as the parts they are.
void load_at(Warp& warp, const Kind_& kind, const uint64_t* at, Mask mask, uint8_t* raw) {
  const uint32_t span = kind.size * kind.count;
  each_place(warp, at, kind.space, mask, [&](Part& part) {
    load_part(part, span, raw);
    told(warp, *part.memory, part.offsets, part.count, span, false, kind.sync, part.mask);
  });
}

void load(Warp& warp, const Instr& instr, Mask mask) {
  const Kind_& kind = *static_cast<const Kind_*>(instr.plan.get());
  uint64_t at[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  uint8_t raw[WIDTH * 32];
  if (mask != EVERY) std::memset(raw, 0, WIDTH * kind.size * kind.count);
  load_at(warp, kind, at, mask, raw);
  if (kind.may_poll) {
    if (!mask) doubt("a load that may poll, of no lane");
    const uint8_t* what = reinterpret_cast<const uint8_t*>(at);
    asked(warp, mask, {what, what + sizeof at}, {raw, raw + WIDTH * kind.size * kind.count});
  } else {
    ++warp.acts;
  }
  put_loaded(warp, instr, kind, raw, mask);
}

// A vector of which some values are dropped: their words are not read.
void load_some(Warp& warp, const Instr& instr, Mask mask) {
  const Kind_& kind = *static_cast<const Kind_*>(instr.plan.get());
  uint64_t at[WIDTH], one[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  ++warp.acts;
  each_lane(mask, [&](int lane) {
    if (at[lane] % (kind.size * kind.count)) doubt("a misaligned access");
  });
  Kind_ single = kind;
  single.count = 1;
  uint8_t raw[WIDTH * 32] = {}, column[WIDTH * 8];
  for (int k = 0; k < kind.count; ++k) {
    if (instr.form->targets[0].items[k].of == Slot::SINK) continue;
    for (int lane = 0; lane < WIDTH; ++lane) one[lane] = at[lane] + k * kind.size;
    load_at(warp, single, one, mask, column);
    each_lane(mask, [&](int lane) {
      std::memcpy(raw + (lane * kind.count + k) * kind.size, column + lane * kind.size, kind.size);
    });
  }
  put_loaded(warp, instr, kind, raw, mask);
}

template <typename T>
void gather_values(Warp& warp, const Operand& from, uint8_t* raw) {
  const size_t count = from.items.size();
  T room[WIDTH];
  for (size_t k = 0; k < count; ++k) {
    const T* column = values<T>(warp, from.items[k], room);
    for (int lane = 0; lane < WIDTH; ++lane)
      std::memcpy(raw + (lane * count + k) * sizeof(T), &column[lane], sizeof(T));
  }
}

void store(Warp& warp, const Instr& instr, Mask mask) {
  const Kind_& kind = *static_cast<const Kind_*>(instr.plan.get());
  const uint32_t span = kind.size * kind.count;
  uint64_t at[WIDTH];
  addresses(warp, instr.form->sources[0], at);
  uint8_t raw[WIDTH * 32];
  const Operand& from = instr.form->sources[1];
  switch (kind.size) {
    case 1: gather_values<uint8_t>(warp, from, raw); break;
    case 2: gather_values<uint16_t>(warp, from, raw); break;
    case 4: gather_values<uint32_t>(warp, from, raw); break;
    default: gather_values<uint64_t>(warp, from, raw);
  }
  each_place(warp, at, kind.space, mask, [&](Part& part) {
    check_aligned(part, span);
    const auto same = [&part, span, &raw] { return holds(part, span, raw); };
    told(warp, *part.memory, part.offsets, part.count, span, true, kind.sync, part.mask, Use::NONE,
         same);
    const bool is_unseen = part.memory->unit.kind == Kind::LOCAL || (kind.sync.is && same());
    warp.machine->changes += !is_unseen;
    for (int i = 0; i < part.count; ++i) {
      part.memory->check_write(part.offsets[i], span);
      std::memcpy(part.memory->bytes + part.offsets[i], raw + span * part.lanes[i], span);
    }
  });
}

bool prepare_access(Instr& instr, bool is_load) {
  const Form& form = *instr.form;
  const Operand& values = is_load ? form.targets[0] : form.sources[1];
  auto kind = std::make_shared<Kind_>();
  const std::string& type = form.type();
  const int bits = std::stoi(type.substr(type.find_first_of("0123456789")));
  if (bits > 64 || type.find('x') != std::string::npos) {
    if (type != "f16x2" && type != "bf16x2") return false;
  }
  const int width = type == "f16x2" || type == "bf16x2" ? 32 : bits;
  kind->space = space_of(form.space);
  kind->size = static_cast<uint8_t>(width / 8);
  kind->count = static_cast<uint8_t>(values.items.size());
  kind->is_signed = is_load && type[0] == 's';
  kind->sync = sync_of(form, is_load);
  kind->may_poll = is_load && (kind->sync.is || form.has("cv"));
  if (kind->size * kind->count > 32) return false;
  const auto is_sink = [](const Slot& slot) { return slot.of == Slot::SINK; };
  const bool drops = is_load && std::any_of(values.items.begin(), values.items.end(), is_sink);
  instr.run = !is_load ? store : drops && !kind->sync.is ? load_some : load;
  instr.plan = kind;
  return true;
}

bool prepare_load(Instr& instr) { return prepare_access(instr, true); }
bool prepare_store(Instr& instr) { return prepare_access(instr, false); }
ROW("ld ldu", prepare_load);
ROW("st", prepare_store);

// Words through which a synchronising access orders (order._channels): the first alone where no
// fence can make the others matter.
void words_of(const Warp& warp, const uint64_t* offsets, int count, bool is_relaxed,
              std::vector<int64_t>& out) {
  out.assign(1, static_cast<int64_t>(offsets[0] / 4));
  if (count == 1 || (is_relaxed && !warp.machine->fenced)) return;
  out.clear();
  for (int i = 0; i < count; ++i) out.push_back(static_cast<int64_t>(offsets[i] / 4));
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
}

Channel word(const Memory& memory, int64_t at) {
  return {Channel::WORD, memory.unit.id, at, static_cast<int64_t>(memory.unit.kind)};
}

void acquire_words(Warp& warp, const Memory& memory, const uint64_t* offsets, int count,
                   const Sync& sync) {
  if (sync.reads == Order::NONE) return;
  const bool is_relaxed = sync.reads == Order::RELAXED;
  std::vector<int64_t> words;
  words_of(warp, offsets, count, is_relaxed, words);
  for (int64_t at : words)
    warp.machine->bus.acquire({warp.agent, word(memory, at), EVERY, is_relaxed, sync.scope, EVERY});
}

void release_words(Warp& warp, const Memory& memory, const uint64_t* offsets, int count,
                   const Sync& sync, Mask by) {
  if (sync.writes == Order::NONE) return;
  const bool is_relaxed = sync.writes == Order::RELAXED;
  std::vector<int64_t> words;
  words_of(warp, offsets, count, is_relaxed, words);
  for (int64_t at : words) {
    Mask writers = EVERY;
    if (by != EVERY) {
      writers = 0;
      int i = 0;
      each_lane(by, [&](int lane) {
        if (static_cast<int64_t>(offsets[i++] / 4) == at) writers |= Mask{1} << lane;
      });
    }
    const bool is_tolerated = memory.unit.kind == Kind::SHARED;
    warp.machine->bus.release(
        {warp.agent, word(memory, at), is_relaxed, sync.scope, is_tolerated, writers});
  }
}

}  // namespace

void told(Warp& warp, Memory& memory, const uint64_t* offsets, int count, uint32_t size, bool write,
          const Sync& sync, Mask by, Use mbarrier, const std::function<bool()>& unchanged) {
  Bus& bus = warp.machine->bus;
  const Kind of = memory.unit.kind;
  if (of == Kind::LOCAL || of == Kind::PARAM || !bus.watched() || !count) return;
  acquire_words(warp, memory, offsets, count, sync);
  uint32_t cells[WIDTH * 8];
  uint8_t masks[WIDTH];
  size_t total = 0;
  for (int i = 0; i < count; ++i) {
    memory.check(offsets[i], size);
    const uint32_t first = static_cast<uint32_t>(offsets[i] / 4);
    for (uint32_t k = 0; k < std::max(size / 4, 1u); ++k) cells[total++] = first + k;
    if (size < 4) masks[i] = static_cast<uint8_t>((size == 1 ? 1 : 3) << (offsets[i] & 3));
  }
  Access access{&memory.unit, cells, total, warp.agent, write};
  access.masks = size < 4 ? masks : nullptr;
  access.atomic = sync.is;
  access.has_lanes = true;
  access.mbarrier = mbarrier;
  access.unchanged = unchanged;
  bus.access(access);
  release_words(warp, memory, offsets, count, sync, by);
}

}  // namespace kernelpack
