"""The results of kernels that multiply e4m3: rows of fp8 with one scale each, or none.

Weights are quantised on the way, and queries unless they come so, so the oracle quantises them as
the kernels do:

    a_h   = max |q_h| over its quantised columns: all, but for fp8_640 the latent ones
    q8    = e4m3(q_h * (448 / a_h))          saturating; fp8_640's rope: bf16(q_rope * (448 / a_h))
    x_j   = scale * log2(e) * a_h / 448 * s_j * (q8 · k8_j)         fp32
    M     = an integer, near max(x_j + log2 s_j)
    w_j   = 2^(x_j - M) * s_j                 the weight of k8_j
    w8_j  = w_j rounded to e4m3, as `weights` says
    out   = (sum w8_j v8_j / sum w8_j) * (sum w_j / (sum w_j / s_j + 2^(sink * log2(e) - M)))
    lse   = M + log2(sum 2^(x_j - M))         in natural units

An output is a mean of V's codes, by rounded weights, times the mean of scales, by exact ones. Where
scores are nearly alike all weights round the same way: over the sum of exact ones the first mean
would be up to 6 % off. Where a row's scale is far below the others' its w8 is 0, or nearly: over
the sum of w8_j / s_j the second would lack it. So an output is off by no more than rounding moves
weight from key to key, a thirtieth of V's codes times the mean scale; at worst half the weight
rounds up by a sixteenth and half of it down.

A kernel's scores are of fp32: one in thousands of weights lies so near to a boundary of e4m3 that
it may round the other way; on Hopper one in tens may (`hopper`). `astray` says what that does to
outputs.
"""

from dataclasses import dataclass

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import LATENT, RowFormat
from kernelpack.kernels.sparse_mla_prefill.problem import LOG2E
from kernelpack.kernels.sparse_mla_prefill.rows import LARGEST, Doubles, Floats
from kernelpack.kernels.sparse_mla_prefill.weights import WEIGHED, Weighed, e4m3


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """The heads of a token, quantised: numbers [h, width] and their scales [h, 1]."""

    numbers: Doubles
    scales: Doubles

    @classmethod
    def of(cls, q: Doubles, row: RowFormat) -> "Queries":
        """Quantise q [h, width], bf16 numbers, for rows of a format."""
        columns = quantised_columns(row)
        largest = np.abs(q[:, :columns]).max(1, keepdims=True).astype(np.float32)
        largest = np.where(largest > 0, largest, np.float32(1))
        factor = np.float32(LARGEST) / largest
        scaled: Floats = np.asarray(q.astype(np.float32) * factor, np.float32)
        numbers = scaled.astype(DType.BF16.numpy).astype(np.float64)
        numbers[:, :columns] = e4m3(scaled[:, :columns])
        return cls(numbers=numbers, scales=largest.astype(np.float64) / LARGEST)

    def scores(self, keys: Doubles, of_rows: Doubles, scale_log2e: float) -> Doubles:
        """In units of log2 [h, n], of keys [n, width] with scales [n]."""
        return np.asarray(scale_log2e * self.scales * (self.numbers @ keys.T) * of_rows)


def quantised_columns(row: RowFormat) -> int:
    """How many columns of Q are multiplied as e4m3; the rest, rope, as bf16."""
    return LATENT if row.rope_dtype is DType.BF16 else row.width


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Attention of tokens: out [.., h, 512], lse and max_logits [.., h], natural units."""

    out: Doubles
    lse: Doubles
    max_logits: Doubles


def attend(weighed: Weighed, keys: Doubles, sink: Doubles) -> Result:
    """One token over its keys; sinks are of each head [h], -inf means no sink."""
    total = weighed.exact.sum(1)
    scale = weighed.weights.sum(1) / _with_sink(weighed, sink)
    return Result(
        out=_mean(weighed, keys) * scale[:, None],
        lse=(weighed.most[:, 0] + np.log2(total)) * np.log(2),
        max_logits=np.where(np.isnan(total), total, weighed.scores.max(1) * np.log(2)),
    )


def _mean(weighed: Weighed, keys: Doubles) -> Doubles:
    """Of V's codes by rounded weights [h, 512]."""
    return np.asarray(weighed.rounded @ keys[:, :LATENT] / weighed.rounded.sum(1, keepdims=True))


def _with_sink(weighed: Weighed, sink: Doubles) -> Doubles:
    """The sum of exact weights, a sink's too [h]."""
    with np.errstate(over="ignore"):
        return np.asarray(weighed.exact.sum(1) + np.exp2(sink * LOG2E - weighed.most[:, 0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Astray:
    """How far a result may be off: out [.., h, 512], lse and max_logits [.., h], natural units.

    `square` [.., h] is of each head the square of the length by which its whole output is off, were
    each key that may move to do so: keys move either way, and their squares add up.
    """

    out: Doubles
    square: Doubles
    lse: Doubles
    max_logits: Doubles


def astray(weighed: Weighed, keys: Doubles, sink: Doubles, error: Doubles) -> Astray:
    """How far a token's result may be off where its scores are, by `error` [h, n] at most.

    Weights that lie where e4m3 rounds the other way move by a step, and the mean of V's codes with
    them; the mean of scales moves with exact weights.
    """
    mean, total = _mean(weighed, keys), _with_sink(weighed, sink)[:, None]
    of_scales = weighed.weights / weighed.weights.sum(1, keepdims=True) - weighed.exact / total
    scale = weighed.weights.sum(1, keepdims=True) / total
    moved, square = _of_moved(weighed, keys, mean, weighed.moved(error + WEIGHED))
    further = np.abs(mean) * (np.abs(of_scales) * error).sum(1, keepdims=True)
    return Astray(
        out=(moved + further) * scale,
        square=square * np.square(scale[:, 0]),
        lse=(weighed.exact * error).sum(1) / weighed.exact.sum(1),
        max_logits=error.max(1),
    )


def _of_moved(
    weighed: Weighed, keys: Doubles, mean: Doubles, moved: Doubles
) -> tuple[Doubles, Doubles]:
    """How far means [h, 512] are off where rounded weights are, by `moved` [h, n] at most.

    Also of each head the square of the length of that [h]. A weight draws the mean to its key's
    codes or away from them, however large they are themselves; no weights draw it past them all.
    """
    v, left = keys[:, :LATENT], weighed.rounded.sum(1) - moved.sum(1)
    most = np.maximum(v.max(0) - mean, mean - v.min(0))
    out, square = np.zeros_like(mean), np.zeros(len(mean))
    for head, of_keys in enumerate(moved):
        near = np.flatnonzero(of_keys)
        apart, share = v[near] - mean[head], of_keys[near] / max(left[head], 0)
        out[head] = np.fmin(share @ np.abs(apart), most[head])
        square[head] = np.fmin(np.square(share) @ np.square(apart).sum(1), most[head] @ most[head])
    return out, square
