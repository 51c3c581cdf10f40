// Thread block clusters and their distributed shared memory (DSMEM).
// PTX ISA, "mapa", "barrier.cluster", "st.async"; special registers %cluster_*.
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// Cluster coordinates: x and y of this CTA, and the cluster's extents. The rank is x + y * width.
struct ClusterPosition {
    uint32_t x, y, width, height;
};

__device__ __forceinline__ ClusterPosition cluster_position() {
    ClusterPosition p;
    asm("mov.u32 %0, %%cluster_ctaid.x;" : "=r"(p.x));
    asm("mov.u32 %0, %%cluster_ctaid.y;" : "=r"(p.y));
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(p.width));
    asm("mov.u32 %0, %%cluster_nctaid.y;" : "=r"(p.height));
    return p;
}

// The DSMEM address, in the CTA of that rank, of the place that has `address` in this CTA.
__device__ __forceinline__ uint32_t map_shared(uint32_t address, uint32_t rank) {
    uint32_t mapped;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

// Arrive without publishing ordinary writes. It is enough for mbarriers that `fence_mbarrier_init`
// has published; a release would be a slow fence to L2.
__device__ __forceinline__ void cluster_arrive_relaxed() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}

// Wait until all threads of the cluster, this CTA's too, have arrived.
__device__ __forceinline__ void cluster_wait() {
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Wait for all threads of the cluster. Their earlier writes, stores and arrivals in other CTAs have
// happened.
__device__ __forceinline__ void cluster_sync() {
    asm volatile(
        "barrier.cluster.arrive.release.aligned;\n"
        "barrier.cluster.wait.acquire.aligned;" ::
            : "memory");
}

// Store 16 bytes into a CTA of the cluster, and count them on an mbarrier of that same CTA.
__device__ __forceinline__ void store_async(uint32_t address, float4 v, uint32_t barrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 "
        "[%0], {%1, %2, %3, %4}, [%5];" ::"r"(address),
        "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w), "r"(barrier)
        : "memory");
}

}  // namespace kp::ptx
