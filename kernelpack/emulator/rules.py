"""Every rule that a kernel can break, as one table: what is wrong, and how to mend it.

A check names a row; so a finding cites no rule, level or section that is not
here. A name may have several rows, where the manual says it in several places or one form is surer
than another.
"""

from kernelpack.emulator.faults import Level, Rule
from kernelpack.errors import ProblemError
from kernelpack.spec.nearest import nearest

ERROR, WARN, STRICT = Level.ERROR, Level.WARN, Level.STRICT
_ROWS: list[Rule] = []


def _rule(name: str, level: Level, section: str, what: str, mend: str) -> Rule:
    """A row of the table."""
    row = Rule(name=name, level=level, section=section, what=what, mend=mend)
    _ROWS.append(row)
    return row


# fmt: off
# -- accesses -------------------------------------------------------------------------------

BOUNDS = _rule(
    "bounds", ERROR, "8.2",
    "an access outside every allocation",
    "check the index against the size, the size of the allocation, or the shape of the launch",
)
MISALIGNED = _rule(
    "misaligned", ERROR, "6.4.1",
    "an address that is not a multiple of what is accessed there; of a vector, of all of it",
    "align the base and the offset to the vector, or use a narrower one",
)
MISALIGNED_STORE = _rule(
    "misaligned", ERROR, "9.7.9.12",
    "`st.async` or `red.async` to an address that is not a multiple of what it writes",
    "align the remote address to the whole vector",
)
MISALIGNED_COPY = _rule(
    "misaligned", ERROR, "9.7.9.25.3.1",
    "a `cp.async` with an address that is not a multiple of its size",
    "align both addresses to 4, 8 or 16 bytes, or copy less at once",
)
MISALIGNED_ANSWER = _rule(
    "misaligned", ERROR, "9.7.13.17",
    "`clusterlaunchcontrol.try_cancel` answers at an address that is not a multiple of 16",
    "give the answer 16 bytes of shared memory, aligned to 16",
)
UNINITIALISED = _rule(
    "uninitialised", ERROR, "8.1",
    "a read of memory that nothing has written",
    "write it first, wait for the copy that does, or leave these elements out",
)
CTA_ENDED = _rule(
    "cta-ended", ERROR, "5.1.5",
    "shared memory of another CTA is accessed after that one has ended",
    "let the CTAs of the cluster meet at a cluster barrier before any of them exits",
)
_START = "let the CTAs of the cluster meet at a cluster barrier first"
CTA_NOT_STARTED = _rule(
    "cta-not-started", ERROR, "5.1.5",
    "shared memory of another CTA is accessed before anything shows that it has started",
    _START,
)
CTA_NOT_STARTED_CANCEL = _rule(
    "cta-not-started", ERROR, "9.7.13.17",
    "a `try_cancel` that answers every CTA of the cluster, before these have started",
    _START,
)
CTA_NOT_STARTED_PAIR = _rule(
    "cta-not-started", ERROR, "9.7.16.7.1",
    "tensor memory of a pair is allocated before the other CTA has started",
    _START,
)

# -- order ----------------------------------------------------------------------------------

RACE = _rule(
    "race", ERROR, "8.10",
    "two threads access one place, one of them writes, and nothing orders the two",
    "put a barrier between them, or a release and an acquire with a fence where they are relaxed",
)
RACE_MIXED = _rule(
    "race", WARN, "8.10",
    "a plain access beside an atomic operation of another thread, and nothing orders the two",
    "make the plain access an atomic or a relaxed one; a guess before a compare-and-swap may stay",
)
RACE_SAME_VALUE = _rule(
    "race", STRICT, "8.10",
    "two threads store the same value to one place, and nothing orders the two",
    "let one thread store it; the result is the same either way",
)
MEMORY_ORDER = _rule(
    "memory-order", WARN, "8.8",
    "what orders two accesses does so on hardware, and not by the memory model",
    "add the fence that the finding names, or widen the scope to that of both threads",
)
PROXY_FENCE = _rule(
    "proxy-fence", ERROR, "9.7.13.4",
    "a copy or a tensor core reads what threads wrote, with no proxy fence in between",
    "let each thread that wrote run `fence.proxy.async` before the barrier that publishes it",
)
PROXY_FENCE_OF_COPY = _rule(
    "proxy-fence", STRICT, "9.7.13.4",
    "a tensor core reads what `cp.async` wrote, with no proxy fence in between",
    "the same as for threads; public kernels leave it out after `cp.async.mbarrier.arrive`",
)
OPERAND_CHANGED = _rule(
    "operand-changed", ERROR, "9.7.16.6",
    "an operand is written while the operation that reads it may still be in flight",
    "wait for the operation's completion before the operand's memory is used again",
)
WARP_SYNC = _rule(
    "warp-sync", STRICT, "9.7.13.2",
    "a lane counts on what another lane of its warp did, and the two have not met since",
    "put `__syncwarp()` between them",
)
WARP_FENCE = _rule(
    "warp-fence", STRICT, "9.7.13.4",
    "an operation reads writes of lanes that neither fenced nor met the lane that fenced",
    "let every lane run the proxy fence, or `__syncwarp()` before the one that does",
)
TENSOR_FENCE = _rule(
    "tensor-fence", STRICT, "9.7.16.6.2",
    "two threads use the same tensor memory, and a `tcgen05.fence` on the way is missing",
    "`fence::before_thread_sync` before the barrier, `fence::after_thread_sync` after it",
)

# -- barriers and warps ---------------------------------------------------------------------

BARRIER_ARRIVE = _rule(
    "barrier-arrive", ERROR, "9.7.13.1",
    "a warp arrives at a named barrier again before its last phase is known to be complete",
    "wait for the readers first, or use two barriers in turn",
)
BARRIER_APART = _rule(
    "barrier-apart", STRICT, "9.7.13.1",
    "warps wait at an aligned barrier by different instructions; synccheck calls that divergent",
    "let all come by one place, or let each place be `barrier.sync` without `.aligned`",
)
BARRIER_COUNT = _rule(
    "barrier-count", ERROR, "9.7.13.1",
    "a barrier's count is not a multiple of 32, or not what the other warps say",
    "one count for all warps of the barrier: 32 times the warps that come",
)
BARRIER_NUMBER = _rule(
    "barrier-number", ERROR, "9.7.13.1",
    "there are barriers 0 to 15",
    "use one of these",
)
CLUSTER_BARRIER = _rule(
    "cluster-barrier", ERROR, "9.7.13.3",
    "`barrier.cluster` waits with no arrive before it, or arrives twice",
    "one `arrive`, then one `wait`, of every thread, in every phase",
)
CLUSTER_BARRIER_AGAIN = _rule(
    "cluster-barrier", WARN, "9.7.13.3",
    "`barrier.cluster.arrive` of the next phase, though this thread never waited for the last one",
    "one `wait` after each `arrive`",
)
_APART = (
    "an instruction for the whole warp (`.aligned`) is run by some of its lanes",
    "take it out of the branch, or let the condition be the same for all lanes of a warp",
)
DIVERGENT = {
    section: _rule("divergent", ERROR, section, *_APART)
    for section in (
        *("9.7.13.1", "9.7.13.3", "9.7.13.16", "9.7.14.4.3", "9.7.14.4.4", "9.7.14.4.5"),
        *("9.7.14.5.14", "9.7.14.5.15", "9.7.14.5.16", "9.7.14.5.17", "9.7.14.6.3"),
        *("9.7.15.5.2", "9.7.15.7.1", "9.7.15.7.2", "9.7.15.7.3"),
        *("9.7.16.7.1", "9.7.16.8", "9.7.16.8.5", "9.7.19.5"),
    )
}
"""By the section of the instruction."""
MEMBER_MASK = _rule(
    "member-mask", ERROR, "9.7.13",
    "a lane is not in its own member mask, or the mask names lanes that do not come",
    "compute the mask before the branch, by `__ballot_sync`, or let the whole warp run it",
)
_UNDEFINED = "a lane reads a value from a lane that does not take part"
SHUFFLE_SOURCE = _rule(
    "member-mask", WARN, "9.7.9.6",
    _UNDEFINED,
    "name the source lane in the mask, and let it come",
)
SHUFFLE_PAST_END = _rule(
    "member-mask", STRICT, "9.7.9.6",
    f"{_UNDEFINED}, by a shift past the end",
    "do not use the result, or clamp the segment to the lanes that come",
)
SINGLE_THREAD = _rule(
    "single-thread", ERROR, "9.7.16.5",
    "an instruction that one thread issues is issued by several",
    "elect one lane: `elect.sync`, or lane 0",
)
SETMAXNREG_DIRECTION = _rule(
    "setmaxnreg-direction", ERROR, "9.7.19.5",
    "`setmaxnreg.inc` to fewer registers than the warp has, or `.dec` to more",
    "compare with what the launch gives each thread",
)
SETMAXNREG_IGNORED = _rule(
    "setmaxnreg-ignored", WARN, "9.7.19.5",
    "`setmaxnreg` in a kernel that does not say how many registers its threads start with",
    "`__launch_bounds__(threads, 1)`, which sets `.maxntid` and `.minnctapersm`",
)
SETMAXNREG_WARPGROUP = _rule(
    "setmaxnreg-warpgroup", ERROR, "9.7.19.5",
    "the warps of a warpgroup ran different `setmaxnreg`",
    "branch by warpgroup (threads / 128), not by warp, around it",
)

# -- mbarriers ------------------------------------------------------------------------------

MBARRIER_ADDRESS = _rule(
    "mbarrier-address", ERROR, "9.7.13.15.1",
    "an mbarrier at an address that is not a multiple of 8",
    "align it to 8 bytes",
)
MBARRIER_AS_DATA = _rule(
    "mbarrier-as-data", ERROR, "9.7.13.15.1",
    "the memory of an mbarrier is read or written as data",
    "`mbarrier.inval` first, and let everybody know of it",
)
MBARRIER_COUNT = _rule(
    "mbarrier-count", ERROR, "9.7.13.15.2",
    "a count or a number of arrivals that an mbarrier cannot hold",
    "let the count be the sum of all arrivals of a phase",
)
MBARRIER_COUNT_RAISED = _rule(
    "mbarrier-count", ERROR, "9.7.13.15.15",
    "`cp.async.mbarrier.arrive` raised the pending count beyond its range",
    "`.noinc` with a count that includes these arrivals",
)
MBARRIER_FENCE = _rule(
    "mbarrier-fence", STRICT, "9.7.13.4",
    "a unit works on an mbarrier with no fence since it was initialised",
    "`fence.mbarrier_init.release.cluster` after `mbarrier.init`",
)
MBARRIER_LAPPED = _rule(
    "mbarrier-lapped", STRICT, "9.7.13.15",
    "a waiter cannot know which phase it saw: more than one went by since it looked last",
    "let the arrivals of the next phase wait for this waiter",
)
MBARRIER_NO_COMPLETE = _rule(
    "mbarrier-no-complete", ERROR, "9.7.13.15.13",
    "`mbarrier.arrive.noComplete` completed a phase",
    "leave `.noComplete` out, or count one arrival more",
)
MBARRIER_NOT_INITIALISED = _rule(
    "mbarrier-not-initialised", ERROR, "9.7.13.15",
    "an operation on memory where no mbarrier was initialised",
    "initialise it, and let a barrier order that before its first use",
)
MBARRIER_REINITIALISED = _rule(
    "mbarrier-reinitialised", ERROR, "9.7.13.15.9",
    "an mbarrier is initialised again",
    "`mbarrier.inval` before the second `mbarrier.init`",
)
MBARRIER_SPLIT_WARP = _rule(
    "mbarrier-split-warp", WARN, "9.7.13.15.13",
    "lanes of one instruction arrive in two phases of an mbarrier",
    "let the count be the sum of all arrivals of a phase: it is a few too low",
)
MBARRIER_TX_COUNT = _rule(
    "mbarrier-tx-count", ERROR, "9.7.13.15.2",
    "the bytes that an mbarrier expects left its range",
    "expect what is copied in one phase, and no more than 2^20 - 1 bytes",
)

# -- copies ---------------------------------------------------------------------------------

ASYNC_STORE_RANK = _rule(
    "async-store-rank", ERROR, "9.7.9.12",
    "`st.async` writes to one CTA and completes on an mbarrier of another",
    "map both addresses to the same rank",
)
BULK_ALIGNMENT = _rule(
    "bulk-alignment", ERROR, "9.7.9.25.4.1",
    "a bulk copy whose address or size is not a multiple of 16",
    "align all three to 16 bytes",
)
CP_ASYNC_SIZE = _rule(
    "cp-async-size", ERROR, "9.7.9.25.3.1",
    "a `cp.async` reads more than it writes",
    "clamp the source size to the size of the copy",
)
IN_FLIGHT_AT_EXIT = _rule(
    "in-flight-at-exit", STRICT, "9.7.16.6",
    "a CTA ends while a commit that nobody waits for is in flight",
    "wait for it, or leave it out",
)
STORE_IN_FLIGHT_AT_EXIT = _rule(
    "store-in-flight-at-exit", WARN, "9.7.9.27.2.2",
    "a CTA ends while a copy may still read or write its memory",
    "wait before the exit: `cp.async.bulk.wait_group.read 0`, or the mbarrier of a load",
)
SWIZZLE_OF_MAP = _rule(
    "swizzle-of-map", WARN, "5.5.7",
    "an MMA reads shared memory by another swizzle than the tensor map that filled it",
    "one swizzle for the map and the descriptor",
)
TMA_ALIGNMENT = _rule(
    "tma-alignment", ERROR, "9.7.9.27.1",
    "a tensor copy at a shared address that is not a multiple of 128",
    "align the stage to 128 bytes, to 1024 where it is swizzled by 128",
)
TMA_COORDINATE = _rule(
    "tma-coordinate", ERROR, "9.7.9.27.1",
    "a coordinate that is not a multiple of 16 bytes, in a map that needs it",
    "round the coordinate of the innermost dimension",
)
TMA_GATHER = _rule(
    "tma-gather", ERROR, "5.5.3.4",
    "gather4 or scatter4 through a map that is not 2D with boxes of one row",
    "encode a map of its own for them, with a box of (columns, 1)",
)
TMA_RANK = _rule(
    "tma-rank", ERROR, "9.7.9.27.1",
    "a tensor copy with more or fewer coordinates than its map has dimensions",
    "use the instruction of the map's rank",
)
TMA_STORE_COORDINATE = _rule(
    "tma-store-coordinate", ERROR, "9.7.9.27.1",
    "a store through a tensor map at a negative coordinate",
    "skip that store, or shift its box",
)

# -- tensor memory --------------------------------------------------------------------------

CTA_PAIR = _rule(
    "cta-pair", ERROR, "9.7.16.1",
    "`cta_group::2` in a cluster without a pair",
    "launch clusters of an even number of CTAs",
)
PAIR_DEALLOC = {
    "pair-use": _rule(
        "pair-dealloc", WARN, "9.7.16.7.1",
        "a CTA frees tensor memory of a pair while the other one may still use it",
        "let the pair meet at a cluster barrier before `tcgen05.dealloc`",
    ),
    "pair-alloc": _rule(
        "pair-dealloc", ERROR, "9.7.16.7.1",
        "a CTA frees tensor memory of a pair while the other one may still allocate it",
        "let the pair meet at a cluster barrier before `tcgen05.dealloc`",
    ),
}
"""By the kind of unit: what the other CTA of a pair does, and a release may overtake."""
TENSOR_LOAD_NOT_WAITED = _rule(
    "tensor-load-not-waited", STRICT, "9.7.16.8.5",
    "registers of a `tcgen05.ld` are used before it was waited for",
    "`tcgen05.wait::ld` before the first use",
)
TENSOR_MEMORY_BOUNDS = _rule(
    "tensor-memory-bounds", ERROR, "9.7.16.1",
    "columns of tensor memory beyond the last one",
    "check the column and N: there are 512",
)
TENSOR_MEMORY_BOUNDS_OF_COPY = _rule(
    "tensor-memory-bounds", ERROR, "9.7.16.9.2",
    "`tcgen05.cp` to columns beyond the last one, or to a lane other than 0",
    "check the address of its destination",
)
TENSOR_MEMORY_BOUNDS_OF_REGISTERS = _rule(
    "tensor-memory-bounds", ERROR, "9.7.16.8",
    "`tcgen05.ld` or `tcgen05.st` of columns beyond the last one",
    "check the column and the repeats",
)
SCALES_DIFFER = _rule(
    "tensor-memory-copies", ERROR, "9.7.16.10.7",
    "the copies of scale factors in the four quadrants of tensor memory differ",
    "`tcgen05.cp.32x128b.warpx4` writes all four",
)
OPERANDS_DIFFER = _rule(
    "tensor-memory-copies", STRICT, "9.7.16.10.5",
    "the groups of lanes hold different A: each multiplies its own",
    "nothing, where that is meant; else write A to every group",
)
TENSOR_MEMORY_DEALLOC = _rule(
    "tensor-memory-dealloc", ERROR, "9.7.16.7.1",
    "`tcgen05.dealloc` of columns that are not one allocation",
    "free what `tcgen05.alloc` wrote, with the same number of columns",
)
TENSOR_MEMORY_GROUP = _rule(
    "tensor-memory-group", ERROR, "9.7.16.5",
    "`cta_group::1` and `cta_group::2` in one kernel",
    "one of them for all `tcgen05` instructions of a kernel",
)
TENSOR_MEMORY_LANE = _rule(
    "tensor-memory-lane", ERROR, "9.7.16.10.5",
    "a matrix begins at a lane where its layout cannot",
    "lane 0, or the middle of the layout",
)
TENSOR_MEMORY_LANE_OF_REGISTERS = _rule(
    "tensor-memory-lane", ERROR, "9.7.16.8",
    "`tcgen05.ld` or `tcgen05.st` at lanes that are not in one quadrant",
    "the lane of the address is 32 times the warp's number in its warpgroup",
)
TENSOR_MEMORY_LEAK = _rule(
    "tensor-memory-leak", ERROR, "9.7.16.7.1",
    "a CTA ends with tensor memory that it did not free",
    "`tcgen05.dealloc` on every way out",
)
TENSOR_MEMORY_QUADRANT = _rule(
    "tensor-memory-quadrant", ERROR, "9.7.16.8.1",
    "a warp accesses lanes of tensor memory that are another warp's",
    "warp w of a warpgroup reaches lanes 32 w to 32 w + 31",
)
TENSOR_MEMORY_RELINQUISHED = _rule(
    "tensor-memory-relinquished", ERROR, "9.7.16.7.1",
    "`tcgen05.alloc` after `tcgen05.relinquish_alloc_permit`",
    "allocate first",
)
TENSOR_MEMORY_REPEATS = _rule(
    "tensor-memory-repeats", ERROR, "9.7.16.8",
    "a `tcgen05.ld` or `tcgen05.st` of a size that does not exist",
    "a power of two of repeats, 128 registers at most",
)
TENSOR_MEMORY_SIZE = _rule(
    "tensor-memory-size", ERROR, "9.7.16.7.1",
    "an allocation of a number of columns that is not a power of two from 32 to 512",
    "round it up",
)
TENSOR_MEMORY_UNALLOCATED = _rule(
    "tensor-memory-unallocated", ERROR, "9.7.16.7.1",
    "tensor memory is used that is not allocated, or not any more",
    "allocate enough columns; free them after the last use of every warp",
)
TENSOR_MEMORY_UNINITIALISED = _rule(
    "tensor-memory-uninitialised", ERROR, "9.7.16.8",
    "a read of tensor memory that nothing has written",
    "let the first product of an accumulator overwrite it (`enable-input-d` false)",
)

# -- matrix products ------------------------------------------------------------------------

_WGMMA, _TCGEN05 = "9.7.15.5.1.2", "9.7.16.4.1"
DESCRIPTOR_BASE_OFFSET = {
    unit: _rule(
        "descriptor-base-offset", STRICT, section,
        "a matrix begins inside a swizzle pattern, and its descriptor says base offset 0",
        "align it to the pattern, or set the base offset",
    )
    for unit, section in (("wgmma", _WGMMA), ("tcgen05", _TCGEN05))
}
"""By the unit that reads the descriptor; so the next one."""
DESCRIPTOR_RESERVED = {
    unit: _rule(
        "descriptor-reserved", ERROR, section,
        "reserved bits of a shared-memory descriptor are set",
        "mask the address to 18 bits, and shift it by 4, before it goes into the descriptor",
    )
    for unit, section in (("wgmma", _WGMMA), ("tcgen05", _TCGEN05))
}
DESCRIPTOR_SWIZZLE = _rule(
    "descriptor-swizzle", ERROR, _TCGEN05,
    "a swizzle mode that does not exist",
    "one of the modes of the table in that section",
)
DESCRIPTOR_VERSION = _rule(
    "descriptor-version", ERROR, _TCGEN05,
    "the constant field of a `tcgen05` descriptor is not 1",
    "set bits 46 to 48 to 1: descriptors of `wgmma` are not those of `tcgen05`",
)
_SHAPES, _FIELDS, _TRANSPOSE = "9.7.16.2.1", "9.7.16.4.2", "9.7.16.10.1"
_BY_TABLE = "choose a shape and types of the table in that section"
INSTRUCTION_M = _rule(
    "instruction-m", ERROR, _SHAPES,
    "an M that this `tcgen05.mma` does not have",
    _BY_TABLE,
)
INSTRUCTION_M_LAYOUT = _rule(
    "instruction-m", ERROR, "9.7.16.10.5",
    "an M without a layout",
    _BY_TABLE,
)
INSTRUCTION_N = _rule(
    "instruction-n", ERROR, _SHAPES,
    "an N that this `tcgen05.mma` does not have",
    _BY_TABLE,
)
INSTRUCTION_NARROW_N = _rule(
    "instruction-narrow-n", WARN, _SHAPES,
    "an N that the table does not list and hardware takes",
    "round N up to the table's step",
)
INSTRUCTION_NEGATE = _rule(
    "instruction-negate", ERROR, _TRANSPOSE,
    "`kind::i8` negates an operand",
    "clear the bit",
)
INSTRUCTION_RESERVED = _rule(
    "instruction-reserved", ERROR, _FIELDS,
    "reserved bits of an instruction descriptor are set",
    "clear them: the layout of block-scaled kinds differs from the others'",
)
INSTRUCTION_SATURATE = _rule(
    "instruction-saturate", ERROR, _FIELDS,
    "only `kind::i8` saturates",
    "clear the bit",
)
INSTRUCTION_SCALE = _rule(
    "instruction-scale", ERROR, "9.7.16.10.7.1",
    "a type or block size of scales that this kind does not have",
    _BY_TABLE,
)
INSTRUCTION_SCALE_ID = _rule(
    "instruction-scale-id", ERROR, "9.7.16.10.7.2",
    "a scale factor id at which its bytes cannot start",
    "a multiple of the scale factors that a K step takes",
)
INSTRUCTION_TRANSPOSE = _rule(
    "instruction-transpose", ERROR, _TRANSPOSE,
    "a transposed B with an N that this type does not have",
    _BY_TABLE,
)
INSTRUCTION_TRANSPOSE_TYPE = _rule(
    "instruction-transpose", ERROR, "9.7.16.10.3",
    "an operand is transposed whose type cannot be",
    "K-major operands for types of fewer than 8 bits",
)
INSTRUCTION_TRANSPOSE_SWIZZLE = _rule(
    "instruction-transpose-swizzle", ERROR, _TRANSPOSE,
    "a transposed operand by a swizzle that this type does not have",
    _BY_TABLE,
)
INSTRUCTION_TYPE = _rule(
    "instruction-type", ERROR, _SHAPES,
    "types that this kind does not multiply",
    _BY_TABLE,
)
INSTRUCTION_TYPE_CODE = _rule(
    "instruction-type", ERROR, _FIELDS,
    "the code of no type of this kind",
    _BY_TABLE,
)
INSTRUCTION_TYPE_MIXED = _rule(
    "instruction-type", WARN, _SHAPES,
    "`kind::f16` multiplies fp16 by bf16, which the table does not list",
    _BY_TABLE,
)
INSTRUCTION_WS = _rule(
    "instruction-ws", ERROR, _SHAPES,
    "a form that `.ws` does not have",
    "leave `.ws` out",
)
SCALE_COLUMN_OF_A = _rule(
    "scale-column", WARN, "9.7.16.10.7.2",
    "scales of A begin at a column that is not a multiple of what they take",
    "align them: hardware was seen to take it",
)
SCALE_COLUMN_OF_B = _rule(
    "scale-column", ERROR, "9.7.16.10.7.3",
    "scales of B begin at a column at which hardware reads others",
    "align them to the columns that they take",
)
SPARSE_METADATA = _rule(
    "sparse-metadata", ERROR, "9.7.14.6.1",
    "metadata of a sparse product that name one element of a run twice, or not in order",
    "two places of each four, the first one below; of `tf32`, 0b0100 or 0b1110",
)
TENSORMAP_RELEASE = _rule(
    "tensormap-fence", ERROR, "9.7.13.16",
    "a tensor map that a kernel changed is used, and whoever changed it ran no proxy fence",
    "`tensormap.cp_fenceproxy`, or `fence.proxy.tensormap::generic.release` after the change",
)
TENSORMAP_ACQUIRE = _rule(
    "tensormap-fence", ERROR, "9.7.13.4",
    "a tensor map that a kernel changed is used, and no warp of that block ran a proxy fence",
    "`fence.proxy.tensormap::generic.acquire` of its 128 bytes before the first use",
)
WGMMA_APART = _rule(
    "wgmma-apart", WARN, "9.7.15.7",
    "a warp runs a `wgmma` instruction that others of its warpgroup do not run at that turn",
    "branch by warpgroup (threads / 128) around them, waits too; not by warp",
)
WGMMA_FENCE = _rule(
    "wgmma-fence", ERROR, "9.7.15.7.1",
    "the first `wgmma` of a warp has no `wgmma.fence` before it",
    "`wgmma.fence.sync.aligned` first",
)
WGMMA_FENCE_AGAIN = _rule(
    "wgmma-fence-again", STRICT, "9.7.15.7.1",
    "a `wgmma` after a wait, with no `wgmma.fence` since",
    "a fence before the first `wgmma` of every group",
)
WGMMA_REGISTERS_IN_FLIGHT = _rule(
    "wgmma-registers-in-flight", WARN, "9.7.15.5.2",
    "an accumulator is used while a `wgmma` may still write it",
    "`wgmma.wait_group` before its first use",
)

# fmt: on

TABLE: tuple[Rule, ...] = tuple(_ROWS)
"""Every row; those of a name are in order of sections."""


def names() -> tuple[str, ...]:
    """The names of rules, each once, in order."""
    return tuple(sorted({row.name for row in TABLE}))


def of_name(name: str) -> tuple[Rule, ...]:
    """The rows of a name, the surest first.

    Raises:
        ProblemError: there is none.
    """
    found = [row for row in TABLE if row.name == name]
    if not found:
        raise ProblemError(f"no rule `{name[:60]}`", hint=nearest(name, names()))
    return tuple(sorted(found, key=lambda row: row.level))
