// How the CTAs of a kernel that takes all of tensor memory begin and end.
#pragma once
#include <cuda/std/cstdint>
#include <kp/ptx/cluster.cuh>
#include <kp/ptx/griddepcontrol.cuh>
#include <kp/ptx/shared.cuh>
#include <kp/ptx/tcgen05.cuh>

namespace kp::mla {

constexpr uint32_t TENSOR_COLUMNS = 512;

// All threads, once the barriers are initialised; `allocates` is true for one warp. In a pair the
// peer is there, and so are its barriers, before it is signalled or tensor memory taken with it.
// Nothing of earlier launches is read before they have ended, nor tensor memory taken from them.
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
    if (tmem_address != 0) __trap();  // all columns begin at 0, unless others have some
}

// All threads: tensor memory is given back once every warp has read what it needs, and a CTA of a
// pair leaves once nothing more is on its way to it.
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
