// Transaction barriers (mbarrier) in shared memory, by which producers and consumers synchronise.
// PTX ISA, "mbarrier": a phase completes when the pending arrivals and the outstanding bytes are
// both zero; the next phase then begins with the arrivals of `init`.
#pragma once
#include <cuda/std/cstdint>

namespace kp::ptx {

// The scope of a wait's acquire: this CTA and the async proxy, or the whole cluster.
enum class Scope { cta, cluster };

__device__ __forceinline__ void mbarrier_init(uint32_t barrier, uint32_t arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals)
                 : "memory");
}

__device__ __forceinline__ void mbarrier_arrive(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// `barrier` may be in another CTA of the cluster (see `map_shared`). It releases this thread's
// reads only; publishing writes needs .release.cluster, a slow fence to L2.
__device__ __forceinline__ void mbarrier_arrive_cluster(uint32_t barrier) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// The same, and it publishes writes of this thread, and of others before a __syncwarp, to those who
// wait with `Scope::cluster`. A slow fence to L2, for data that another CTA's instructions read.
__device__ __forceinline__ void mbarrier_arrive_release_cluster(uint32_t barrier) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier)
                 : "memory");
}

__device__ __forceinline__ void mbarrier_arrive_if(bool condition, uint32_t barrier) {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "setp.ne.u32 p, %1, 0;\n"
        "@p mbarrier.arrive.shared::cta.b64 _, [%0];\n"
        "}" ::"r"(barrier),
        "r"(uint32_t(condition))
        : "memory");
}

__device__ __forceinline__ void mbarrier_arrive_expect_tx(uint32_t barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

template <Scope scope>
__device__ __forceinline__ bool mbarrier_try_wait(uint32_t barrier, uint32_t parity) {
    uint32_t done;
    if constexpr (scope == Scope::cta) {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
            "selp.b32 %0, 1, 0, p;\n"
            "}"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    } else {
        asm volatile(
            "{\n"
            ".reg .pred p;\n"
            "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
            "selp.b32 %0, 1, 0, p;\n"
            "}"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
    }
    return done != 0;
}

// Whether the phase of this parity has completed. It does not wait.
__device__ __forceinline__ bool mbarrier_test(uint32_t barrier, uint32_t parity) {
    uint32_t done;
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.b32 %0, 1, 0, p;\n"
        "}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    return done != 0;
}

// Wait until the phase of this parity completes. A fresh barrier is in phase 0, so parity 1 passes.
template <Scope scope = Scope::cta>
__device__ __forceinline__ void mbarrier_wait(uint32_t barrier, uint32_t parity) {
    while (!mbarrier_try_wait<scope>(barrier, parity)) {
    }
}

}  // namespace kp::ptx
