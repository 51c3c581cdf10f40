// Register reallocation between warpgroups: producers give registers to consumers. PTX ISA,
// "setmaxnreg": all warps of a warpgroup execute it, with a multiple of 8 from 24 to 256. An
// increase waits until enough registers are free.
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

template <uint32_t registers>
__device__ __forceinline__ void increase_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

template <uint32_t registers>
__device__ __forceinline__ void decrease_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace kp::ptx
