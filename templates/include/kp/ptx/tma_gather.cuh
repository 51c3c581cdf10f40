// TMA gathers of four rows of a tensor, each named. PTX ISA, "cp.async.bulk.tensor",
// .tile::gather4: the map has two dimensions and a box of one row; four rows are written one after
// another. A row outside the tensor, such as -1, arrives as zeros and counts as bytes. Only on
// Blackwell.
#pragma once
#include <cuda/std/cstdint>
#include <kp/tensor_map.cuh>

namespace kp::ptx {

__device__ __forceinline__ void tma_gather4(uint32_t shared, const TensorMap& map, uint32_t barrier,
                                            int32_t column, int4 rows) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4"
        ".mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(column), "r"(rows.x), "r"(rows.y), "r"(rows.z), "r"(rows.w)
        : "memory");
}

// `policy` is an L2 policy of cache_policy.cuh. It changes no value.
__device__ __forceinline__ void tma_gather4(uint32_t shared, const TensorMap& map, uint32_t barrier,
                                            int32_t column, int4 rows, uint64_t policy) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4"
        ".mbarrier::complete_tx::bytes.L2::cache_hint "
        "[%0], [%1, {%3, %4, %5, %6, %7}], [%2], %8;" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(column), "r"(rows.x), "r"(rows.y), "r"(rows.z), "r"(rows.w),
        "l"(policy)
        : "memory");
}

// For CTAs that multiply together (cta_group): in a pair `barrier` may be the even CTA's, which
// then counts the bytes of both.
template <uint32_t CTAS>
__device__ __forceinline__ void tma_gather4_group(uint32_t shared, const TensorMap& map,
                                                  uint32_t barrier, int32_t column, int4 rows) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4"
        ".mbarrier::complete_tx::bytes.cta_group::%8 [%0], [%1, {%3, %4, %5, %6, %7}], [%2];" ::"r"(
            shared),
        "l"(&map), "r"(barrier), "r"(column), "r"(rows.x), "r"(rows.y), "r"(rows.z), "r"(rows.w),
        "n"(CTAS)
        : "memory");
}

template <uint32_t CTAS>
__device__ __forceinline__ void tma_gather4_group(uint32_t shared, const TensorMap& map,
                                                  uint32_t barrier, int32_t column, int4 rows,
                                                  uint64_t policy) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4"
        ".mbarrier::complete_tx::bytes.cta_group::%8.L2::cache_hint "
        "[%0], [%1, {%3, %4, %5, %6, %7}], [%2], %9;" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(column), "r"(rows.x), "r"(rows.y), "r"(rows.z), "r"(rows.w),
        "n"(CTAS), "l"(policy)
        : "memory");
}

// Prefetch four rows into L2: a hint. It changes no value, and rows may lie outside the tensor.
__device__ __forceinline__ void tma_prefetch_gather4(const TensorMap& map, int32_t column,
                                                     int4 rows) {
    asm volatile(
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 "
        "[%0, {%1, %2, %3, %4, %5}];" ::"l"(&map),
        "r"(column), "r"(rows.x), "r"(rows.y), "r"(rows.z), "r"(rows.w)
        : "memory");
}

}  // namespace kp::ptx
