// Where shared, local and parameter memory lie among generic addresses (semantics/spaces.py).
#pragma once

#include <cstdint>

namespace kernelpack {

constexpr int WINDOW_SHIFT = 40;
// The upper bits of an address in each.
constexpr uint64_t SHARED_WINDOW = 0x7e, LOCAL_WINDOW = 0x7d, PARAM_WINDOW = 0x7c;

}  // namespace kernelpack
