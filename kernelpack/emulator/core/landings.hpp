// Registers that an instruction fills later (warp.Landing): which they are, and how they get there.
//
// Each destination is a row of the instruction's; until it was waited for, nobody may touch the
// register but a later instruction of the same unit that takes it over, and a move, whose own
// destination then is filled with the same row.
#pragma once

#include "machine.hpp"

namespace kernelpack {

constexpr int32_t NO_LANDING = -1;

inline int32_t landing_at(const Warp& warp, int32_t index) { return warp.landing_of[index]; }

// A register that is to be read must be there.
inline void check_landed(const Warp& warp, const Slot& slot) {
  if (slot.of == Slot::REGISTER && landing_at(warp, slot.index) != NO_LANDING)
    doubt("a register is used that an instruction is yet to fill");
}

// The destinations of an instruction are filled later: the landing's number.
static int32_t take_off(Warp& warp, const Operand& targets) {
  const int32_t number = warp.next_landing++;
  auto landing = std::make_shared<Landing>();
  landing->registers.reserve(targets.items.size());
  for (size_t row = 0; row < targets.items.size(); ++row) {
    const Slot& slot = targets.items[row];
    if (slot.of == Slot::SINK) continue;
    warp.landing_of[slot.index] = number;
    landing->registers.push_back({slot.index, static_cast<int32_t>(row)});
  }
  warp.landings[number] = std::move(landing);
  return number;
}

// They are there: `fill(words, row)` writes one of them.
template <typename Fill>
void touch_down(Warp& warp, int32_t number, Fill fill) {
  const auto found = warp.landings.find(number);
  if (found == warp.landings.end()) return;
  for (const auto& [index, row] : found->second->registers) {
    if (warp.landing_of[index] != number) continue;  // it was taken over, or overwritten
    warp.kept.note_register(index);
    fill(warp.lanes<uint32_t>(warp.machine->program->offsets[index]), row);
    warp.landing_of[index] = NO_LANDING;
  }
  warp.landings.erase(found);
}

// Destinations must be registers of 32 bits, each once.
inline bool are_plain_targets(const Operand& targets) {
  for (const Slot& slot : targets.items)
    if (slot.of != Slot::SINK && (slot.of != Slot::REGISTER || slot.bits != 32)) return false;
  return true;
}

}  // namespace kernelpack
