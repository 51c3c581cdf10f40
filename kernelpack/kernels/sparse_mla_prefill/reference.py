"""The oracle of sparse MLA prefill in float64, and how far a kernel may be from it.

    x[j] = scale * q·k[row(indices[j])]      for the valid entries j < length
    out  = sum exp(x[j]) v[j] / (sum exp(x[j]) + exp(sink))
    lse  = ln(sum exp(x[j]))      max_logits = max x[j]

A row without a valid entry has out 0, max_logits -inf and lse as the call says. Where a score is
NaN or +inf, or all are -inf, the sum is NaN, and so are the head's out, lse and max_logits; -inf
among numbers weighs nothing. Rows of bf16 are
what they are, fp8 rows with scales of blocks are rounded to bf16 first, and those with one scale a
row, or none, are multiplied as they are (`native`). Tolerances are those of FlashMLA's tests
(tests/test_flash_mla_sparse_prefill.py and tests/lib.py there), and for lse and max_logits what
tensor cores may cut of a score (`CUT`): an lse near zero has an error of its scores' size. Hopper's
cut scores of e4m3 far sooner (`hopper`), so that there is a bound of its own for them.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.kv_operand.rows import LATENT
from kernelpack.kernels.sparse_mla_prefill import hopper, native
from kernelpack.kernels.sparse_mla_prefill.native import Astray, Result
from kernelpack.kernels.sparse_mla_prefill.problem import LOG2E, Problem, bits
from kernelpack.kernels.sparse_mla_prefill.rows import (
    NO_SCALES,
    Bytes,
    Floats,
    codes,
    dequantise,
    scales,
)

Doubles = NDArray[np.float64]
NO_ROWS = np.zeros(0, np.int64)

OUT_ABSOLUTE, OUT_RELATIVE, OUT_COSINE = 8e-4, 3.01 / 128, 7e-6
LSE_ABSOLUTE, LSE_RELATIVE = 1e-6, 2.01 / 65536
HOPPER = "hopper"
CUT, STEP = 2.0**-23, 16
"""An MMA of STEP columns rounds what is summed so far toward zero, to 24 bits. Such cuts go one way
and do not cancel. The lse is off by the weighted mean of what its scores are off, however near to
zero it is itself; FlashMLA's own kernel is off by as much."""
ROUNDED = 2.0**-22
"""Scores of rows of fp8 are rounded once more, with log2 of their rows' scales, of which as much is
lost: relative to both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attended:
    """What the tokens attend to, exactly: out [t, h, 512], lse and max_logits [t, h].

    `cut` [t, h] is the most that a score may be off because sums of products are cut. Where rows
    are multiplied as e4m3, `dithered` is how far out may be off for what kernels add to weights, of
    which `square` [t, h] is the square of a head's length; and `astray` how far each of the three
    may be off on Hopper besides. Of other rows the two have no outputs.
    """

    out: Doubles
    lse: Doubles
    max_logits: Doubles
    cut: Doubles
    dithered: Doubles
    square: Doubles
    astray: Astray


def expected(problem: Problem, arrays: Arrays) -> dict[str, Expected]:
    """The outputs of a call and their tolerances; those that it asks for."""
    return tolerated(problem, attend(problem, arrays))


def tolerated(problem: Problem, found: Attended) -> dict[str, Expected]:
    """What tokens attend to, and how far a kernel may be from it."""
    is_dead = np.isneginf(found.max_logits)
    bound = np.maximum(OUT_ABSOLUTE, OUT_RELATIVE * np.abs(found.out))
    bound[is_dead] = 0
    outputs = {"out": expected_out(found, bound)}
    for name, value, wanted, astray in (
        ("lse", found.lse, problem.lse, found.astray.lse),
        ("max_logits", found.max_logits, problem.max_logits, found.astray.max_logits),
    ):
        if wanted:
            there = Expected(value=value, bound=_of_scores(value, found.cut + astray))
            elsewhere = {HOPPER: there} if problem.is_native else {}
            bound = _of_scores(value, found.cut)
            outputs[name] = Expected(value=value, bound=bound, elsewhere=elsewhere)
    return outputs


def expected_out(found: Attended, bound: Doubles, cosine: float = OUT_COSINE) -> Expected:
    """Out, which may be off by `bound` [t, h, 512], and the whole by `cosine`, if sums are exact.

    To both comes what kernels that multiply e4m3 add to weights, and on Hopper more.
    """
    there = found.astray.out
    if not there.size:
        return Expected(value=found.out, bound=bound, cosine=cosine)
    bound, cosine = bound + found.dithered, cosine + _drift(found, found.square)
    further = cosine + _drift(found, found.astray.square)
    elsewhere = Expected(value=found.out, bound=bound + there, cosine=further)
    return Expected(value=found.out, bound=bound, cosine=cosine, elsewhere={HOPPER: elsewhere})


def _drift(found: Attended, square: Doubles) -> float:
    """The cosine difference of outputs that are off by lengths of these squares."""
    whole = np.nansum(np.square(found.out))
    return float(square.sum() / (2 * whole)) if whole else 0.0


def _of_scores(value: Doubles, cut: Doubles) -> Doubles:
    size = np.where(np.isinf(value), 0, np.abs(value))
    return np.maximum(np.maximum(LSE_ABSOLUTE, LSE_RELATIVE * size), cut)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """The rows that some token attends to, each once, as a kernel multiplies them.

    Attributes:
        numbers: which rows of the cache they are [rows], rising.
        keys: what is multiplied [rows, width].
        scales: what each is to be multiplied by [rows]; 1 where it has no scale of its own.
        sizes: lengths of the rows up to the end of each MMA's columns [rows, steps].

    """

    numbers: NDArray[np.int64]
    keys: Doubles
    scales: Doubles
    sizes: Doubles

    @classmethod
    def of(cls, problem: Problem, arrays: Arrays, numbers: NDArray[np.int64]) -> "Pool":
        """Decode rows of the cache."""
        rows, beside = cache(problem, arrays)
        row, own = problem.row, beside[numbers] if len(beside) else NO_SCALES
        if problem.is_native:
            keys, of_rows = codes(row, rows[numbers]), scales(row, rows[numbers], own)[:, 0]
        else:
            keys, of_rows = dequantise(row, rows[numbers], own), np.ones(1)
        of_rows = np.broadcast_to(of_rows, len(numbers))
        sizes = lengths_of(keys) * of_rows[:, None]
        return cls(numbers=numbers, keys=keys, scales=of_rows, sizes=sizes)

    def places(self, chose: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where rows of the cache are here."""
        return np.searchsorted(self.numbers, chose)


@np.errstate(invalid="ignore", over="ignore")
def attend(problem: Problem, arrays: Arrays) -> Attended:
    """The oracle, a token at a time."""
    scale_log2e = float(np.uint32(bits(problem.scale * LOG2E)).view(np.float32))
    q = queries(problem, arrays["q"])
    q_scales = np.ones((problem.t, problem.h))
    if problem.q_scales:
        q_scales = arrays["q_scales"].astype(np.float64).reshape(q_scales.shape)
    sink = arrays["sink"].astype(np.float64) if problem.sink else np.full(problem.h, -np.inf)
    found = Attended(
        out=np.zeros((problem.t, problem.h, LATENT)),
        lse=np.full((problem.t, problem.h), problem.dead_lse),
        max_logits=np.full((problem.t, problem.h), -np.inf),
        cut=np.zeros((problem.t, problem.h)),
        dithered=np.zeros((problem.t, problem.h, LATENT) if problem.is_native else (0,)),
        square=np.zeros((problem.t, problem.h)),
        astray=nowhere(problem),
    )
    chose = [chosen(problem, arrays, token) for token in range(problem.t)]
    pool = Pool.of(problem, arrays, np.unique(np.concatenate([NO_ROWS, *chose])))
    for token, rows in enumerate(map(pool.places, chose)):
        if len(rows):
            heads = q[token], q_scales[token, :, None]
            cut = _cut(problem, heads[0] * heads[1], pool, rows, scale_log2e / LOG2E)
            found.cut[token] = cut
            if problem.is_native:
                one, own, astray = _native(problem, heads, pool, rows, scale_log2e, sink, cut)
                found.dithered[token], found.square[token] = own
                _note(found.astray, token, astray)
                found.astray.square[token] = astray.square
            else:
                one = _exact(q[token], pool, rows, scale_log2e)
            _note(found, token, one)
    return found if problem.is_native else with_sink(found, sink)


def with_sink(found: Attended, sink: Doubles) -> Attended:
    """The same with sinks [h], for what was found without; not for rows multiplied as fp8."""
    is_alive = np.isfinite(found.max_logits)
    with np.errstate(over="ignore"):
        taken = np.exp(sink - np.where(is_alive, found.lse, 0))
    return replace(found, out=found.out / (1 + taken)[..., None])


def nowhere(problem: Problem) -> Astray:
    """No error, of any token."""
    of_heads = (problem.t, problem.h)
    return Astray(
        out=np.zeros((*of_heads, LATENT) if problem.is_native else (0,)),
        square=np.zeros(of_heads),
        lse=np.zeros(of_heads),
        max_logits=np.zeros(of_heads),
    )


def _note(found: Attended | Astray, token: int, result: Result | Astray) -> None:
    found.out[token], found.lse[token] = result.out, result.lse
    found.max_logits[token] = result.max_logits


def _native(
    problem: Problem,
    q: tuple[Doubles, Doubles],
    pool: Pool,
    rows: NDArray[np.int64],
    scale_log2e: float,
    sink: Doubles,
    cut: Doubles,
) -> tuple[Result, tuple[Doubles, Doubles], Astray]:
    """One token, numbers and scales of its heads, its rows multiplied as they are.

    Also how far it may be off for what is added to weights, and how far astray on Hopper.
    """
    numbers, scales_of_heads = q
    heads = native.Queries(numbers=numbers, scales=scales_of_heads)
    if not problem.q_scales:
        heads = native.Queries.of(numbers, problem.row)
    keys, of_rows = pool.keys[rows], pool.scales[rows, None]
    weighed = native.Weighed.of(heads, keys, of_rows, scale_log2e)
    result = native.attend(weighed, keys, sink)
    columns = native.quantised_columns(problem.row)
    of_codes = hopper.cut(heads.numbers[:, :columns], keys[:, :columns])
    error = scale_log2e / LOG2E * heads.scales * of_rows[:, 0] * of_codes + cut[:, None]
    own = native.of_moved(weighed, keys, result, weighed.dithered)
    return result, own, native.astray(weighed, keys, result, error)


def _exact(q: Doubles, pool: Pool, rows: NDArray[np.int64], scale_log2e: float) -> Result:
    """One token without a sink, its rows as bf16."""
    k = pool.keys[rows]
    x = scale_log2e / LOG2E * (q @ k.T)
    largest = x.max(1)
    p = np.exp(x - largest[:, None])
    total = p.sum(1)
    return Result(
        out=p @ k[:, :LATENT] / total[:, None],
        lse=largest + np.log(total),
        max_logits=np.where(np.isnan(total), total, largest),
    )


def _cut(
    problem: Problem, q: Doubles, pool: Pool, rows: NDArray[np.int64], scale: float
) -> Doubles:
    """The most that a head's scores may be off, natural units [h]: `CUT` and `ROUNDED`."""
    sizes, longest = lengths_of(q), pool.sizes[rows].max(0)
    adds = np.diff(sizes, axis=1, prepend=0) > 0
    cut = CUT * scale * (sizes * longest * adds).sum(1)
    if not problem.is_native:
        return np.asarray(cut)
    of_scales = np.abs(np.log(pool.scales[rows])).max()
    return np.asarray(cut + ROUNDED * (scale * sizes[:, -1] * longest[-1] + of_scales))


def lengths_of(vectors: Doubles) -> Doubles:
    """Lengths of vectors [n, width] up to the end of each MMA's columns [n, width / STEP]."""
    squares = np.square(vectors).reshape(len(vectors), vectors.shape[1] // STEP, STEP).sum(2)
    return np.asarray(np.sqrt(squares.cumsum(1)))


def cache(problem: Problem, arrays: Arrays) -> tuple[Bytes, Floats]:
    """The rows [kv_rows, bytes], and the scales beside them [kv_rows, scales of a row]."""
    kv = arrays["kv"].view(np.uint8).reshape(-1)
    rows = kv[: problem.kv_rows * problem.row.bytes].reshape(-1, problem.row.bytes)
    if not problem.kv_scales:
        return rows, NO_SCALES
    return rows, arrays["kv_scales"].reshape(-1, problem.kv_scales)


def queries(problem: Problem, q: NDArray[Any]) -> Doubles:
    """The tokens [t, h, d] out of memory with the problem's strides; of e4m3 without scales."""
    flat = np.ascontiguousarray(q.reshape(-1))
    steps = (problem.q_token_stride, problem.q_head_stride, 1)
    shape = (problem.t, problem.h, problem.q_width)
    strides = tuple(step * flat.itemsize for step in steps)
    heads = np.lib.stride_tricks.as_strided(flat, shape, strides)
    if not problem.q_scales:
        return np.asarray(heads.astype(np.float64))
    rows = np.ascontiguousarray(heads).view(np.uint8).reshape(-1, problem.row.bytes)
    return codes(problem.row, rows).reshape(*shape[:2], problem.row.width)


def chosen(problem: Problem, arrays: Arrays, token: int) -> NDArray[np.int64]:
    """The rows of a token's valid entries within its length, in order, duplicates too."""
    length = problem.topk
    if problem.lengths:
        length = int(np.clip(arrays["topk_lengths"][token], 0, problem.topk))
    first = token * problem.indices_stride
    entries = arrays["indices"].reshape(-1)[first : first + length].astype(np.int64)
    entries = entries[(entries >= 0) & (entries < problem.entries)]
    block, offset = np.divmod(entries, problem.page)
    return np.asarray(block * problem.block_stride + offset)
