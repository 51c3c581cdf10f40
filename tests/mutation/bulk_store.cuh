// Tensor copies from shared to global memory, in bulk groups of the thread that issues them.
// PTX ISA, "cp.async.bulk.tensor", "cp.async.bulk.wait_group".
#pragma once
#include <cuda/std/cstdint>
#include <kp/tensor_map.cuh>

namespace mutation {

__device__ __forceinline__ void tma_store(const kp::TensorMap& map, uint32_t shared, int32_t x,
                                          int32_t y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
        "r"(shared), "r"(x), "r"(y)
        : "memory");
}

__device__ __forceinline__ void bulk_commit() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Every store so far has read its shared memory, which may be written again.
__device__ __forceinline__ void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// Every store so far has ended.
__device__ __forceinline__ void bulk_wait() {
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ __forceinline__ void store_shared(uint32_t address, float4 v) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(address), "f"(v.x), "f"(v.y),
                 "f"(v.z), "f"(v.w)
                 : "memory");
}

__device__ __forceinline__ void store_shared(uint32_t address, float2 v) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(v.x), "f"(v.y) : "memory");
}

// Two values as bf16, the first in the low half.
__device__ __forceinline__ uint32_t pack(float first, float second) {
    uint32_t packed;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(second), "f"(first));
    return packed;
}

}  // namespace mutation
