// TMA stores: tensor copies from shared to global memory, in bulk groups of the issuing thread
// (`bulk_commit`, `bulk_wait_read`). PTX ISA, "cp.async.bulk.tensor". Coordinates are elements,
// innermost first, and not negative. Elements outside the tensor are not written. After threads
// have written the shared memory, they need `fence_proxy_async_shared` first.
#pragma once
#include <cuda/std/cstdint>
#include <kp/tensor_map.cuh>

namespace kp::ptx {

__device__ __forceinline__ void tma_store(const TensorMap& map, uint32_t shared, int32_t x,
                                          int32_t y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
        "r"(shared), "r"(x), "r"(y)
        : "memory");
}

__device__ __forceinline__ void tma_store(const TensorMap& map, uint32_t shared, int32_t x,
                                          int32_t y, int32_t z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(
            &map),
        "r"(shared), "r"(x), "r"(y), "r"(z)
        : "memory");
}

}  // namespace kp::ptx
