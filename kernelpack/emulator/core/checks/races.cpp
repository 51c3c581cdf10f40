// Races, missing proxy fences, operands that change in flight (checks/races.py, which says what
// each rule is). Most accesses meet few writes, and all of them are known: that is looked at first.
#include "races.hpp"

#include <algorithm>

namespace kernelpack::checks {

static bool is_ordered_by_model(const Unit& unit) {
  return unit.kind == Kind::SHARED || unit.kind == Kind::GLOBAL;
}

static int fence_for(const Unit& unit) {
  if (unit.kind == Kind::SHARED) return OF_SHARED;
  return unit.kind == Kind::GLOBAL ? OF_GLOBAL : -1;
}

Shadow& Races::shadow_of(const Unit& unit) {
  const auto id = static_cast<size_t>(unit.id);
  if (id >= shadows_.size()) shadows_.resize(id + 1);
  if (!shadows_[id]) shadows_[id] = std::make_unique<Shadow>(unit);
  return *shadows_[id];
}

void Races::on_exited(const std::vector<const Unit*>& units) {
  for (const Unit* unit : units) {
    const auto id = static_cast<size_t>(unit->id);
    if (id < shadows_.size()) shadows_[id].reset();
  }
}

// Compare, then note.
void Races::on_access(const Access& event) {
  Shadow& shadow = shadow_of(*event.unit);
  const bool by_model = is_ordered_by_model(*event.unit);
  const Cells cells = shapes_.of(event);
  const Asked asked{event,
                    cells,
                    clocks_.agent(event.agent),
                    by_model ? CAUSAL : EXECUTED,
                    by_model ? SCOPED : EXECUTED,
                    fence_for(*event.unit)};
  met_ = {event.unit, event.cells, event.count, event.write};
  const bool known = are_known(asked, shadow);
  if ((met_.how & IS_MBARRIER) && event.mbarrier == Use::NONE) doubt("an mbarrier is used as data");
  if (!known || (met_.how & IS_PARTIAL)) after_writes(asked, shadow);
  if (event.write)
    write(asked, shadow);
  else
    read(asked, shadow);
}

// -- the writes before it -----------------------------------------------------------------------

// Whether all is well with the last writes of these cells.
bool Races::are_known(const Asked& asked, const Shadow& shadow) {
  if (shadow.numbers.is_blank(asked.cells)) {
    met_.add(writes_[NOBODY]);
    return true;
  }
  const uint32_t *numbers = shadow.numbers.get(), *cells = asked.event.cells;
  const uint32_t first = numbers[cells[0]];
  const bool differ = asked.cells.any_other(numbers, first);
  met_.add(writes_[first]);
  bool known = is_known(asked, first);
  if (!differ) return known;
  uint32_t seen[4] = {first, first, first, first}, last = first;
  for (size_t i = 0, next = 0; i < asked.event.count; ++i) {
    const uint32_t number = numbers[cells[i]];
    if (number == last) continue;
    last = number;
    if (number == seen[0] || number == seen[1] || number == seen[2] || number == seen[3]) continue;
    seen[next++ & 3] = number;
    met_.add(writes_[number]);
    known = known && is_known(asked, number);
  }
  return known;
}

bool Races::is_known(const Asked& asked, uint32_t number) const {
  const Done& done = writes_[number];
  const Access& event = asked.event;
  if (number == NOBODY || done.agent == event.agent) return true;
  const int row = event.write ? asked.row : asked.row_of_scopes;
  if (done.step > clocks_.known(asked.mine, done.agent, row)) return false;
  if (event.write) return true;
  if (event.proxy == Proxy::ASYNC && (done.how & IS_GENERIC) &&
      done.step > clocks_.fenced(asked.mine, done.agent, asked.fence))
    return false;
  return running_.empty() || number <= running_.back();
}

// The last write of each cell; by byte, where that one wrote a part of its cells.
void Races::find_parts(const Asked& asked, const Shadow& shadow) {
  const Access& event = asked.event;
  room_.clear();
  bytes_.clear();
  for (size_t i = 0; i < event.count; ++i) {
    const uint32_t cell = event.cells[i], number = shadow.numbers.get()[cell];
    if (!(writes_[number].how & IS_PARTIAL)) {
      room_.push_back(number);
      continue;
    }
    const int mask = event.masks ? event.masks[i] : 15;
    for (uint32_t byte = 0; byte < 4; ++byte)
      if (mask >> byte & 1) bytes_.push_back(shadow.parts.get()[4 * cell + byte]);
  }
  room_.insert(room_.end(), bytes_.begin(), bytes_.end());  // in Python's order: whole cells first
}

// Hold an access against the last write of each of these cells, or bytes of them.
void Races::after_writes(const Asked& asked, Shadow& shadow) {
  find_parts(asked, shadow);
  const Access& event = asked.event;
  const bool reads = !event.write, is_async = event.proxy == Proxy::ASYNC && reads;
  bool race = false, unseen = false, changed = false;
  int bare = -1;  // the agent of the first write that an asynchronous read has no fence behind
  for (const uint32_t number : room_) {
    const Done& done = writes_[number];
    if (number == NOBODY || done.agent == event.agent) continue;
    const bool is_generic = done.how & IS_GENERIC;
    if (!(event.atomic && (done.how & IS_ATOMIC)))
      race |= done.step > clocks_.known(asked.mine, done.agent, asked.row);
    if (reads && !event.atomic && is_generic)
      unseen |= done.step > clocks_.known(asked.mine, done.agent, asked.row_of_scopes);
    if (is_async && is_generic && bare < 0 &&
        done.step > clocks_.fenced(asked.mine, done.agent, asked.fence))
      bare = done.agent;
    changed |= reads && !running_.empty() && number > running_.back();
  }
  if (race) {
    // Two that store the same value are for the strict level, which the core does not run at.
    if (event.write && event.unchanged && event.unchanged()) return;
    doubt("a race with a write");
  }
  if (unseen) doubt("a read that the memory model does not order");
  // What `cp.async` wrote is for the strict level; Python looks at the first such write alone.
  if (bare >= 0 && clocks_.agent(bare).is_warp) doubt("an asynchronous read without a proxy fence");
  if (changed) doubt("an operand that changes in flight");
}

// -- the reads before it ------------------------------------------------------------------------

// Of shared memory all readers are known, and each has the step of its last read of each cell.
void Races::after_reads(const Asked& asked, Reads& reads, const Cells& cells) const {
  const Access& event = asked.event;
  for (Reader& reader : reads.readers()) {
    const int agent = reader.agent();
    if (agent == event.agent || (event.atomic && reader.is_atomic())) continue;
    if (reader.is_late(cells, clocks_.known(asked.mine, agent, asked.row)))
      doubt("a race with a read");
  }
}

void Races::after_readers(const Asked& asked, const Readers& readers, const Cells& cells) const {
  if (!readers.may_have_read(cells.extent)) return;
  after_last_readers(asked, readers.last(), cells);
  after_last_readers(asked, readers.other(), cells);
}

void Races::after_last_readers(const Asked& asked, const uint32_t* numbers,
                               const Cells& cells) const {
  uint32_t seen = NOBODY;
  for (size_t i = 0; i < cells.count; ++i) {
    const uint32_t number = numbers[cells.at[i]];
    if (number == seen || number == NOBODY) continue;
    seen = number;
    const Done& done = reads_[number];
    if (done.agent == asked.event.agent) continue;
    if (asked.event.atomic && (done.how & IS_ATOMIC)) continue;
    if (done.step > clocks_.known(asked.mine, done.agent, CAUSAL)) doubt("a race with a read");
  }
}

// -- what is noted of it ------------------------------------------------------------------------

// The bytes that an access is about.
Cells Races::bytes_of(const Access& event) {
  bytes_.clear();
  for (size_t i = 0; i < event.count; ++i)
    for (uint32_t byte = 0; byte < 4; ++byte)
      if (!event.masks || event.masks[i] >> byte & 1) bytes_.push_back(4 * event.cells[i] + byte);
  if (bytes_.empty()) doubt("an access of no byte");
  return {bytes_.data(), bytes_.size()};
}

void Races::write(const Asked& asked, Shadow& shadow) {
  const Access& event = asked.event;
  if (shadow.kind == Kind::GLOBAL) {
    after_readers(asked, readers_, asked.cells);
    if (byte_readers_.is_used()) after_readers(asked, byte_readers_, bytes_of(event));
  } else {
    after_reads(asked, shadow.reads, asked.cells);
    if (shadow.byte_reads) after_reads(asked, *shadow.byte_reads, bytes_of(event));
  }
  uint8_t how = event.proxy == Proxy::GENERIC ? IS_GENERIC : 0;
  if (event.atomic) how |= IS_ATOMIC;
  if (event.mbarrier == Use::INIT) how |= IS_MBARRIER;
  if (event.masks) how |= IS_PARTIAL;
  const uint32_t number = writes_.add(event.agent, asked.mine.step, how);
  if (event.masks)
    shadow.wrote_part(event, number, writes_);
  else
    shadow.numbers.set(asked.cells, number);
}

void Races::read(const Asked& asked, Shadow& shadow) {
  const Access& event = asked.event;
  const int32_t step = asked.mine.step;
  const Cells cells = event.masks ? bytes_of(event) : asked.cells;
  if (shadow.kind == Kind::GLOBAL) {
    const uint32_t number = reads_.same(event.agent, step, event.atomic ? IS_ATOMIC : 0);
    Readers& readers = event.masks ? byte_readers_ : readers_;
    readers.note(cells, (event.masks ? 4 : 1) * shadow.cells, number, reads_);
    return;
  }
  if (event.masks && !shadow.byte_reads)
    shadow.byte_reads = std::make_unique<Reads>(4 * shadow.cells);
  Reads& reads = event.masks ? *shadow.byte_reads : shadow.reads;
  reads.note(cells, event.atomic ? ~event.agent : event.agent, step);
}

// -- boxes of tensor maps (checks/swizzles.py) ----------------------------------------------------

// Note a box, or check an operand against the boxes it lies in. A cell is of a box as long as the
// write that brought it is its last one.
void Races::on_swizzled(const Swizzled& event) {
  if (event.unit != met_.unit || event.cells != met_.cells || event.count != met_.count ||
      event.write != met_.is_write)
    doubt("a swizzle that does not follow its access");
  if (event.pattern < 0 || event.pattern >= 31) doubt("a swizzle pattern that has no number");
  const auto box = static_cast<uint8_t>(event.pattern + 1);
  if (event.write)
    writes_[writes_.latest()].box = box;
  else if (met_.boxes & ~(1u << NO_BOX | 1u << box))
    doubt("an operand by another swizzle than its box");
}

}  // namespace kernelpack::checks
