// Prologue and exit of a kernel that allocates all TMEM columns: cluster sync, programmatic
// dependent launch (PDL), TMEM alloc and dealloc.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/cluster.cuh>
#include <kp/ptx/griddepcontrol.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/ptx/tcgen05.cuh>

namespace kp::mla {

constexpr uint32_t TENSOR_COLUMNS = 512;

// All threads call it once the barriers are initialised; `allocates` is true for one warp. In a
// pair the peer CTA runs and has its barriers before anyone signals it or allocates TMEM with it.
// Earlier launches have ended before anything of theirs is read or their TMEM allocated.
template <uint32_t CTAS>
__device__ __forceinline__ void enter(uint32_t& tmem_address, bool allocates) {
    __syncwarp();
    if constexpr (CTAS > 1) {
        ptx::cluster_arrive_relaxed();
        ptx::cluster_wait();
    }
    ptx::grid_dependency_wait();
    if (allocates) {
        ptx::tmem_alloc<CTAS>(ptx::shared_address(&tmem_address), TENSOR_COLUMNS);
        ptx::tmem_relinquish_alloc_permit<CTAS>();
    }
    ptx::tcgen05_fence_before();
    __syncthreads();
    ptx::tcgen05_fence_after();
    if (tmem_address != 0) __trap();  // an allocation of all columns begins at 0
}

// All threads call it. TMEM is freed once every warp has read what it needs, and a CTA of a pair
// exits once nothing more is in flight to it.
template <uint32_t CTAS>
__device__ __forceinline__ void leave(bool allocates) {
    if (allocates) ptx::launch_dependents();
    __syncwarp();
    ptx::tcgen05_fence_before();
    if constexpr (CTAS > 1) {
        ptx::cluster_sync();
    } else {
        __syncthreads();
    }
    ptx::tcgen05_fence_after();
    if (allocates) ptx::tmem_dealloc<CTAS>(0, TENSOR_COLUMNS);
}

}  // namespace kp::mla
