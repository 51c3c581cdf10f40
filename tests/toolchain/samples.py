"""Small kernels for the compilers: what they need of each target, and a line to point at."""

import os
from pathlib import Path

from kernelpack.spec.arch import Arch
from kernelpack.spec.artifact import Header, Ptx, Source
from kernelpack.toolchain.frontend import compile as compile_source
from kernelpack.toolchain.toolchain import Toolchain

SHARED = """#pragma once
namespace part {
struct alignas(64) Map { unsigned long long opaque[16]; };
__device__ inline unsigned shared(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
__device__ inline void load(unsigned to, const Map& map, unsigned barrier) {
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 8192;" ::"r"(barrier) : "memory");
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
        "[%0], [%1, {%3, %3}], [%2];" ::"r"(to), "l"(&map), "r"(barrier), "r"(0) : "memory");
}
}
"""

HEADERS = (Header(path="sample/shared.cuh", text=SHARED),)

START = """#line 1 "sample/kernel.cu.j2"
#include <cuda/std/cstdint>
#include <cuda_bf16.h>
#include <sample/shared.cuh>
extern "C" __global__ void __launch_bounds__(128)
sample(const __grid_constant__ part::Map map, float* out, const __nv_bfloat16* scale,
       unsigned short shift, cuda::std::uint32_t rows, cuda::std::uint64_t stride) {
    __shared__ alignas(1024) unsigned char tile[8192];
    __shared__ alignas(8) unsigned long long barrier;
    const float by = __bfloat162float(scale[shift]);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(part::shared(&barrier)));
        part::load(part::shared(tile), map, part::shared(&barrier));
    }
    __syncthreads();
#line 30 "sample/part.j2"
"""

HOPPER = """    float d[4] = {by, by, by, by};
    const unsigned long long a = (part::shared(tile) >> 4) | (1ull << 62);
    asm volatile("wgmma.fence.sync.aligned;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory");
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %4, 1,1,1,0,0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) :: "memory");
    if (threadIdx.x < rows) out[threadIdx.x * stride] = d[0] + d[1] + d[2] + d[3];
}
"""

BLACKWELL = """    __shared__ unsigned columns;
    if (threadIdx.x < 32)
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(
            part::shared(&columns)) : "memory");
    __syncthreads();
    const unsigned long long a = (part::shared(tile) >> 4) | (1ull << 46);
    if (threadIdx.x == 0)
        asm volatile(
            "{.reg .pred p; setp.ne.u32 p, %3, 0;"
            "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %1, %2, p;}" ::"r"(columns), "l"(a),
            "r"(0x8020490u), "r"(0) : "memory");
    if (threadIdx.x < rows) out[threadIdx.x * stride] = by;
    __syncthreads();
    if (threadIdx.x < 32)
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(columns));
}
"""

BODIES = {"sm_90a": HOPPER, "sm_100a": BLACKWELL}


def sample(arch: str, *, extra: str = "") -> Source:
    """The sample kernel of a target; `extra` is at `sample/part.j2:30`."""
    return source(START + extra + BODIES[arch])


def source(text: str) -> Source:
    """A source with the sample's header."""
    return Source(
        variant_id="sample[arch=any]",
        entry="sample",
        name="sample/kernel.cu.j2",
        text=text,
        headers=HEADERS,
    )


def compile_in(folder: Path, source: Source, tools: Toolchain, arch: Arch) -> Ptx:
    """Compile while the process is in a folder."""
    back = Path.cwd()
    os.chdir(folder)
    try:
        return compile_source(source, tools, arch)
    finally:
        os.chdir(back)
