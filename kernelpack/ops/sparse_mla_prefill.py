"""Sparse MLA prefill: every head of a token attends the rows of a cache that its indices choose.

    out[t, h] = softmax(scale * q[t, h] · k) v, over the rows of indices[t]

A row of the cache holds 512 latent values, which are K and V, and 64 rope values, which are K
alone, where it has them. One launch and no wait for the GPU; the same bits at every run. An index
or a length of any value is harmless, so graphs may be padded with anything. numpy arrays are
computed on the CPU emulator, whatever GPU is there. See `kernels/sparse_mla_prefill/reference` for
what is computed.
"""

from dataclasses import dataclass
from functools import partial
from math import inf

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import LATENT, RowFormat
from kernelpack.kernels.sparse_mla_prefill.problem import ABIS, KERNEL, Problem, is_native
from kernelpack.kv import Operand, operand
from kernelpack.load.library import Library
from kernelpack.ops import kv_operand
from kernelpack.ops.arrays import Array
from kernelpack.ops.checks import check_array, number, require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.op import op
from kernelpack.ops.operation import Form, Made, Operation, Read, Request, Traced, Views
from kernelpack.ops.spread import spread, spread_of
from kernelpack.ops.stream import Stream

WIDTH = LATENT
"""Columns of an output."""

QUERIES = (DType.BF16, DType.E4M3)
INTEGERS = (DType.I32, DType.U32)
"""Types of indices and lengths: as u32 what is negative is large, and absent too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A call's arguments besides its arrays; lse and max_logits: whether to return them."""

    scale: float
    lse: bool
    max_logits: bool
    dead_lse: float


def _located(kv: Operand, views: Views) -> Views:
    check_array(views["q"], "q", "t h d", QUERIES, KERNEL)
    check_array(views["indices"], "indices", "t topk", INTEGERS, KERNEL)
    apart = {name: spread(views[name], name, KERNEL) for name in ("q", "indices")}
    return {**kv_operand.located(kv, views), **apart}


def _problem(views: Views, outs: Views, kv: Operand, settings: Settings) -> Problem:
    """The numbers of a call, after the rules about sides hold."""
    q, indices = spread_of(views["q"]), spread_of(views["indices"])
    storage = kv_operand.storage_of(views)
    (t, h, depth), (tokens, topk) = q.sides, indices.sides
    scales = kv_operand.scales_of(views, kv)
    narrow = _is_narrow(views, storage.row, scales.per_row if scales else 0)
    width = storage.row.bytes if narrow else storage.row.width
    rule = f"`q` must have d = {width} with rows of {storage.row.name}, not {depth}"
    require(depth == width, rule, KERNEL)
    require(tokens == t, f"`indices` must have q's {t} tokens, not {tokens}", KERNEL)
    for name, side in (("topk_lengths", t), ("sink", h)):
        found = views[name].shape[0] if name in views else side
        require(found == side, f"`{name}` must have {side} elements, not {found}", KERNEL)
    problem = Problem(
        t=t,
        h=h,
        row=storage.row,
        topk=topk,
        indices_stride=indices.steps[0],
        page=storage.page,
        blocks=storage.blocks,
        block_stride=storage.block_stride,
        q_token_stride=q.steps[0],
        q_head_stride=q.steps[1],
        scale=number(settings.scale, "scale", where=KERNEL),
        dead_lse=number(settings.dead_lse, "dead_lse", where=KERNEL),
        lse=settings.lse or "lse" in outs,
        max_logits=settings.max_logits or "max_logits" in outs,
        lengths="topk_lengths" in views,
        sink="sink" in views,
        kv_scales=scales.per_row if scales else 0,
        q_scales=narrow,
    )
    problem.check()
    return problem


def _is_narrow(views: Views, row: RowFormat, per_row: int) -> bool:
    """Whether heads of q are rows of e4m3; those have scales, and others none."""
    narrow = views["q"].dtype is not DType.BF16
    beside = f" and {per_row} scales each" if per_row > 1 else ""
    why = "e4m3 goes with rows of e4m3 that have one scale or none"
    rule = f"`q` must be bf16 with rows of {row.name}{beside}: {why}"
    require(not narrow or is_native(row, per_row), rule, KERNEL)
    t, h, _ = spread_of(views["q"]).sides
    rule = f"of shape [{t}, {h}]" if narrow else "left out with q of bf16"
    given = views["q_scales"].shape if "q_scales" in views else None
    require(given == ((t, h) if narrow else None), f"`q_scales` must be {rule}", KERNEL)
    return narrow


def _made(problem: Problem) -> dict[str, Made]:
    heads = (problem.t, problem.h)
    made = {"out": Made(shape=(*heads, WIDTH), dtype=DType.BF16)}
    for name in ("lse", "max_logits"):
        if getattr(problem, name):
            made[name] = Made(shape=heads, dtype=DType.FP32)
    return made


def _traced(q: Array, *_: Array, **_given: Array) -> Traced:
    """Out, lse and the largest scores."""
    t, h, _d = q.shape
    return [((t, h, WIDTH), DType.BF16), ((t, h), DType.FP32), ((t, h), DType.FP32)]


def _check_values(problem: Problem, read: Read) -> None:
    """Report lengths and indices that the kernel will pass over, but for -1."""
    lengths = np.full(problem.t, problem.topk)
    if problem.lengths:
        lengths = read("topk_lengths").astype(np.int64)
        _report("topk_lengths", lengths, (lengths < 0) | (lengths > problem.topk), problem.topk)
    memory = read("indices")
    steps = (4 * problem.indices_stride, 4)
    indices = np.lib.stride_tricks.as_strided(memory, (problem.t, problem.topk), steps)
    counted = np.arange(problem.topk) < lengths[:, None]
    signed = indices.view(np.int32)
    is_bad = counted & ((signed < -1) | (signed >= problem.entries))
    _report("indices", indices, is_bad, problem.entries - 1, least=-1)


def _report(name: str, values: Array, is_bad: Array, most: int, least: int = 0) -> None:
    """Refuse the first bad value."""
    if is_bad.any():
        at = tuple(int(side) for side in np.argwhere(is_bad)[0])
        where = f"{name}[{', '.join(map(str, at))}]"
        what = f"`{where}` must be {least} to {most}, not {values[at]}"
        more = int(is_bad.sum()) - 1
        raise ProblemError(what, where=KERNEL, hint=f"{more} more are out of range" if more else "")


@op(
    Operation(
        kernel=KERNEL,
        abis=ABIS,
        inputs={
            "q": Form(dims="elements", dtypes=QUERIES),
            "kv": Form(dims="bytes", dtypes=(DType.U8,)),
            "kv_scales": Form(dims="rows", dtypes=(DType.FP32,)),
            "q_scales": Form(dims="t h", dtypes=(DType.FP32,)),
            "indices": Form(dims="entries", dtypes=INTEGERS),
            "topk_lengths": Form(dims="t", dtypes=INTEGERS),
            "sink": Form(dims="h", dtypes=(DType.FP32,)),
        },
        outputs={
            "out": Form(dims="t h 512", dtypes=(DType.BF16,)),
            "lse": Form(dims="t h", dtypes=(DType.FP32,)),
            "max_logits": Form(dims="t h", dtypes=(DType.FP32,)),
        },
        optional=frozenset({"kv_scales", "q_scales", "topk_lengths", "sink", "lse", "max_logits"}),
        made=_made,
        check_values=_check_values,
        takes_any_values=True,
        traced=_traced,
    )
)
def sparse_mla_prefill(
    q: Array,
    kv: Operand | Array,
    indices: Array,
    scale: float,
    *,
    q_scales: Array = None,
    topk_lengths: Array = None,
    sink: Array = None,
    return_lse: bool = False,
    return_max_logits: bool = False,
    dead_lse: float = inf,
    out: Array = None,
    lse: Array = None,
    max_logits: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
    debug: bool = False,
) -> Request[Problem, Array | tuple[Array, ...]]:
    """Attend; returns outputs at once, their values follow on the stream.

    Args:
        q: absorbed queries [t, h, d], bf16; 1 to 128 heads; d 576, or 512 for rows without
            rope. Or e4m3, each head laid out as a row of the cache: 576, 512 or 640 bytes, for
            rows that have one scale or none. Tokens and heads may be any multiples of 16 bytes
            apart.
        kv: the cache: an operand of `kernelpack.kv`, or rows alone [rows, d].
        indices: the rows of each token [t, topk], i32 or u32: `block * page + offset`. What
            is below 0 or beyond the cache is absent, -1 by custom. Tokens may lie more than
            topk entries apart, as in `indices[:, :topk]`.
        scale: of q·k before the softmax; DeepSeek's is of the unabsorbed head, 192 ** -0.5,
            times the square of YaRN's mscale.
        q_scales: what each head of q of e4m3 is to be multiplied by [t, h], fp32, at least 0.
        topk_lengths: how many of each token's entries count [t], i32 or u32; without it all.
            Below 0 is 0, above topk is topk; of u32, from 2^31 on is below 0 too.
        sink: logit of a key without value, of each head [h], fp32; -inf means no sink.
        return_lse: whether lse is made and returned, after out.
        return_max_logits: whether max_logits is made and returned, last.
        dead_lse: lse of a token without keys: inf as FlashMLA has it, or -inf for merging.
        out: the output [t, h, 512], bf16; without it a new one is made.
        lse: natural logarithm of the sum of exp(scale * q·k), without the sink: [t, h], fp32.
        max_logits: the largest scale * q·k [t, h], fp32; -inf for a token without keys.
        stream: a handle, or a stream of any framework; without it the legacy default stream.
        library: the kernels to choose from; without it those of the installed bundle.
        debug: read indices and lengths back first, and refuse those that are neither in the
            cache nor -1, or not 0 to topk; waits for the GPU.

    A token without keys has out 0, whatever its sink. Rows that nothing chooses may hold
    anything, NaN too. With numpy arrays the op computes on the emulator, returns when the
    values are there, and makes numpy arrays where no output is given.

    Raises:
        ProblemError: an argument is not what the list above says.
        SelectionError: the library holds no kernel for this problem and device.
        CaptureError: first use of a kernel, or a new output, while a stream is captured.
        BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
        EmulationError: on the emulator: the kernel broke a rule.

    """
    held = operand(kv)
    settings = Settings(
        scale=scale, lse=return_lse, max_logits=return_max_logits, dead_lse=dead_lse
    )
    return Request(
        inputs={
            "q": q,
            "kv": held.rows,
            "kv_scales": held.scales,
            "q_scales": q_scales,
            "indices": indices,
            "topk_lengths": topk_lengths,
            "sink": sink,
        },
        outputs={"out": out, "lse": lse, "max_logits": max_logits},
        problem=partial(_problem, kv=held, settings=settings),
        located=partial(_located, held),
        stream=stream,
        library=library,
        debug=debug,
    )


@sparse_mla_prefill.of_tensors
def _of_tensors(
    q: Array,
    kv: Array,
    indices: Array,
    scale: float,
    *,
    kv_scales: Array = None,
    q_scales: Array = None,
    topk_lengths: Array = None,
    sink: Array = None,
    dead_lse: float = inf,
    out: Array = None,
    lse: Array = None,
    max_logits: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
) -> Request[Problem, Array | tuple[Array, ...]]:
    """The op, its operand from tensors."""
    return sparse_mla_prefill.request(
        q,
        kv_operand.of_tensors(kv, kv_scales),
        indices,
        scale,
        q_scales=q_scales,
        topk_lengths=topk_lengths,
        sink=sink,
        dead_lse=dead_lse,
        out=out,
        lse=lse,
        max_logits=max_logits,
        stream=stream,
        library=library,
    )
