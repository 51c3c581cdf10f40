"""New tokens into an MLA cache, in the format of its rows.

    row of token t = latent[t], rope[t], rounded and scaled as the format has it

The array of rows says which format it is by its type and width (`kernels/kv_operand/rows`); the
bits are those of `kernels/kv_cache_append/reference`. One launch and no wait for the GPU; arrays of
numpy are written on the CPU emulator. A token that has no row, such as one of slot -1, is left out,
so graphs may be padded with anything.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_cache_append.problem import ABIS, KERNEL, Problem
from kernelpack.kernels.kv_cache_append.reference import places
from kernelpack.kernels.kv_operand.lookup import Lookup
from kernelpack.kernels.kv_operand.rows import LATENT
from kernelpack.kv import Continuous, Operand, Paged, operand
from kernelpack.load.library import Library
from kernelpack.ops import kv_operand
from kernelpack.ops.appended import check_apart, check_row_offsets, sequences_of
from kernelpack.ops.arrays import Array, DeviceArray
from kernelpack.ops.checks import check_array, require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.kv_operand import INTEGERS
from kernelpack.ops.op import op
from kernelpack.ops.operation import Form, Made, Operation, Read, Request, Views
from kernelpack.ops.spread import spread, spread_of
from kernelpack.ops.stream import Stream

_SLOTS = (*INTEGERS, DType.I64, DType.U64)


def _located(kv: Operand, views: Views) -> Views:
    found = {**kv_operand.looked_up(kv, kv_operand.located(kv, views))}
    for name, width in (("latent", "512"), ("rope", "64")):
        if name in views:
            check_array(views[name], name, f"t {width}", (DType.BF16,), KERNEL)
            found[name] = spread(views[name], name, KERNEL)
    if "slots" in views:
        check_array(views["slots"], "slots", "t", _SLOTS, KERNEL)
        _check_side("slots", views["slots"].shape[0], views["latent"].shape[0])
    for name in ("slots", kv_operand.SCALES):
        if name in views:
            found[name] = _words(found[name], name)
    return found


def _of_sequences(kv: Operand, row_offsets: Array) -> tuple[Array, Array]:
    """The table and the lengths of a cache, for tokens that follow those it has."""
    rule = "`slots` or `row_offsets` must be given: where tokens go"
    require(row_offsets is not None, rule, KERNEL)
    where = f"kv.{type(kv).__name__}"
    if not isinstance(kv, Paged | Continuous):
        what = "`row_offsets`: a storage whose sequences have no lengths of their own cannot grow"
        raise ProblemError(what, where=where, hint="name rows by `slots`")
    require(kv.lengths is not None, "`lengths` must be given, for tokens to follow", where)
    return kv_operand.lookup_arrays(kv)[0], kv.lengths


def _words(array: DeviceArray, name: str) -> DeviceArray:
    """An array as words of 32 bits, which is how the kernel takes them; names it if it has gaps."""
    require(array.is_contiguous, f"`{name}` must have no gaps", KERNEL)
    words = array.size * array.dtype.bits // 32
    return replace(array, shape=(words,), strides=None, dtype=DType.U32)


def _problem(views: Views, outs: Views, kv: Operand, *, power_of_two: bool) -> Problem:
    """The numbers of a call, after the rules about sides hold."""
    everything = {**views, **outs}
    storage, latent = kv_operand.storage_of(everything), spread_of(views["latent"])
    t, row, scales = latent.sides[0], storage.row, kv_operand.scales_of(everything, kv)
    rope = _check_rope(views, row.name, row.rope, t)
    _check_side("latent", latent.sides[1], LATENT)
    problem = Problem(
        t=t,
        row=row,
        latent_stride=latent.steps[0],
        rope_stride=rope,
        slot_words=max(1, views["slots"].shape[0] // max(1, t)) if "slots" in views else 0,
        lookup=_lookup(views, everything, kv),
        block_stride=storage.block_stride,
        scales_per_row=scales.per_row if scales else 0,
        power_of_two=bool(power_of_two),
    )
    problem.check()
    return problem


def _check_rope(views: Views, name: str, width: int, t: int) -> int:
    """Elements from one token's rope values to the next one's; 0 where rows have none."""
    if not width:
        require("rope" not in views, f"`rope` must be None: {name} rows have none", KERNEL)
        return 0
    require("rope" in views, f"`rope` must be given: {name} rows have it", KERNEL)
    rope = spread_of(views["rope"])
    require(
        rope.sides[0] == t, f"`rope` must have latent's {t} tokens, not {rope.sides[0]}", KERNEL
    )
    _check_side("rope", rope.sides[1], width)
    return rope.steps[0]


def _check_side(name: str, found: int, wanted: int) -> None:
    require(found == wanted, f"`{name}` must have {wanted} elements, not {found}", KERNEL)


def _lookup(views: Views, everything: Views, kv: Operand) -> Lookup:
    storage = kv_operand.storage_of(everything)
    if "slots" in views:
        return Lookup(sequences=0, page=storage.page, blocks=storage.blocks)
    lookup = kv_operand.lookup_of(kv, everything)
    sequences = sequences_of(views["row_offsets"], "row_offsets", KERNEL)
    for name, found in (("lengths", views["lengths"].shape[0]), ("table", lookup.sequences)):
        rule = f"`{name}` must have the {sequences} sequences of `row_offsets`, not {found}"
        is_whole = name == "table" and not lookup.has_table
        require(found >= sequences if is_whole else found == sequences, rule, KERNEL)
    return replace(lookup, sequences=sequences)


def _made(problem: Problem) -> dict[str, Made]:
    rows = problem.kv_rows
    made = {"kv": Made(shape=(rows * problem.row.bytes,), dtype=DType.U8)}
    if problem.scales_per_row:
        shape = (rows * problem.scales_per_row,)
        made["kv_scales"] = Made(shape=shape, dtype=DType.U32)
    return made


def _check_values(problem: Problem, read: Read) -> None:
    """Report tokens that have no row, which the kernel leaves out, and two that have the same."""
    rows = problem.lookup.page * problem.lookup.blocks
    if problem.slot_words:
        raw = read("slots")
        slots = raw.view(np.int32) if problem.slot_words == 1 else raw.view(np.int64)
        bad = np.flatnonzero((slots < -1) | (slots >= rows))
        for at in bad[:1].tolist():
            rule = f"`slots[{at}]` must be -1 to {rows - 1}, not {slots[at]}"
            raise ProblemError(rule, where=KERNEL)
        check_apart(places(problem, {"slots": raw}), "`slots`", KERNEL)
        return
    check_row_offsets(read("row_offsets"), problem.t, KERNEL)
    offsets = read("row_offsets").view(np.uint32).astype(np.int64)
    lengths = read("lengths").view(np.uint32).astype(np.int64)
    room, ends = problem.lookup.pages * problem.lookup.page, lengths + np.diff(offsets)
    for b in np.flatnonzero(ends > room)[:1].tolist():
        rule = (
            f"sequence {b} has room for {room} tokens, not {lengths[b]} and {np.diff(offsets)[b]}"
        )
        raise ProblemError(rule, where=KERNEL)
    table = read("table") if problem.lookup.has_table else offsets  # which nothing looks at then
    found = places(problem, {"row_offsets": offsets, "lengths": lengths, "table": table})
    for at in np.flatnonzero(found[: offsets[-1]] < 0)[:1].tolist():
        b = int(np.searchsorted(offsets, at, side="right")) - 1
        page = (lengths[b] + at - offsets[b]) // problem.lookup.page
        entry = f"`table[{b}, {page}]`" if problem.lookup.pages > 1 else f"`table[{b}]`"
        what = entry if problem.lookup.has_table else f"the slot of sequence {b}"
        rule = f"{what} must name one of {problem.lookup.blocks} blocks: token {at} goes there"
        raise ProblemError(rule, where=KERNEL)
    check_apart(found, "`table`", KERNEL)


@op(
    Operation(
        kernel=KERNEL,
        abis=ABIS,
        inputs={
            "latent": Form(dims="elements", dtypes=(DType.BF16,)),
            "rope": Form(dims="elements", dtypes=(DType.BF16,)),
            "slots": Form(dims="words", dtypes=(DType.U32,)),
            "row_offsets": Form(dims="sequences+1", dtypes=INTEGERS),
            "lengths": Form(dims="sequences", dtypes=INTEGERS),
            "table": kv_operand.LOOKUP["table"],
        },
        outputs={
            "kv": Form(dims="bytes", dtypes=(DType.U8,)),
            "kv_scales": Form(dims="words", dtypes=(DType.U32,)),
        },
        optional=frozenset(("rope", "slots", "row_offsets", "lengths", "table", "kv_scales")),
        made=_made,
        check_values=_check_values,
        takes_any_values=True,
        in_place=frozenset(("kv", "kv_scales")),
    )
)
def kv_cache_append(
    latent: Array,
    rope: Array,
    kv: Operand | Array,
    *,
    slots: Array = None,
    row_offsets: Array = None,
    power_of_two: bool = False,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
    debug: bool = False,
) -> Request[Problem, None]:
    """Write; returns at once, the rows follow on the stream.

    Args:
        latent: latent values of each token [t, 512], bf16, normed as the model has it. Tokens
            may be any multiple of 8 elements apart, as in `x[:, :512]`.
        rope: rope values of each token [t, 64], bf16, after rotation; likewise. None for rows
            without rope.
        kv: the cache: an operand of `kernelpack.kv`, or rows alone [rows, row]. Its `scales`
            are written too.
        slots: the row of each token [t], i32 or i64: an encoded index, `block * page + offset`.
            Those that name none, -1 by custom, are left out. No two may be the same. As u32 or u64
            what is negative is large, and left out too.
        row_offsets: in place of slots: the first token of each sequence, then their number
            [sequences + 1], i32 or u32. Tokens follow those that `kv.lengths` counts, in the
            pages of `kv.table`; the lengths stay as they are. Tokens without a page are left out.
        power_of_two: whether scales are rounded up to powers of two, as some readers of 656
            byte rows want them.
        stream: a handle, or a stream of any framework; without it the legacy default stream.
        library: the kernels to choose from; without it those of the installed bundle.
        debug: read slots, or offsets, lengths and table back first, and refuse those that name
            no row and are not -1, or one row twice; waits for the GPU.

    With numpy arrays the op computes on the emulator, and returns when the rows are written.

    Raises:
        ProblemError: an argument is not what the list above says.
        SelectionError: the library holds no kernel for this problem and device.
        CaptureError: first use of a kernel while a stream is captured.
        BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
        EmulationError: on the emulator: the kernel broke a rule.

    """
    held = operand(kv)
    rule = "`row_offsets` must be left out with `slots`: both say where tokens go"
    require(slots is None or row_offsets is None, rule, KERNEL)
    table, lengths = (None, None) if slots is not None else _of_sequences(held, row_offsets)
    return Request(
        inputs={
            "latent": latent,
            "rope": rope,
            "slots": slots,
            "row_offsets": row_offsets,
            "lengths": lengths,
            "table": table,
        },
        outputs={"kv": held.rows, "kv_scales": held.scales},
        problem=partial(_problem, kv=held, power_of_two=power_of_two),
        located=partial(_located, held),
        stream=stream,
        library=library,
        debug=debug,
    )


@kv_cache_append.of_tensors
def _of_tensors(
    latent: Array,
    *,
    rope: Array = None,
    slots: Array = None,
    row_offsets: Array = None,
    table: Array = None,
    lengths: Array = None,
    power_of_two: bool = False,
    kv: Array,
    kv_scales: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
) -> Request[Problem, None]:
    """The op, which writes the cache that it is given."""
    return kv_cache_append.request(
        latent,
        rope,
        kv_operand.of_tensors(kv, kv_scales, table, lengths),
        slots=slots,
        row_offsets=row_offsets,
        power_of_two=power_of_two,
        stream=stream,
        library=library,
    )
