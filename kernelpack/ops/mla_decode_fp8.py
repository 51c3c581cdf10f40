"""A decode step of MLA after its projections of q and kv: three launches, or four with splits.

    absorb      queries times W_UK, rotated; new rows normed, rotated, into the cache
    attention   every head of a token over its keys, listed or all of its sequence, in splits
    combine     the splits' outputs become one; with one split there is none
    project     outputs times W_UV

Each is an op of its own (`mla_decode_absorb`, `mla_decode_attention`, `mla_decode_combine`,
`mla_decode_project`), which says what it computes. Each starts while the one before ends. Nothing
waits for the GPU: lengths, indices, tables, offsets and the number of sequences that count are read
there, so one captured graph serves steps of other lengths, padded with anything. How many tokens,
heads and splits there are is known when a graph is captured. numpy arrays are computed on the CPU
emulator.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any

from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import LATENT, ROPE
from kernelpack.kernels.mla_decode_attention.positions import UNIT
from kernelpack.kernels.mla_decode_attention.problem import MOST_PARTITIONS
from kernelpack.kernels.mla_decode_project.problem import VALUES
from kernelpack.kv import Continuous, Operand, Paged, operand
from kernelpack.load.library import Library
from kernelpack.ops import kv_operand
from kernelpack.ops.arrays import Array
from kernelpack.ops.chain import Chain, Step, Steps, chain
from kernelpack.ops.checks import integer, require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.mla_decode_absorb import mla_decode_absorb
from kernelpack.ops.mla_decode_attention import mla_decode_attention
from kernelpack.ops.mla_decode_combine import mla_decode_combine
from kernelpack.ops.mla_decode_project import mla_decode_project
from kernelpack.ops.operation import Made, Request
from kernelpack.ops.stream import Stream
from kernelpack.ops.workspace import Place, size_of

KERNEL = "mla_decode_fp8"
NOPE = 128

_CACHE = ("kv", "kv_scales", "table")
_ABSORBED = ("q", "new_kv", "w_uk", "w_uk_scale", "freqs", "gamma", "row_offsets", "batch")
_ATTENDED = ("indices", "topk_lengths", "extra_kv", "extra_kv_scales", "extra_indices")
WORDS: Mapping[str, dict[str, str]] = {
    "absorb": {w: w for w in (*_CACHE, *_ABSORBED, "lengths", "slots", "positions")},
    "attention": {
        **{w: w for w in (*_CACHE, *_ATTENDED, "extra_topk_lengths", "row_offsets", "sink", "lse")},
        "lengths": "cache_lengths",
    },
    "combine": {w: w for w in ("sink", "lse")},
    "project": {w: w for w in ("w_uv", "w_uv_scale", "out")},
}
"""Of each step the caller's word for an argument, and the step's."""

OUTPUTS = ("out", "kv", "kv_scales", "lse")
"""The arrays that frameworks give as outputs."""
INPUTS = frozenset(w for words in WORDS.values() for w in words) - {*OUTPUTS} | {"workspace"}
"""And what they give to be read, or to hold what lies between the steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The inputs of the memory between steps."""

    tokens: int
    heads: int
    partitions: int
    rope: int = ROPE

    @property
    def parts(self) -> dict[str, Made]:
        """The arrays between the steps."""
        heads = (self.tokens, self.heads)
        made = {
            "absorbed": Made(shape=(*heads, LATENT + self.rope), dtype=DType.BF16),
            "attended": Made(shape=(*heads, LATENT), dtype=DType.BF16),
        }
        if self.partitions == 1:
            return made
        splits = (self.partitions, *heads)
        made["partial_out"] = Made(shape=(*splits, LATENT), dtype=DType.FP32)
        made["partial_lse"] = Made(shape=splits, dtype=DType.FP32)
        return made


def _splits(number: int) -> int:
    """As the call says; looked at before memory is taken for them."""
    found = integer(number, "num_partitions", least=1, where=KERNEL)
    rule = f"`num_partitions` must be 1 to {MOST_PARTITIONS}, not {found}"
    require(found <= MOST_PARTITIONS, rule, KERNEL)
    return found


def workspace_bytes(tokens: int, heads: int, num_partitions: int = 1, *, rope: int = ROPE) -> int:
    """Bytes that a call needs between its launches.

    Args:
        tokens: of the call, the padded ones too.
        heads: of a token.
        num_partitions: splits of a token's keys.
        rope: rope values of a head: 64, or 0 for rows without.

    Raises:
        ProblemError: a number is not one, or is out of range.

    """
    return size_of(
        Size(
            tokens=integer(tokens, "tokens", least=0, where=KERNEL),
            heads=integer(heads, "heads", least=1, where=KERNEL),
            partitions=_splits(num_partitions),
            rope=integer(rope, "rope", least=0, where=KERNEL),
        ).parts
    )


@chain(
    Chain(
        kernel=KERNEL,
        inputs=frozenset({w for words in WORDS.values() for w in words} | {"workspace"})
        - {*OUTPUTS},
        outputs=OUTPUTS,
        workspace_bytes=workspace_bytes,
        optional=frozenset({"kv_scales", "lse"}),
        shared=frozenset({"extra_kv", "extra_kv_scales"}),
    )
)
def mla_decode_fp8(
    q: Array,
    new_kv: Array,
    kv: Operand,
    scale: float,
    *,
    w_uk: Array,
    w_uk_scale: Array,
    w_uv: Array,
    w_uv_scale: Array,
    gamma: Array,
    freqs: Array = None,
    epsilon: float = 1e-6,
    row_offsets: Array = None,
    batch: Array = None,
    positions: Array = None,
    slots: Array = None,
    power_of_two: bool = False,
    indices: Array = None,
    topk_lengths: Array = None,
    extra_kv: Operand | Array | None = None,
    extra_indices: Array = None,
    extra_topk_lengths: Array = None,
    lengths_of_sequences: bool = False,
    mask: str = "null",
    sink: Array = None,
    num_partitions: int = 1,
    partition_keys: int = UNIT,
    return_lse: bool = False,
    dead_lse: float = inf,
    workspace: Array = None,
    out: Array = None,
    lse: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
    debug: bool = False,
) -> Steps[Array | tuple[Array, Array]]:
    """Decode; returns outputs at once, values and rows follow on the stream.

    Args:
        q: queries [t, h, 192], bf16: 128 values to absorb, 64 to rotate; [t, h, 128] for rows
            without rope. Tokens and heads may be any multiples of 8 elements apart.
        new_kv: a row of each token before norm and rotation [t, 576], bf16, or [t, 512].
        kv: the cache, a `Paged` or `Continuous` operand of `kernelpack.kv`, without this step's
            tokens: its `lengths` are those before. Rows are written in its format.
        scale: of q·k before the softmax.
        w_uk: [h, 512, 128], e4m3 or its bytes, with w_uk_scale [h, 4, 1], fp32.
        w_uk_scale: see w_uk.
        w_uv: [h, 128, 512], e4m3 or its bytes, with w_uv_scale [h, 1, 4], fp32.
        w_uv_scale: see w_uv.
        gamma: weights of the norm of new rows [512], bf16 or fp32.
        freqs: cosine and sine of each pair, side by side (c0, s0, c1, s1, …; a pair is values 2i
            and 2i + 1), for each position [positions, 64], fp32; left out for rows without rope.
        epsilon: of the norm.
        row_offsets: the first token of each sequence, then their number [sequences + 1], i32 or
            u32. Tokens follow those that `kv.lengths` counts.
        batch: how many of the sequences count [1], i32 or u32, on the device; None: all.
        positions: in place of row_offsets: the position of each token [t], i32 or i64.
        slots: with positions: the row of each token [t], i32 or i64.
        power_of_two: whether scales of new rows are rounded up to powers of two.
        indices: the rows of each token [t, topk], i32 or u32: `block * page + offset`; what is
            below 0 or beyond the cache is absent. With row_offsets no more of the first entries
            count than the sequence has keys. Left out: a token's keys are its sequence's.
        topk_lengths: how many of each token's entries count [t], or with `lengths_of_sequences`
            of each sequence's tokens; without it all.
        extra_kv: a second cache of rows laid out alike, blocks and pages its own.
        extra_indices: the rows of each token there [t, extra_topk].
        extra_topk_lengths: how many of those count, as of topk_lengths.
        lengths_of_sequences: whether topk_lengths are of sequences.
        mask: `null`, or `causal` for tokens that see no key after themselves; with `indices` null.
        sink: logit of a key without value, of each head [h], fp32.
        num_partitions: splits of a token's keys, 1 to 256; a number that a captured graph keeps.
        partition_keys: keys that a split has at least, a multiple of 128: tokens of few keys have
            fewer splits then, which spreads uneven batches.
        return_lse: whether the attention's lse is returned too, after out.
        dead_lse: lse of a token without keys: inf as FlashMLA has it, or -inf for merging.
        workspace: u8 [workspace_bytes(t, h, num_partitions)]; without it new memory is taken.
        out: the output [t, h, 128], bf16; without it a new one is made.
        lse: natural logarithm of the sum of exp(scale * q·k), without the sink: [t, h], fp32.
        stream: a handle, or a stream of any framework; without it the legacy default stream.
        library: the kernels to choose from; without it those of the installed bundle.
        debug: read scales and places back first, and refuse offsets that do not rise, tokens
            that have no position or no row, two of one row, and, without `batch`, lengths and
            entries that name no key; waits for the GPU.

    A call that is refused has launched nothing. With numpy arrays it computes on the emulator, and
    returns when the values are there.

    Raises:
        ProblemError: an argument is not what the list above says.
        SelectionError: the library holds no kernel for this problem and device.
        CaptureError: first use of a kernel, or new memory, while a stream is captured.
        BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
        EmulationError: on the emulator: a kernel broke a rule.

    """
    needed = {"q": q, "new_kv": new_kv, "w_uk": w_uk, "w_uk_scale": w_uk_scale}
    for name, array in needed.items():  # the absorbing op may have none, and a step may not
        require(array is not None, f"`{name}` must be given", KERNEL)
    held, place = operand(kv), Place.of(q, "q", library, stream)
    t, h, width = place.sides(q, "q", "t h 192", KERNEL)
    splits = _splits(num_partitions)
    size = Size(tokens=t, heads=h, partitions=splits, rope=max(0, width - NOPE))
    parts, memory = place.cut(workspace, size.parts, KERNEL)
    out = place.new(Made(shape=(t, h, VALUES), dtype=DType.BF16)) if out is None else out
    if lse is None and return_lse:
        lse = place.new(Made(shape=(t, h), dtype=DType.FP32))
    how: dict[str, Any] = {"stream": stream, "library": library, "debug": debug}
    by_sequence = row_offsets is not None
    require(by_sequence or indices is not None, _BY_SEQUENCE, KERNEL)
    absorb = mla_decode_absorb.request(
        q,
        w_uk,
        w_uk_scale,
        freqs=freqs,
        new_kv=new_kv,
        gamma=gamma,
        kv=held,
        epsilon=epsilon,
        row_offsets=row_offsets,
        batch=batch,
        positions=positions,
        slots=slots,
        power_of_two=power_of_two,
        out=parts["absorbed"],
        **how,
    )
    attention = partial(
        mla_decode_attention.request,
        parts["absorbed"],
        held,
        scale,
        indices=indices,
        topk_lengths=topk_lengths,
        extra_kv=extra_kv,
        extra_indices=extra_indices,
        extra_topk_lengths=extra_topk_lengths,
        lengths_of_sequences=lengths_of_sequences,
        row_offsets=row_offsets,
        cache_lengths=_lengths(held) if by_sequence else None,
        mask=mask,
        num_partitions=splits,
        partition_keys=partition_keys,
        **how | {"debug": debug and batch is None},  # after it numbers may be anything
    )
    ends = {"sink": sink, "dead_lse": dead_lse, "lse": lse, "out": parts["attended"]}
    project = mla_decode_project.request(parts["attended"], w_uv, w_uv_scale, out=out, **how)
    return Steps(
        steps=(
            Step(op=mla_decode_absorb, request=absorb, words=WORDS["absorb"]),
            *_attend(attention, parts, ends, how),
            Step(op=mla_decode_project, request=project, words=WORDS["project"]),
        ),
        outputs={"out": out} | ({"lse": lse} if lse is not None else {}),
        kept=(memory,),
        made=place.made,
    )


_BY_SEQUENCE = "`row_offsets` must be given without `indices`: whose tokens are keys"


def _attend(
    attention: Callable[..., Request[Any, Any]],
    parts: Mapping[str, Array],
    ends: Mapping[str, Any],
    how: Mapping[str, Any],
) -> list[Step]:
    """Attention as it ends with what `ends` has; or with splits, and then their combination."""
    if "partial_out" not in parts:
        whole = attention(**ends)
        return [Step(op=mla_decode_attention, request=whole, words=WORDS["attention"])]
    out, lse = parts["partial_out"], parts["partial_lse"]
    split = attention(partial_out=out, partial_lse=lse)
    joined = mla_decode_combine.request(out, lse, **ends, **how)
    return [
        Step(op=mla_decode_attention, request=split, words=WORDS["attention"]),
        Step(op=mla_decode_combine, request=joined, words=WORDS["combine"]),
    ]


def _lengths(kv: Operand) -> Array:
    """The lengths of sequences before this step."""
    return kv.lengths if isinstance(kv, Paged | Continuous) else None


@mla_decode_fp8.of_tensors
def _of_tensors(
    q: Array,
    new_kv: Array,
    scale: float,
    w_uk: Array,
    w_uk_scale: Array,
    w_uv: Array,
    w_uv_scale: Array,
    gamma: Array,
    *,
    freqs: Array = None,
    row_offsets: Array = None,
    lengths: Array = None,
    table: Array = None,
    batch: Array = None,
    positions: Array = None,
    slots: Array = None,
    indices: Array = None,
    topk_lengths: Array = None,
    extra_kv: Array = None,
    extra_kv_scales: Array = None,
    extra_indices: Array = None,
    extra_topk_lengths: Array = None,
    sink: Array = None,
    workspace: Array = None,
    epsilon: float = 1e-6,
    dead_lse: float = inf,
    power_of_two: bool = False,
    lengths_of_sequences: bool = False,
    causal: bool = False,
    num_partitions: int = 1,
    partition_keys: int = UNIT,
    out: Array,
    kv: Array,
    kv_scales: Array = None,
    lse: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
) -> Steps[Array | tuple[Array, Array]]:
    """The branch, its caches from tensors; it fills outputs and writes the cache it is given."""
    extra = None if extra_kv is None else kv_operand.of_tensors(extra_kv, extra_kv_scales)
    return mla_decode_fp8.request(
        q,
        new_kv,
        kv_operand.of_tensors(kv, kv_scales, table, lengths),
        scale,
        w_uk=w_uk,
        w_uk_scale=w_uk_scale,
        w_uv=w_uv,
        w_uv_scale=w_uv_scale,
        gamma=gamma,
        freqs=freqs,
        epsilon=epsilon,
        row_offsets=row_offsets,
        batch=batch,
        positions=positions,
        slots=slots,
        power_of_two=power_of_two,
        indices=indices,
        topk_lengths=topk_lengths,
        extra_kv=extra,
        extra_indices=extra_indices,
        extra_topk_lengths=extra_topk_lengths,
        lengths_of_sequences=lengths_of_sequences,
        mask="causal" if causal else "null",
        sink=sink,
        num_partitions=num_partitions,
        partition_keys=partition_keys,
        dead_lse=dead_lse,
        workspace=workspace,
        out=out,
        lse=lse,
        stream=stream,
        library=library,
    )
