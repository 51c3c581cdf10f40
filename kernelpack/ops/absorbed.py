"""From the arrays of `mla_decode_absorb` to its problem: what goes with what, whose sides agree."""

from dataclasses import dataclass, replace

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.lookup import Lookup
from kernelpack.kernels.kv_operand.rows import LATENT, ROPE
from kernelpack.kernels.mla_decode_absorb.problem import (
    KERNEL,
    MOST_POSITIONS,
    NO_CACHE,
    NOPE,
    Problem,
)
from kernelpack.kv import Operand
from kernelpack.ops import kv_operand
from kernelpack.ops.appended import sequences_of
from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.checks import check_array, check_contiguous, number, require
from kernelpack.ops.kv_operand import INTEGERS
from kernelpack.ops.mla_decode_project import check_weights, scales_of_blocks
from kernelpack.ops.operation import Views
from kernelpack.ops.spread import spread, spread_of

_PLACES = (*INTEGERS, DType.I64, DType.U64)
_GAMMAS = (DType.BF16, DType.FP32)
_SCALES = kv_operand.SCALES
_MOST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bytes(DeviceArray):
    """The bytes of an array.

    Attributes:
        of: the type of its elements.

    """

    of: DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A call's arguments besides its arrays."""

    epsilon: float
    power_of_two: bool


def located(kv: Operand | None, views: Views) -> Views:
    """The arrays as the kernel sees them: of caches a layer, of others their memory."""
    appends = "new_kv" in views
    found = dict(views)
    if appends and kv is not None:
        found = {**kv_operand.looked_up(kv, kv_operand.located(kv, views))}
    for name, dims in (("q", "t h 192"), ("new_kv", "t 576")):
        if name in views:
            check_array(views[name], name, dims, (DType.BF16,), KERNEL)
            found[name] = spread(views[name], name, KERNEL)
    if "w_uk_scale" in views:
        given = views["w_uk_scale"]
        found["w_uk_scale"] = scales_of_blocks(given, "w_uk_scale", LATENT, NOPE, KERNEL)
    if "gamma" in views:
        check_array(views["gamma"], "gamma", "512", _GAMMAS, KERNEL)
        found["gamma"] = _words(views["gamma"], "gamma", DType.U8)
    for name in ("slots", "positions"):
        if name in views:
            check_array(views[name], name, "t", _PLACES, KERNEL)
            found[name] = _words(views[name], name, DType.U32)
    if _SCALES in found:
        check_contiguous({_SCALES: found[_SCALES]}, KERNEL)
        found[_SCALES] = replace(found[_SCALES], dtype=DType.U32)
    return found


def _words(array: DeviceArray, name: str, dtype: DType) -> Bytes:
    """An array as bytes or words, which is how the kernel takes it; names it if it has gaps."""
    check_contiguous({name: array}, KERNEL)
    return Bytes(
        pointer=array.pointer,
        shape=(array.size * array.dtype.bits // dtype.bits,),
        dtype=dtype,
        device=array.device,
        is_read_only=array.is_read_only,
        of=array.dtype,
    )


def _words_of(views: Views, name: str) -> int:
    """Words of each number of an array; 0 where it is not there."""
    if name not in views:
        return 0
    found = views[name]
    assert isinstance(found, Bytes), "the request has `located`"
    return found.of.bits // 32


def problem_of(views: Views, outs: Views, kv: Operand | None, settings: Settings) -> Problem:
    """The numbers of a call, after the rules about sides hold."""
    everything = {**views, **outs}
    t, rope = _sides(views)
    queries = spread_of(views["q"]) if "q" in views else None
    h = queries.sides[1] if queries else 0
    pair = "`w_uk` and `w_uk_scale` go together"
    require(("w_uk" in views) == ("w_uk_scale" in views), pair, KERNEL)
    if "w_uk" in views:
        check_weights(views, "w_uk", (h, LATENT, NOPE), KERNEL)
    _check_places(views, t)
    problem = Problem(
        t=t,
        h=h,
        rope=rope,
        absorbs="w_uk" in views,
        rotates=queries is not None and rope > 0 and "freqs" in views,
        most_positions=_most_positions(views, rope),
        slot_words=_words_of(views, "slots"),
        position_words=_words_of(views, "positions"),
        has_batch="batch" in views,
        epsilon=_positive(settings.epsilon),
        power_of_two=bool(settings.power_of_two),
        q_token_stride=queries.steps[0] if queries else 0,
        q_head_stride=queries.steps[1] if queries else 0,
        new_stride=spread_of(views["new_kv"]).steps[0] if "new_kv" in views else 0,
    )
    problem = _with_cache(problem, views, everything, kv)
    problem.check()
    return problem


def _sides(views: Views) -> tuple[int, int]:
    """Tokens, and rope values of a head and of a row."""
    found = {
        name: (spread_of(views[name]), width)
        for name, width in (("q", NOPE), ("new_kv", LATENT))
        if name in views
    }
    require(bool(found), "`q` or `new_kv` must be given", KERNEL)
    tokens = {name: array.sides[0] for name, (array, _) in found.items()}
    ropes = {name: array.sides[-1] - width for name, (array, width) in found.items()}
    for name, rope in ropes.items():
        side, width = rope + found[name][1], found[name][1]
        rule = f"`{name}` must have {width + ROPE} columns, or {width} without rope, not {side}"
        require(rope in (0, ROPE), rule, KERNEL)
    t, rope = next(iter(tokens.values())), next(iter(ropes.values()))
    require(set(tokens.values()) == {t}, f"`new_kv` must have q's {t} tokens", KERNEL)
    both = "`q` and `new_kv` must both have rope values, or none"
    require(set(ropes.values()) == {rope}, both, KERNEL)
    return t, rope


def _check_places(views: Views, t: int) -> None:
    """Positions are given, or sequences that tokens follow; and no more than what is needed."""
    needs = "new_kv" in views or "freqs" in views
    by_sequence = "row_offsets" in views
    by_number = "positions" in views
    rule = "`positions`, or `row_offsets` with a cache's `lengths`, must be given: where tokens are"
    require(by_number != by_sequence or not (needs or by_number), rule, KERNEL)
    both = "`slots` must be given with `positions` and `new_kv`, and only then"
    require(("slots" in views) == (by_number and "new_kv" in views), both, KERNEL)
    if by_sequence:
        rule = "`lengths` of the cache must be given: what tokens follow"
        require("lengths" in views, rule, KERNEL)
        sequences = sequences_of(views["row_offsets"], "row_offsets", KERNEL)
        found = views["lengths"].shape[0]
        rule = f"`lengths` must have the {sequences} sequences of `row_offsets`, not {found}"
        require(found == sequences, rule, KERNEL)
    one = "`batch` must have one element, and goes with `row_offsets`"
    require("batch" not in views or (by_sequence and views["batch"].shape == (1,)), one, KERNEL)
    for name in ("slots", "positions"):
        found = views[name].shape[0] // _words_of(views, name) if name in views else t
        require(found == t, f"`{name}` must have {t} elements, not {found}", KERNEL)


def _most_positions(views: Views, rope: int) -> int:
    if not rope or "freqs" not in views:
        rotated = rope > 0 and "new_kv" in views
        require(not rotated, "`freqs` must be given, to rotate new rows", KERNEL)
        return MOST_POSITIONS
    rows, side = views["freqs"].shape
    require(side == ROPE, f"`freqs` must have {ROPE} columns, not {side}", KERNEL)
    require(rows >= 1, "`freqs` must have a position or more, not 0", KERNEL)
    return rows


def _positive(epsilon: object) -> float:
    found = number(epsilon, "epsilon", where=KERNEL)
    rule = f"`epsilon` must be at least 0 and finite as fp32, not {epsilon!r}"
    require(0 <= found <= _MOST, rule, KERNEL)
    return found


def _with_cache(problem: Problem, views: Views, everything: Views, kv: Operand | None) -> Problem:
    """The problem with the cache that rows are written to; or with sequences alone."""
    sequences = views["row_offsets"].shape[0] - 1 if "row_offsets" in views else 0
    if "new_kv" not in views:
        return replace(problem, lookup=replace(NO_CACHE, sequences=sequences))
    require(kv is not None, "`kv` must be given: where new rows go", KERNEL)
    require("gamma" in views, "`gamma` must be given, to normalise new rows", KERNEL)
    assert kv is not None, "it was asked for"
    storage, scales = kv_operand.storage_of(everything), kv_operand.scales_of(everything, kv)
    gamma = views["gamma"]
    assert isinstance(gamma, Bytes), "the request has `located`"
    found = gamma.size // gamma.of.bytes_of(1)
    require(found == LATENT, f"`gamma` must have {LATENT} elements, not {found}", KERNEL)
    return replace(
        problem,
        row=storage.row,
        gamma=gamma.of,
        lookup=_lookup(views, everything, kv, sequences),
        block_stride=storage.block_stride,
        scales_per_row=scales.per_row if scales else 0,
    )


def _lookup(views: Views, everything: Views, kv: Operand, sequences: int) -> Lookup:
    """Where tokens of sequences are; of slots only the blocks count."""
    storage = kv_operand.storage_of(everything)
    if "slots" in views:
        return Lookup(sequences=0, page=storage.page, blocks=storage.blocks)
    lookup = kv_operand.lookup_of(kv, everything)
    rule = f"the table must have {sequences} sequences, as `row_offsets`, not {lookup.sequences}"
    is_whole = not lookup.has_table  # sequence b has slot b, and there may be more slots
    fits = lookup.sequences >= sequences if is_whole else lookup.sequences == sequences
    require(fits, rule, KERNEL)
    return replace(lookup, sequences=sequences)
