// L2 cache policies (eviction priority) of an access: hints. PTX ISA, "createpolicy".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Keep as long as possible: for rows that other CTAs read too.
__device__ __forceinline__ uint64_t evict_last() {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// Evict first: for data that is read once.
__device__ __forceinline__ uint64_t evict_first() {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

}  // namespace kp::ptx
