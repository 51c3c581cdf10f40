"""The oracle of sparse MLA prefill in float64, and how far a kernel may be from it.

    x[j] = scale * q·k[row(indices[j])]      for the valid entries j < length
    out  = sum exp(x[j]) v[j] / (sum exp(x[j]) + exp(sink))
    lse  = ln(sum exp(x[j]))      max_logits = max x[j]

A row without a valid entry has out 0, max_logits -inf and lse as the call says. Where a score is
NaN or +inf, or all are -inf, the sum is NaN, and so are the head's out, lse and max_logits; -inf
among numbers weighs nothing. Rows of bf16 are what they are, fp8 rows with scales of blocks are
rounded to bf16 first, and those with one scale a row, or none, are multiplied as they are
(`native`). Tolerances are those of FlashMLA's tests (tests/test_flash_mla_sparse_prefill.py and
tests/lib.py there), and for lse and max_logits what tensor cores may cut of a score (`CUT`): an lse
near zero has an error of its scores' size. Hopper's cut scores of e4m3 far sooner (`hopper`). Of
rows that are multiplied as e4m3 out has room for weights that round the other way where a score is
off by so much (`native.astray`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.kv_operand.rows import LATENT
from kernelpack.kernels.sparse_mla_prefill import hopper, native
from kernelpack.kernels.sparse_mla_prefill.native import Astray, Result
from kernelpack.kernels.sparse_mla_prefill.operands import (
    NO_ROWS,
    Keys,
    Pool,
    lengths_of,
    placed,
    queries,
)
from kernelpack.kernels.sparse_mla_prefill.problem import LOG2E, Problem, bits
from kernelpack.kernels.sparse_mla_prefill.rows import Doubles
from kernelpack.kernels.sparse_mla_prefill.weights import (
    BLACKWELL,
    HOPPER,
    LEAST_SCALE,
    Tiles,
    Weighed,
)

Outputs = dict[str, Expected]

OUT_ABSOLUTE, OUT_RELATIVE, OUT_COSINE = 8e-4, 3.01 / 128, 7e-6
LSE_ABSOLUTE, LSE_RELATIVE = 1e-6, 2.01 / 65536
CUT = 2.0**-23
"""An MMA, of `operands.STEP` columns, rounds what is summed so far toward zero, to 24 bits. Such
cuts go one way and do not cancel. The lse is off by the weighted mean of what its scores are off,
however near to zero it is itself; FlashMLA's own kernel is off by as much."""
ROUNDED = 2.0**-22
"""Scores of rows of fp8 are rounded once more, with log2 of their rows' scales, of which as much is
lost: relative to both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attended:
    """The tokens' attention, exactly: out [t, h, 512], lse and max_logits [t, h].

    `astray` is how far each may be off because sums of products are cut: where rows are multiplied
    as e4m3, out too, of which a weight may then round the other way.
    """

    out: Doubles
    lse: Doubles
    max_logits: Doubles
    astray: Astray


def expected(problem: Problem, arrays: Arrays) -> Outputs:
    """The outputs of a call and their tolerances; those that it asks for."""
    return on_families(
        problem.is_native, lambda tiles: tolerated(problem, attend(problem, arrays, tiles))
    )


def on_families(is_native: bool, expect: Callable[[Tiles], Outputs]) -> Outputs:
    """The expected outputs of Blackwell's kernels, or else of Hopper's.

    They differ where rows are multiplied as e4m3: in what is added to weights, and in sums.
    """
    found = expect(BLACKWELL)
    if not is_native:
        return found
    there = expect(HOPPER)
    return {name: replace(one, elsewhere={"hopper": there[name]}) for name, one in found.items()}


def tolerated(problem: Problem, found: Attended) -> Outputs:
    """The tokens' attention, and a kernel's bound."""
    bound = np.maximum(OUT_ABSOLUTE, OUT_RELATIVE * np.abs(found.out))
    outputs = {"out": expected_out(found, bound, OUT_COSINE)}
    for name, value, wanted, astray in (
        ("lse", found.lse, problem.lse, found.astray.lse),
        ("max_logits", found.max_logits, problem.max_logits, found.astray.max_logits),
    ):
        if wanted:
            outputs[name] = Expected(value=value, bound=_of_scores(value, astray))
    return outputs


def expected_out(found: Attended, bound: Doubles, cosine: float) -> Expected:
    """Out, which may be off by `bound` [t, h, 512], and the whole by `cosine`.

    To both comes what weights do that may round the other way.
    """
    bound = np.where(np.isneginf(found.max_logits)[..., None], 0, bound + found.astray.out)
    return Expected(value=found.out, bound=bound, cosine=cosine + _drift(found))


def _drift(found: Attended) -> float:
    """The cosine difference of outputs that are as far astray as they may be."""
    whole = np.nansum(np.square(found.out))
    return float(np.nansum(found.astray.square) / (2 * whole)) if whole else 0.0


def _of_scores(value: Doubles, astray: Doubles) -> Doubles:
    size = np.where(np.isinf(value), 0, np.abs(value))
    return np.maximum(np.maximum(LSE_ABSOLUTE, LSE_RELATIVE * size), astray)


@np.errstate(invalid="ignore", over="ignore", divide="ignore")
def attend(problem: Problem, arrays: Arrays, tiles: Tiles = BLACKWELL) -> Attended:
    """The oracle, a token at a time; `tiles` matter to rows that are multiplied as e4m3."""
    scale_log2e = float(np.uint32(bits(problem.scale * LOG2E)).view(np.float32))
    q = queries(problem, arrays["q"])
    q_scales = np.ones((problem.t, problem.h))
    if problem.q_scales:
        q_scales = arrays["q_scales"].astype(np.float64).reshape(q_scales.shape)
    sink = arrays["sink"].astype(np.float64) if problem.sink else np.full(problem.h, -np.inf)
    found = nothing(problem)
    chose = [placed(problem, arrays, token) for token in range(problem.t)]
    pool = Pool.of(problem, arrays, np.unique(np.concatenate([NO_ROWS, *(r for r, _ in chose)])))
    for token, (rows, places) in enumerate(chose):
        if len(rows):
            keys, heads = pool.keys_at(rows, places), (q[token], q_scales[token, :, None])
            if problem.is_native:
                one, astray = _native(problem, heads, keys, scale_log2e, sink, tiles)
            else:
                one, astray = _exact(problem, q[token], keys, scale_log2e)
            _note(found, token, one)
            _note(found.astray, token, astray)
            found.astray.square[token] = astray.square
    return found if problem.is_native else with_sink(found, sink)


def nothing(problem: Problem) -> Attended:
    """Tokens that attend to nothing."""
    of_heads = (problem.t, problem.h)
    return Attended(
        out=np.zeros((*of_heads, LATENT)),
        lse=np.full(of_heads, problem.dead_lse),
        max_logits=np.full(of_heads, -np.inf),
        astray=Astray(
            out=np.zeros((*of_heads, LATENT if problem.is_native else 1)),
            square=np.zeros(of_heads),
            lse=np.zeros(of_heads),
            max_logits=np.zeros(of_heads),
        ),
    )


def with_sink(found: Attended, sink: Doubles) -> Attended:
    """The same with sinks [h], for what was found without; not for rows multiplied as fp8."""
    is_alive = np.isfinite(found.max_logits)
    with np.errstate(over="ignore"):
        taken = np.exp(sink - np.where(is_alive, found.lse, 0))
    return replace(found, out=found.out / (1 + taken)[..., None])


def _note(found: Attended | Astray, token: int, result: Result | Astray) -> None:
    found.out[token], found.lse[token] = result.out, result.lse
    found.max_logits[token] = result.max_logits


def _native(
    problem: Problem,
    q: tuple[Doubles, Doubles],
    keys: Keys,
    scale_log2e: float,
    sink: Doubles,
    tiles: Tiles,
) -> tuple[Result, Astray]:
    """One token, numbers and scales of its heads, its rows multiplied as they are."""
    numbers, scales_of_heads = q
    heads = native.Queries(numbers=numbers, scales=scales_of_heads)
    if not problem.q_scales:
        heads = native.Queries.of(numbers, problem.row)
    scores = heads.scores(keys.numbers, keys.scales, scale_log2e)
    weighed = Weighed.of(scores, keys.scales, keys.places, tiles)
    error = _cut(problem, numbers * scales_of_heads, keys, scale_log2e / LOG2E)
    if tiles is HOPPER:
        columns = native.quantised_columns(problem.row)
        of_codes = hopper.cut(heads.numbers[:, :columns], keys.numbers[:, :columns])
        error += scale_log2e / LOG2E * heads.scales * keys.scales * of_codes
    result = native.attend(weighed, keys.numbers, sink)
    return result, native.astray(weighed, keys.numbers, sink, error)


def _exact(problem: Problem, q: Doubles, keys: Keys, scale_log2e: float) -> tuple[Result, Astray]:
    """One token without a sink, its rows as bf16."""
    x = scale_log2e / LOG2E * (q @ keys.numbers.T)
    largest = x.max(1)
    p = np.exp(x - largest[:, None])
    total = p.sum(1)
    result = Result(
        out=p @ keys.numbers[:, :LATENT] / total[:, None],
        lse=largest + np.log(total),
        max_logits=np.where(np.isnan(total), total, largest),
    )
    cut = _cut(problem, q, keys, scale_log2e / LOG2E).max(1)
    nowhere = np.zeros(len(q))
    return result, Astray(out=nowhere[:, None], square=nowhere, lse=cut, max_logits=cut)


def _cut(problem: Problem, q: Doubles, keys: Keys, scale: float) -> Doubles:
    """The most that scores may be off, natural units [h, n]: `CUT` and `ROUNDED`."""
    sizes = lengths_of(q)
    adds = np.diff(sizes, axis=1, prepend=0) > 0
    cut = CUT * scale * (sizes * adds) @ keys.sizes.T
    if problem.is_native:
        whole = scale * np.outer(sizes[:, -1], keys.sizes[:, -1])
        cut += ROUNDED * (whole + np.abs(np.log(np.maximum(keys.scales, LEAST_SCALE))))
    return np.asarray(cut)
