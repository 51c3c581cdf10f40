// The 128 bytes that describe a tensor to the TMA unit; the host encodes them.
// Ours is 64-aligned on every toolkit: CUtensorMap is not, and its parameters would move.
#pragma once
#include <cuda/std/cstdint>

namespace kp {

struct alignas(64) TensorMap {
    uint64_t opaque[16];
};

}  // namespace kp
