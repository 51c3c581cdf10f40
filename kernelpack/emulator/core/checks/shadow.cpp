// Parts of cells (checks/shadow.py).
#include "shadow.hpp"

namespace kernelpack::checks {

// Note a write of some bytes of cells; one that wrote all of them together is whole.
void Shadow::wrote_part(const Access& event, uint32_t number, Accesses& writes) {
  if (!parts) parts = Field<uint32_t>(4 * cells);
  for (size_t i = 0; i < event.count; ++i) {
    const uint32_t cell = event.cells[i], before = numbers.get()[cell];
    if (writes[before].how & IS_PARTIAL) continue;
    for (uint32_t byte = 0; byte < 4; ++byte) parts.set(4 * cell + byte, before);
  }
  bool is_whole = true;
  for (size_t i = 0; i < event.count; ++i)
    for (uint32_t byte = 0; byte < 4; ++byte)
      if (event.masks[i] >> byte & 1) parts.set(4 * event.cells[i] + byte, number);
  for (size_t i = 0; i < event.count; ++i) {
    numbers.set(event.cells[i], number);
    for (uint32_t byte = 0; byte < 4; ++byte)
      is_whole &= parts.get()[4 * event.cells[i] + byte] == number;
  }
  if (is_whole) writes[number].how &= static_cast<uint8_t>(~IS_PARTIAL);
}

}  // namespace kernelpack::checks
