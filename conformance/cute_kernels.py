"""Small kernels in CuTe-DSL, for `cute_emit.py`: what it makes of them is on trial.

Each is written as its guides teach it. Sizes are those of `cute_cases.py`.
"""

import cutlass
from cutlass import cute, pipeline, utils
from cutlass.cute.nvgpu import cpasync, make_tiled_tma_atom_A, make_tiled_tma_atom_B, tcgen05
from cutlass.utils import blackwell_helpers

M, N, K = 128, 256, 64
"""The tile of a block."""
STAGES = 3
THREADS = 128
COLUMNS = 256


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """An element a thread."""
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    place = block * THREADS + thread
    if place < cute.size(a):
        c[place] = a[place] + b[place]


@cute.jit
def add(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C = A + B."""
    grid = [cute.ceil_div(cute.size(a), THREADS), 1, 1]
    add_kernel(a, b, c).launch(grid=grid, block=[THREADS, 1, 1])


@cute.struct
class Barriers:
    """Where the pipelines' barriers and the address of tensor memory are."""

    loads: cute.struct.MemRange[cutlass.Int64, STAGES * 2]
    result: cute.struct.MemRange[cutlass.Int64, 2]
    columns: cutlass.Int32


def pipelines(barriers: Barriers, stage_bytes: int):
    """Both ends of the loads' ring, and of the result's hand-over to all threads."""
    one = pipeline.CooperativeGroup(pipeline.Agent.Thread)
    everyone = pipeline.CooperativeGroup(pipeline.Agent.Thread, THREADS)
    loads = pipeline.PipelineTmaUmma.create(
        num_stages=STAGES,
        producer_group=one,
        consumer_group=one,
        tx_count=stage_bytes,
        barrier_storage=barriers.loads.data_ptr(),
    )
    result = pipeline.PipelineUmmaAsync.create(
        num_stages=1,
        producer_group=one,
        consumer_group=everyone,
        barrier_storage=barriers.result.data_ptr(),
    )
    return *loads.make_participants(), *result.make_participants()


def store(total: cute.Tensor, out: cute.Tensor, thread: cutlass.Int32):
    """Tensor memory to global memory, in fp16: a row a thread."""
    read = cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition.x64), cutlass.Float32)
    copy = tcgen05.make_tmem_copy(read, total)
    mine = copy.get_slice(thread)
    place = mine.partition_D(out)
    wide = cute.make_rmem_tensor(place.shape, cutlass.Float32)
    narrow = cute.make_rmem_tensor(place.shape, cutlass.Float16)
    cute.copy(copy, mine.partition_S(total), wide)
    narrow.store(wide.load().to(cutlass.Float16))
    cute.autovec_copy(narrow, place)


@cute.kernel
def matmul_kernel(
    mma: cute.TiledMma,
    load_a: cute.CopyAtom,
    a: cute.Tensor,
    load_b: cute.CopyAtom,
    b: cute.Tensor,
    c: cute.Tensor,
    layout_a: cute.ComposedLayout,
    layout_b: cute.ComposedLayout,
):
    """A tile of C = A B^T a block: warp 0 loads and multiplies, all warps store."""
    thread, _, _ = cute.arch.thread_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    row, column, _ = cute.arch.block_idx()
    room, half = utils.SmemAllocator(), cutlass.Float16
    barriers = room.allocate(Barriers)
    shared_a = room.allocate_tensor(half, layout_a.outer, 128, swizzle=layout_a.inner)
    shared_b = room.allocate_tensor(half, layout_b.outer, 128, swizzle=layout_b.inner)
    meet = pipeline.NamedBarrier(barrier_id=1, num_threads=THREADS)
    memory = utils.TmemAllocator(barriers.columns.ptr, barrier_for_retrieve=meet)
    memory.allocate(COLUMNS)

    stage_bytes = sum(
        cute.size_in_bytes(half, cute.select(layout, mode=[0, 1, 2]))
        for layout in (layout_a, layout_b)
    )
    loads, loaded, result, wanted = pipelines(barriers, stage_bytes)

    tile, place, part = (M, N, K), (row, column, None), mma.get_slice(0)
    tile_a = part.partition_A(cute.local_tile(a, tile, place, proj=(1, None, 1)))
    tile_b = part.partition_B(cute.local_tile(b, tile, place, proj=(None, 1, 1)))
    tile_c = part.partition_C(cute.local_tile(c, tile, place, proj=(1, 1, None)))
    operand_a, operand_b = mma.make_fragment_A(shared_a), mma.make_fragment_B(shared_b)
    to_a, from_a = cpasync.tma_partition(
        load_a,
        0,
        cute.make_layout(1),
        cute.group_modes(shared_a, 0, 3),
        cute.group_modes(tile_a, 0, 3),
    )
    to_b, from_b = cpasync.tma_partition(
        load_b,
        0,
        cute.make_layout(1),
        cute.group_modes(shared_b, 0, 3),
        cute.group_modes(tile_b, 0, 3),
    )
    memory.wait_for_alloc()
    columns = memory.retrieve_ptr(cutlass.Float32)
    shape = mma.make_fragment_C(mma.partition_shape_C((M, N)))
    total = cute.make_tensor(columns, shape.layout)

    if warp == 0:
        result.acquire()
        for _ in cutlass.range(cute.size(tile_a, mode=[3]), prefetch_stages=STAGES - 1):
            slot = loads.acquire_and_advance()
            cute.copy(
                load_a,
                from_a[(None, slot.count)],
                to_a[(None, slot.index)],
                tma_bar_ptr=slot.barrier,
            )
            cute.copy(
                load_b,
                from_b[(None, slot.count)],
                to_b[(None, slot.index)],
                tma_bar_ptr=slot.barrier,
            )
            ready = loaded.wait_and_advance()
            for k in cutlass.range_constexpr(cute.size(operand_a, mode=[2])):
                at = (None, None, k, ready.index)
                cute.gemm(mma, total, operand_a[at], operand_b[at], total)
                mma.set(tcgen05.Field.ACCUMULATE, True)
            ready.release()
        result.commit()
    memory.relinquish_alloc_permit()
    wanted.wait_and_advance()
    store(total[None, 0, 0], tile_c[None, 0, 0], thread)
    pipeline.sync(barrier_id=1)
    memory.free(columns)


@cute.jit
def matmul(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    """C = A B^T of fp16."""
    operation = tcgen05.MmaF16BF16Op(
        cutlass.Float16,
        cutlass.Float32,
        (M, N, 16),
        tcgen05.CtaGroup.ONE,
        tcgen05.OperandSource.SMEM,
        tcgen05.OperandMajorMode.K,
        tcgen05.OperandMajorMode.K,
    )
    mma, tile = cute.make_tiled_mma(operation), (M, N, K)
    layout_a = blackwell_helpers.make_smem_layout_a(mma, tile, a.element_type, STAGES)
    layout_b = blackwell_helpers.make_smem_layout_b(mma, tile, b.element_type, STAGES)
    load = cpasync.CopyBulkTensorTileG2SOp(tcgen05.CtaGroup.ONE)
    stage_a = cute.select(layout_a, mode=[0, 1, 2])
    stage_b = cute.select(layout_b, mode=[0, 1, 2])
    load_a, whole_a = make_tiled_tma_atom_A(load, a, stage_a, tile, mma)
    load_b, whole_b = make_tiled_tma_atom_B(load, b, stage_b, tile, mma)
    matmul_kernel(mma, load_a, whole_a, load_b, whole_b, c, layout_a, layout_b).launch(
        grid=cute.ceil_div((*c.layout.shape, 1), tile), block=(THREADS, 1, 1)
    )
