"""Small kernels in Triton's language, for `triton_emit.py`: what Triton makes of them is on trial.

Each is written as Triton's guides teach it: a tile a program, sizes as constants. `C` names a
kernel's constants, `tensordesc` parameters are tensor maps that the host makes.
"""

import triton
import triton.language as tl


@triton.jit
def layer_norm(x, weight, bias, out, eps, N: tl.constexpr, BLOCK: tl.constexpr):
    """One row of fp16 a program, in fp32."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < N
    values = tl.load(x + row * N + at, mask=inside, other=0.0).to(tl.float32)
    mean = tl.sum(values, axis=0) / N
    centred = tl.where(inside, values - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, axis=0) / N + eps)
    w = tl.load(weight + at, mask=inside).to(tl.float32)
    b = tl.load(bias + at, mask=inside).to(tl.float32)
    tl.store(out + row * N + at, (centred * scale * w + b).to(tl.float16), mask=inside)


@triton.jit
def matmul(a, b, c, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """A tile of C = A B a program, operands by pointers, with masks at the edges."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    at_a = a + rows[:, None] * K + inner[None, :]
    at_b = b + inner[:, None] * N + columns[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        left = tl.load(at_a, mask=(rows[:, None] < M) & (inner[None, :] < K - k), other=0.0)
        right = tl.load(at_b, mask=(inner[:, None] < K - k) & (columns[None, :] < N), other=0.0)
        total = tl.dot(left, right, total)
        at_a += BLOCK_K
        at_b += BLOCK_K * N
    at_c = c + rows[:, None] * N + columns[None, :]
    tl.store(at_c, total.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def matmul_tma(
    a,
    b,
    c,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PROGRAMS: tl.constexpr,
    SPECIALISED: tl.constexpr,
):
    """Persistent programs over tiles of C = A B^T, by tensor maps, warps specialised or not."""
    across = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(M, BLOCK_M) * across
    for tile in tl.range(
        tl.program_id(0), tiles, PROGRAMS, flatten=not SPECIALISED, warp_specialize=SPECIALISED
    ):
        row, column = (tile // across) * BLOCK_M, (tile % across) * BLOCK_N
        total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, K, BLOCK_K):
            total = tl.dot(a.load([row, k]), b.load([column, k]).T, total)
        c.store([row, column], total.to(tl.float16))


@triton.jit
def matmul_scaled(
    a,
    a_scale,
    b,
    b_scale,
    c,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """C = A B^T of e2m1 codes, two a byte, with a scale for each GROUP of a row."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    packed, groups = tl.arange(0, BLOCK_K // 2), tl.arange(0, BLOCK_K // GROUP)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        left = tl.load(a + rows[:, None] * (K // 2) + k // 2 + packed[None, :])
        right = tl.load(b + columns[:, None] * (K // 2) + k // 2 + packed[None, :])
        sa = tl.load(a_scale + rows[:, None] * (K // GROUP) + k // GROUP + groups[None, :])
        sb = tl.load(b_scale + columns[:, None] * (K // GROUP) + k // GROUP + groups[None, :])
        total = tl.dot_scaled(left, sa, "e2m1", right.T, sb, "e2m1", total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


@triton.jit
def attention(
    q,
    k,
    v,
    out,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD: tl.constexpr,
    SPECIALISED: tl.constexpr,
):
    """Causal attention of one head with a running maximum, by tensor maps."""
    start = tl.program_id(0) * BLOCK_M
    queries = q.load([start, 0])
    rows = start + tl.arange(0, BLOCK_M)
    greatest = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK_M,), tl.float32)
    result = tl.zeros((BLOCK_M, HEAD), tl.float32)
    for at in tl.range(0, start + BLOCK_M, BLOCK_N, warp_specialize=SPECIALISED):
        scores = tl.dot(queries, k.load([at, 0]).T) * (scale * 1.4426950408889634)
        columns = at + tl.arange(0, BLOCK_N)
        scores = tl.where(rows[:, None] >= columns[None, :], scores, -1.0e6)
        now = tl.maximum(greatest, tl.max(scores, axis=1))
        weights = tl.exp2(scores - now[:, None])
        shrink = tl.exp2(greatest - now)
        total = total * shrink + tl.sum(weights, axis=1)
        result = result * shrink[:, None]
        result = tl.dot(weights.to(tl.float16), v.load([at, 0]), result)
        greatest = now
    out.store([start, 0], (result / total[:, None]).to(tl.float16))


@triton.jit
def grouped_matmul(
    places,
    sizes,
    GROUPS,
    PROGRAMS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    """C = A B^T of several sizes in one launch; each group's tensor maps are made on the device."""
    tile, before = tl.program_id(0), 0
    for group in range(GROUPS):
        m = tl.load(sizes + group * 3)
        n = tl.load(sizes + group * 3 + 1)
        k = tl.load(sizes + group * 3 + 2)
        across = tl.cdiv(n, BLOCK_N)
        tiles = tl.cdiv(m, BLOCK_M) * across
        if tile < before + tiles:
            at_a = tl.load(places + group * 3).to(tl.pointer_type(tl.float16))
            at_b = tl.load(places + group * 3 + 1).to(tl.pointer_type(tl.float16))
            at_c = tl.load(places + group * 3 + 2).to(tl.pointer_type(tl.float16))
            a = tl.make_tensor_descriptor(at_a, [m, k], [k, 1], [BLOCK_M, BLOCK_K])
            b = tl.make_tensor_descriptor(at_b, [n, k], [k, 1], [BLOCK_N, BLOCK_K])
            c = tl.make_tensor_descriptor(at_c, [m, n], [n, 1], [BLOCK_M, BLOCK_N])
            while tile < before + tiles:
                row = ((tile - before) // across) * BLOCK_M
                column = ((tile - before) % across) * BLOCK_N
                total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
                for inner in range(0, k, BLOCK_K):
                    total = tl.dot(a.load([row, inner]), b.load([column, inner]).T, total)
                c.store([row, column], total.to(tl.float16))
                tile += PROGRAMS
        before += tiles
