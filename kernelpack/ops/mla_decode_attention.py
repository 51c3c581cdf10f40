"""Attention of an MLA decode step: every head of a token over its keys, which CTAs split.

    out[t, h] = softmax(scale * q[t, h] · k) v, over listed rows, or over the tokens of a sequence

Keys are listed by `indices`, in one cache or in two, or they are a sequence's tokens, in the pages
of a table. With `num_partitions` above 1 each split of a token's keys has outputs of its own, which
`mla_decode_combine` joins. One launch and no wait for the GPU; the same bits at every run. Lengths,
indices, tables and offsets are read on the device, and any number there is harmless, so a captured
graph serves steps of other lengths, and may be padded with anything. numpy arrays are computed on
the CPU emulator. See `kernels/mla_decode_attention/reference` for what is computed.
"""

from dataclasses import dataclass
from functools import partial
from math import inf

from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import LATENT
from kernelpack.kernels.kv_operand.storage import Storage
from kernelpack.kernels.mla_decode_attention.positions import UNIT
from kernelpack.kernels.mla_decode_attention.problem import (
    ABIS,
    KERNEL,
    Lists,
    Pool,
    Problem,
    Sequences,
)
from kernelpack.kv import Operand, Paged, operand
from kernelpack.load.library import Library
from kernelpack.ops import kv_operand
from kernelpack.ops.appended import sequences_of
from kernelpack.ops.arrays import Array
from kernelpack.ops.checks import check_array, integer, number, require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.keys import check_keys
from kernelpack.ops.kv_operand import INTEGERS
from kernelpack.ops.op import op
from kernelpack.ops.operation import Form, Made, Operation, Request, Views
from kernelpack.ops.spread import spread, spread_of
from kernelpack.ops.stream import Stream

MASKS = ("null", "causal")
"""The masks of dense keys; of listed ones the first alone, for the lists say what is seen."""

EXTRA = {"kv": "extra_kv", "kv_scales": "extra_kv_scales"}
"""Names of the second source's arrays, by those of an operand's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A call's arguments besides its arrays."""

    scale: float
    mask: str
    partitions: int | None
    partition_keys: int
    lengths_of_sequences: bool
    lse: bool
    dead_lse: float


def _located(kv: Operand, extra: Operand | None, views: Views) -> Views:
    check_array(views["q"], "q", "t h d", (DType.BF16,), KERNEL)
    found = {**kv_operand.located(kv, views), "q": spread(views["q"], "q", KERNEL)}
    if "table" in views:
        check_array(views["table"], "table", "sequences pages", INTEGERS, KERNEL)
    for name in ("indices", "extra_indices", "table"):
        if name in views:
            if name != "table":
                check_array(views[name], name, "t topk", INTEGERS, KERNEL)
            found[name] = spread(views[name], name, KERNEL)
    if extra is None:
        return found
    own = {of: views[name] for of, name in EXTRA.items() if name in views}
    there = kv_operand.located(extra, own)
    return {**found, **{EXTRA[of]: view for of, view in there.items()}}


def _problem(
    views: Views, outs: Views, kv: Operand, extra: Operand | None, settings: Settings
) -> Problem:
    """The numbers of a call, after the rules about sides hold."""
    q, storage = spread_of(views["q"]), kv_operand.storage_of(views)
    t, h, depth = q.sides
    width = storage.row.width
    require(depth == width, f"`q` must have the rows' d = {width}, not {depth}", KERNEL)
    sequences = _sequences(views)
    lists = _lists(views, "", t, sequences, settings)
    _check_mask(settings.mask, lists)
    if "sink" in views:
        found = views["sink"].shape[0]
        require(found == h, f"`sink` must have {h} elements, not {found}", KERNEL)
    scales = kv_operand.scales_of(views, kv)
    problem = Problem(
        t=t,
        h=h,
        row=storage.row,
        pool=_pool(storage),
        lists=lists,
        extra_pool=_second(views, storage, kv, extra),
        extra_lists=_lists(views, "extra_", t, sequences, settings),
        sequences=sequences,
        lengths_of_sequences=settings.lengths_of_sequences,
        partitions=_partitions(settings, outs),
        split_units=_units(settings.partition_keys),
        causal=settings.mask == "causal",
        q_token_stride=q.steps[0],
        q_head_stride=q.steps[1],
        scale=number(settings.scale, "scale", where=KERNEL),
        dead_lse=number(settings.dead_lse, "dead_lse", where=KERNEL),
        lse=settings.lse or "lse" in outs,
        sink="sink" in views,
        kv_scales=scales.per_row if scales else 0,
    )
    problem.check()
    _check_parts(problem, outs)
    return problem


def _pool(storage: Storage) -> Pool:
    return Pool(page=storage.page, blocks=storage.blocks, block_stride=storage.block_stride)


def _second(views: Views, first: Storage, kv: Operand, extra: Operand | None) -> Pool | None:
    """The second cache, whose rows are as the first one's."""
    both = ("extra_kv" in views, "extra_indices" in views)
    require(both[0] == both[1], "`extra_kv` and `extra_indices` go together", KERNEL)
    if extra is None:
        return None
    require("indices" in views, "`extra_kv` must be left out without `indices`", KERNEL)
    own = {of: views[name] for of, name in EXTRA.items() if name in views}
    storage = kv_operand.storage_of(own)
    rule = f"`extra_kv` must have kv's rows, {first.row.name}, not {storage.row.name}"
    require(storage.row == first.row, rule, KERNEL)
    counts = [
        found.per_row if found else 0
        for found in (kv_operand.scales_of(views, kv), kv_operand.scales_of(own, extra))
    ]
    rule = f"`extra_kv` must have kv's {counts[0]} scales a row, not {counts[1]}"
    require(counts[0] == counts[1], rule, KERNEL)
    return _pool(storage)


def _sequences(views: Views) -> Sequences:
    """Whose tokens they are, as far as the call says so."""
    sides = {
        "row_offsets": _sequences_of_offsets(views),
        "cache_lengths": views["cache_lengths"].shape[0] if "cache_lengths" in views else None,
        "table": spread_of(views["table"]).sides[0] if "table" in views else None,
    }
    known = {name: side for name, side in sides.items() if side is not None}
    count = next(iter(known.values()), 0)
    for name, side in known.items():
        rule = f"`{name}` must be of {count} sequences, not {side}"
        require(side == count, rule, KERNEL)
    table = spread_of(views["table"]) if "table" in views else None
    pages = table.sides[1] if table else 0
    return Sequences(
        count=count,
        pages=pages,
        table_stride=table.steps[0] if table else 0,
        has_offsets="row_offsets" in views,
        has_lengths="cache_lengths" in views,
    )


def _sequences_of_offsets(views: Views) -> int | None:
    given = views.get("row_offsets")
    return None if given is None else sequences_of(given, "row_offsets", KERNEL)


def _lists(views: Views, of: str, t: int, sequences: Sequences, settings: Settings) -> Lists | None:
    """The entries of a source; None where there are none."""
    name, lengths = f"{of}indices", f"{of}topk_lengths"
    if name not in views:
        require(lengths not in views, f"`{lengths}` must be left out without `{name}`", KERNEL)
        return None
    indices = spread_of(views[name])
    tokens, topk = indices.sides
    require(tokens == t, f"`{name}` must have q's {t} tokens, not {tokens}", KERNEL)
    if lengths in views:
        side = sequences.count if settings.lengths_of_sequences else t
        found = views[lengths].shape[0]
        require(found == side, f"`{lengths}` must have {side} elements, not {found}", KERNEL)
    return Lists(topk=topk, stride=indices.steps[0], has_lengths=lengths in views)


def _check_mask(mask: str, lists: Lists | None) -> None:
    known = f"`mask` must be {' or '.join(MASKS)}, not {mask!r}"
    require(mask in MASKS, known, KERNEL)
    rule = f"`mask` must be null with `indices`, which say what is seen, not {mask}"
    require(lists is None or mask == "null", rule, KERNEL)


def _partitions(settings: Settings, outs: Views) -> int:
    """As the call says, or as its outputs have it."""
    if settings.partitions is not None:
        return integer(settings.partitions, "num_partitions", least=1, where=KERNEL)
    given = outs.get("partial_out")
    return given.shape[0] if given is not None else 1


def _units(keys: int) -> int:
    found = integer(keys, "partition_keys", least=1, where=KERNEL)
    rule = f"`partition_keys` must be a multiple of {UNIT}, not {found}"
    require(found % UNIT == 0, rule, KERNEL)
    require(found < 2**31, f"`partition_keys` must be below 2^31, not {found}", KERNEL)
    return found // UNIT


def _check_parts(problem: Problem, outs: Views) -> None:
    whole = ("out", "lse")
    wrong = whole if problem.is_partial else ("partial_out", "partial_lse")
    for name in wrong:
        rule = f"`{name}` must be left out with {problem.partitions} partitions"
        require(name not in outs, rule, KERNEL)
    rule = "`sink` must be left out with partitions: mla_decode_combine takes it"
    require(not (problem.is_partial and problem.sink), rule, KERNEL)


def _made(problem: Problem) -> dict[str, Made]:
    heads = (problem.t, problem.h)
    if problem.is_partial:
        sides = (problem.partitions, *heads)
        return {
            "partial_out": Made(shape=(*sides, LATENT), dtype=DType.FP32),
            "partial_lse": Made(shape=sides, dtype=DType.FP32),
        }
    made = {"out": Made(shape=(*heads, LATENT), dtype=DType.BF16)}
    return made | ({"lse": Made(shape=heads, dtype=DType.FP32)} if problem.lse else {})


@op(
    Operation(
        kernel=KERNEL,
        abis=ABIS,
        inputs={
            "q": Form(dims="elements", dtypes=(DType.BF16,)),
            "kv": Form(dims="bytes", dtypes=(DType.U8,)),
            "kv_scales": Form(dims="rows", dtypes=(DType.FP32,)),
            "extra_kv": Form(dims="bytes", dtypes=(DType.U8,)),
            "extra_kv_scales": Form(dims="rows", dtypes=(DType.FP32,)),
            "indices": Form(dims="entries", dtypes=INTEGERS),
            "topk_lengths": Form(dims="lengths", dtypes=INTEGERS),
            "extra_indices": Form(dims="entries", dtypes=INTEGERS),
            "extra_topk_lengths": Form(dims="lengths", dtypes=INTEGERS),
            "table": Form(dims="entries", dtypes=INTEGERS),
            "row_offsets": Form(dims="sequences+1", dtypes=INTEGERS),
            "cache_lengths": Form(dims="sequences", dtypes=INTEGERS),
            "sink": Form(dims="h", dtypes=(DType.FP32,)),
        },
        outputs={
            "out": Form(dims="t h 512", dtypes=(DType.BF16,)),
            "lse": Form(dims="t h", dtypes=(DType.FP32,)),
            "partial_out": Form(dims="partitions t h 512", dtypes=(DType.FP32,)),
            "partial_lse": Form(dims="partitions t h", dtypes=(DType.FP32,)),
        },
        optional=frozenset(
            {
                *("kv_scales", "extra_kv", "extra_kv_scales", "indices", "topk_lengths"),
                *("extra_indices", "extra_topk_lengths", "table", "row_offsets", "cache_lengths"),
                *("sink", "out", "lse", "partial_out", "partial_lse"),
            }
        ),
        made=_made,
        check_values=check_keys,
        takes_any_values=True,
    )
)
def mla_decode_attention(
    q: Array,
    kv: Operand | Array,
    scale: float,
    *,
    indices: Array = None,
    topk_lengths: Array = None,
    extra_kv: Operand | Array | None = None,
    extra_indices: Array = None,
    extra_topk_lengths: Array = None,
    row_offsets: Array = None,
    cache_lengths: Array = None,
    lengths_of_sequences: bool = False,
    mask: str = "null",
    sink: Array = None,
    num_partitions: int | None = None,
    partition_keys: int = UNIT,
    return_lse: bool = False,
    dead_lse: float = inf,
    out: Array = None,
    lse: Array = None,
    partial_out: Array = None,
    partial_lse: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
    debug: bool = False,
) -> Request[Problem, Array | tuple[Array, ...]]:
    """Attend; returns outputs at once, their values follow on the stream.

    Args:
        q: absorbed queries [t, h, d], bf16; 1 to 128 heads; d 576, or 512 for rows without rope.
            Tokens and heads may be any multiples of 16 bytes apart.
        kv: the cache: an operand of `kernelpack.kv`, or rows alone [rows, d]. Without `indices` a
            `Paged` one with its table.
        scale: of q·k before the softmax.
        indices: the rows of each token [t, topk], i32 or u32: `block * page + offset`. What is
            below 0 or beyond the cache is absent. Left out: a token's keys are its sequence's
            tokens.
        topk_lengths: how many of each token's entries count [t], i32 or u32, or with
            `lengths_of_sequences` of each sequence's tokens; without it all. Below 0 is 0, above
            topk is topk.
        extra_kv: a second cache of rows laid out alike, blocks and pages its own.
        extra_indices: the rows of each token there [t, extra_topk]; keys of both are attended.
        extra_topk_lengths: how many of those count, as of topk_lengths.
        row_offsets: the first token of each sequence, then their number [sequences + 1], i32 or
            u32. Without it all have as many tokens. Tokens from the last number on have no keys.
        cache_lengths: tokens in the cache of each sequence [sequences], i32 or u32, without those
            of this call, which are added; without it those of the operand. With `indices` no
            more entries count than these are.
        lengths_of_sequences: whether topk_lengths are of sequences.
        mask: `null`, or `causal` for tokens that see no key after themselves; with `indices` null.
        sink: logit of a key without value, of each head [h], fp32; with one partition.
        num_partitions: splits of a token's keys, 1 to 256; without it those of partial_out, or 1.
        partition_keys: keys that a partition has at least, a multiple of 128. Tokens of few keys
            have fewer partitions then, which spreads uneven batches: choose num_partitions for the
            longest, and this so that all together fill the device.
        return_lse: whether lse is made and returned, after out; partial outputs have theirs always.
        dead_lse: lse of a token without keys: inf as FlashMLA has it, or -inf for merging.
        out: the output [t, h, 512], bf16; without it a new one is made.
        lse: natural logarithm of the sum of exp(scale * q·k), without the sink: [t, h], fp32.
        partial_out: with several partitions, outputs of each [partitions, t, h, 512], fp32. Those
            of one without keys are left as they were.
        partial_lse: base-2 logarithm of each partition's sum [partitions, t, h], fp32; -inf where
            it has no keys.
        stream: a handle, or a stream of any framework; without it the legacy default stream.
        library: the kernels to choose from; without it those of the installed bundle.
        debug: read lengths, offsets, entries and the table back first, and refuse those that name
            no key, but for entries of -1; waits for the GPU.

    A token without keys has out 0, whatever its sink. Rows that nothing names may hold anything,
    NaN too. With numpy arrays the op computes on the emulator, and returns when the values are
    there.

    Raises:
        ProblemError: an argument is not what the list above says.
        SelectionError: the library holds no kernel for this problem and device.
        CaptureError: first use of a kernel, or a new output, while a stream is captured.
        BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
        EmulationError: on the emulator: the kernel broke a rule.

    """
    held = operand(kv)
    second = None if extra_kv is None else operand(extra_kv)
    settings = Settings(
        scale=scale,
        mask=mask,
        partitions=num_partitions,
        partition_keys=partition_keys,
        lengths_of_sequences=lengths_of_sequences,
        lse=return_lse,
        dead_lse=dead_lse,
    )
    table = None
    if indices is None:
        rule = "`kv` must be a Paged operand with a table and lengths, or `indices` be given"
        require(isinstance(held, Paged) and held.table is not None, rule, KERNEL)
        table = held.table if isinstance(held, Paged) else None
        if cache_lengths is None and isinstance(held, Paged):
            cache_lengths = held.lengths
        require(cache_lengths is not None, rule, KERNEL)
    return Request(
        inputs={
            "q": q,
            "kv": held.rows,
            "kv_scales": held.scales,
            "extra_kv": second.rows if second else None,
            "extra_kv_scales": second.scales if second else None,
            "indices": indices,
            "topk_lengths": topk_lengths,
            "extra_indices": extra_indices,
            "extra_topk_lengths": extra_topk_lengths,
            "table": table,
            "row_offsets": row_offsets,
            "cache_lengths": cache_lengths,
            "sink": sink,
        },
        outputs={"out": out, "lse": lse, "partial_out": partial_out, "partial_lse": partial_lse},
        problem=partial(_problem, kv=held, extra=second, settings=settings),
        located=partial(_located, held, second),
        stream=stream,
        library=library,
        debug=debug,
    )


@mla_decode_attention.of_tensors
def _of_tensors(
    q: Array,
    kv: Array,
    scale: float,
    *,
    kv_scales: Array = None,
    indices: Array = None,
    topk_lengths: Array = None,
    extra_kv: Array = None,
    extra_kv_scales: Array = None,
    extra_indices: Array = None,
    extra_topk_lengths: Array = None,
    table: Array = None,
    row_offsets: Array = None,
    cache_lengths: Array = None,
    sink: Array = None,
    dead_lse: float = inf,
    lengths_of_sequences: bool = False,
    causal: bool = False,
    out: Array = None,
    lse: Array = None,
    partial_out: Array = None,
    partial_lse: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
) -> Request[Problem, Array | tuple[Array, ...]]:
    """The op, its operands from tensors."""
    return mla_decode_attention.request(
        q,
        kv_operand.of_tensors(kv, kv_scales, table, cache_lengths),
        scale,
        indices=indices,
        topk_lengths=topk_lengths,
        extra_kv=None if extra_kv is None else kv_operand.of_tensors(extra_kv, extra_kv_scales),
        extra_indices=extra_indices,
        extra_topk_lengths=extra_topk_lengths,
        row_offsets=row_offsets,
        cache_lengths=cache_lengths,
        sink=sink,
        dead_lse=dead_lse,
        lengths_of_sequences=lengths_of_sequences,
        mask=MASKS[bool(causal)],
        out=out,
        lse=lse,
        partial_out=partial_out,
        partial_lse=partial_lse,
        stream=stream,
        library=library,
    )
