// TMA loads for CTAs that multiply together (cta_group): as those of tma.cuh, but in a pair
// `barrier` may be the even CTA's, which then counts the bytes of both. PTX ISA,
// "cp.async.bulk.tensor", .cta_group.
#pragma once
#include <cuda/std/cstdint>
#include <kp/tensor_map.cuh>

namespace kp::ptx {

template <uint32_t CTAS>
__device__ __forceinline__ void tma_load_group(uint32_t shared, const TensorMap& map,
                                               uint32_t barrier, int32_t x, int32_t y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::%5 "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "n"(CTAS)
        : "memory");
}

template <uint32_t CTAS>
__device__ __forceinline__ void tma_load_group(uint32_t shared, const TensorMap& map,
                                               uint32_t barrier, int32_t x, int32_t y, int32_t z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::%6 "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "n"(CTAS)
        : "memory");
}

template <uint32_t CTAS>
__device__ __forceinline__ void tma_load_group(uint32_t shared, const TensorMap& map,
                                               uint32_t barrier, int32_t x, int32_t y, int32_t z,
                                               int32_t w) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::%7 "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "n"(CTAS)
        : "memory");
}

}  // namespace kp::ptx
