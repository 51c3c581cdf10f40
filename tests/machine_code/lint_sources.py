"""Small CUDA kernels, each with one mistake that the lint must find, and near twins without it."""

MEET = 'asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");'
PASS = 'asm volatile("barrier.cluster.wait.aligned;" ::: "memory");'
WAIT = 'asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");'
ARRIVE = 'asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(barrier) : "memory");'
NAMED = 'asm volatile("bar.sync 1, 128;" ::: "memory");'
IN_PAIRS = "__cluster_dims__(2, 1, 1)"


def load(*registers: str) -> str:
    """Two columns of tensor memory into two registers."""
    a, b = registers
    return f"""asm volatile("tcgen05.ld.sync.aligned.32x32b.x2.b32 {{%0, %1}}, [%2];"
        : "=r"({a}), "=r"({b}) : "r"(tensor_memory));"""


def reader(*steps: str) -> str:
    """A warpgroup that reads an accumulator and says that it may be overwritten."""
    return f"""
extern "C" __global__ void __launch_bounds__(128)
sample(unsigned* out, unsigned tensor_memory, unsigned barrier) {{
    unsigned a, b, c, d;
    {" ".join(steps)}
    out[threadIdx.x] = a + b + c + d;
}}
"""


FIRST, SECOND = load("a", "b"), load("c", "d")


def pair(before: str, after: str, *, dims: str = IN_PAIRS, early: str = "") -> str:
    """A pair that allocates, reads and gives back; what is before that, and after the work."""
    return f"""
extern "C" __global__ void {dims} __launch_bounds__(128) sample(unsigned* out) {{
    __shared__ unsigned tensor_memory;
    const unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(&tensor_memory));
    {early}
    {before}
    if (threadIdx.x < 32) {{
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 64;"
            :: "r"(place) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
    }}
    __syncthreads();
    unsigned a, b;
    {FIRST} {WAIT}
    out[threadIdx.x] = a + b;
    {after}
    if (threadIdx.x < 32) {{
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 64;"
            :: "r"(tensor_memory));
    }}
}}
"""


BOTH = MEET + PASS
PARTED = """if (threadIdx.x < 64 && out[threadIdx.x] == 2) { out[7] = 1; while (out[8] != 3) {} }"""
"""Lanes of a warp go ways of their own."""


def loops(*, inner: str = "", outer: str = "", end: str = "") -> str:
    """Tiles, each of many MMAs: a step of the main loop, of the tile, and at the end."""
    return f"""
extern "C" __global__ void __launch_bounds__(128) sample(float* out, int steps, int tiles) {{
    float d[4] = {{}};
    const unsigned x = threadIdx.x;
    for (int tile = 0; tile < tiles; ++tile) {{
#pragma unroll 1
        for (int step = 0; step < steps; ++step) {{
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                "{{%0, %1, %2, %3}}, {{%4, %4, %4, %4}}, {{%4, %4}}, {{%0, %1, %2, %3}};"
                : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(x));
            out[step] = d[1];
            {inner}
        }}
        out[tile] = d[0];
        {outer}
    }}
    out[x] = d[0] + d[1] + d[2] + d[3];
    {end}
}}
"""


def fence(scope: str) -> str:
    return f'asm volatile("fence.acq_rel.{scope};" ::: "memory");'


def cases(count: int) -> str:
    """A switch that ptxas makes a jump table of."""
    arms = (
        f'case {i}: asm volatile("red.global.add.u32 [%0], {i * i + 3};" :: "l"(p + {i * 7 % 5}));'
        f" break;"
        for i in range(count)
    )
    return f"""
extern "C" __global__ void sample(unsigned* p, unsigned k) {{ switch (k) {{ {" ".join(arms)} }} }}
"""


CAUGHT = {
    "a load that is never waited for": ("read-before-release", reader(FIRST, SECOND, ARRIVE)),
    "a wait after the arrive": ("read-before-release", reader(FIRST, SECOND, ARRIVE, WAIT)),
    "a second load after the wait": (
        "read-before-release",
        reader(FIRST, WAIT, SECOND, ARRIVE, WAIT),
    ),
    "a named barrier before the wait": (
        "read-before-release",
        reader(FIRST, SECOND, NAMED, WAIT, ARRIVE),
    ),
    "a pair that never met": ("pair-before-peer", pair("", BOTH)),
    "a pair that only arrived": ("pair-before-peer", pair(MEET, PASS + BOTH)),
    "a launch's pair that never met": ("pair-before-peer", pair("", BOTH, dims="")),
    "a pair that just leaves": ("pair-without-farewell", pair(BOTH, "")),
    "a launch's pair that just leaves": ("pair-without-farewell", pair(BOTH, "", dims="")),
    "a pair of which some just leave": (
        "pair-without-farewell",
        pair(BOTH, f"if (out[0] > 5) {{ {BOTH} }}", dims=""),
    ),
    "a fence of the GPU at each step": (
        "barrier-in-main-loop",
        loops(inner=fence("gpu")),
    ),
    "a fence of the system at each step": ("barrier-in-main-loop", loops(inner=fence("sys"))),
}
"""By what is wrong: the rule that finds it, and the kernel."""

CLEAN = {
    "waited for, then signalled": reader(FIRST, SECOND, WAIT, ARRIVE),
    "signalled, then loaded": reader(ARRIVE, FIRST, SECOND, WAIT),
    "waited for, met, then signalled": reader(FIRST, SECOND, WAIT, NAMED, ARRIVE),
    "a pair that meets at both ends": pair(BOTH, BOTH),
    "a launch's pair that meets at both ends": pair(BOTH, BOTH, dims=""),
    "a launch's pair of which some lanes come late": pair(BOTH, PARTED + BOTH, dims=""),
    "a pair that leaves before it began": pair(BOTH, BOTH, early="if (!out) return;"),
    "a fence of the CTA at each step": loops(inner=fence("cta")),
    "a fence of the GPU at each tile": loops(outer=fence("gpu")),
    "a fence of the GPU at the end": loops(end=fence("gpu")),
    "a switch of two": cases(2),
}
"""Near twins in which nothing is wrong."""
