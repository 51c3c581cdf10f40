// The tensor map (TMA descriptor): 128 bytes that describe a tensor to the TMA unit. The host
// encodes it. This type is 64-byte aligned on every toolkit; CUtensorMap is not, so parameters
// after it would move.
#pragma once
#include <cuda/std/cstdint>

namespace kp {

struct alignas(64) TensorMap {
    uint64_t opaque[16];
};

}  // namespace kp
