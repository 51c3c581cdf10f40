// What L2 keeps of the lines that an access touches: a hint. PTX ISA, "createpolicy".
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Kept as long as can be: rows that other CTAs will ask for too.
__device__ __forceinline__ uint64_t evict_last() {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

// Given up first: what is read once.
__device__ __forceinline__ uint64_t evict_first() {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

}  // namespace kp::ptx
