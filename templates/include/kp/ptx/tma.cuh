// TMA loads: tensor copies from global to shared memory, also multicast, and L2 prefetches. PTX
// ISA, "cp.async.bulk.tensor". Coordinates are elements, innermost first. Elements outside the
// tensor arrive as zeros and count as bytes. The bytes of a box complete on `barrier`.
#pragma once
#include <cuda/std/cstdint>
#include <kp/tensor_map.cuh>

namespace kp::ptx {

__device__ __forceinline__ void prefetch_map(const TensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t shared, const TensorMap& map, uint32_t barrier,
                                         int32_t x, int32_t y) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4}], [%2];" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(x), "r"(y)
        : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t shared, const TensorMap& map, uint32_t barrier,
                                         int32_t x, int32_t y, int32_t z) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z)
        : "memory");
}

__device__ __forceinline__ void tma_load(uint32_t shared, const TensorMap& map, uint32_t barrier,
                                         int32_t x, int32_t y, int32_t z, int32_t w) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w)
        : "memory");
}

// Prefetch a box into L2: a hint. It changes no value, and the box may lie outside the tensor.
__device__ __forceinline__ void tma_prefetch(const TensorMap& map, int32_t x, int32_t y,
                                             int32_t z) {
    asm volatile("cp.async.bulk.prefetch.tensor.3d.L2.global [%0, {%1, %2, %3}];" ::"l"(&map),
                 "r"(x), "r"(y), "r"(z)
                 : "memory");
}

__device__ __forceinline__ void tma_prefetch(const TensorMap& map, int32_t x, int32_t y, int32_t z,
                                             int32_t w) {
    asm volatile("cp.async.bulk.prefetch.tensor.4d.L2.global [%0, {%1, %2, %3, %4}];" ::"l"(&map),
                 "r"(x), "r"(y), "r"(z), "r"(w)
                 : "memory");
}

// The same box to the same place in every CTA of `ranks`, a bit a rank; each one's own barrier, at
// the same place, counts the bytes.
__device__ __forceinline__ void tma_load_multicast(uint32_t shared, const TensorMap& map,
                                                   uint32_t barrier, int32_t x, int32_t y,
                                                   uint16_t ranks) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "h"(ranks)
        : "memory");
}

__device__ __forceinline__ void tma_load_multicast(uint32_t shared, const TensorMap& map,
                                                   uint32_t barrier, int32_t x, int32_t y,
                                                   int32_t z, uint16_t ranks) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "h"(ranks)
        : "memory");
}

__device__ __forceinline__ void tma_load_multicast(uint32_t shared, const TensorMap& map,
                                                   uint32_t barrier, int32_t x, int32_t y,
                                                   int32_t z, int32_t w, uint16_t ranks) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%0], [%1, {%3, %4, %5, %6}], [%2], %7;" ::"r"(shared),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "r"(z), "r"(w), "h"(ranks)
        : "memory");
}

}  // namespace kp::ptx
