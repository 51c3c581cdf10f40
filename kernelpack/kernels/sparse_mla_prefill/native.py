"""What kernels that multiply e4m3 compute: rows of fp8 with one scale each, or none.

Weights are quantised on the way, and queries unless they come so, so the oracle quantises them as a
kernel must:

    a_h   = max |q_h| over its quantised columns: all, but for fp8_640 the latent ones
    q8    = e4m3(q_h * (448 / a_h))          saturating; fp8_640's rope: bf16(q_rope * (448 / a_h))
    x_j   = scale * log2(e) * a_h / 448 * s_j * (q8 · k8_j)         fp32
    M     = an integer, at least max(x_j + log2 s_j) once all keys are seen
    w_j   = 2^(x_j - M) * s_j                 the weight of k8_j
    w8_j  = e4m3(w_j * 256) / 256             where that is a normal number; else w_j
    out   = (sum w8_j v8_j / sum w8_j) * (sum w_j / (sum w_j / s_j + 2^(sink * log2(e) - M)))
    lse   = M + log2(sum 2^(x_j - M))         in natural units

An output is a mean of V's codes, by rounded weights, times the mean of scales, by exact ones. Where
scores are nearly alike all weights round the same way: over the sum of exact ones the first mean
would be up to 6 % off. Where a row's scale is far below the others' its w8 is 0, or nearly: over
the sum of w8_j / s_j the second would lack it. So an output is off by no more than rounding moves
weight from key to key, a thirtieth of V's codes times the mean scale; at worst half the weight
rounds up by a sixteenth and half of it down.

Below 2^-6 numbers of e4m3 are evenly spaced, and long tails of small weights would vanish or
double: 2047 keys 2^-16 below the largest are 3 % of all. Kernels add to each key's weights a part
of that space before they round, keys of a tile each another part, so that a tail is right as a
whole: in the mean, small weights are exact.

Weights are quantised below a maximum that is an *integer*, so that a maximum that grows from block
to block, by whole powers of two, changes no weight's rounding: neither the size of blocks nor their
order is part of what is computed, but where weights are below 2^-14 of the largest.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode, encode
from kernelpack.kernels.kv_operand.rows import LATENT, RowFormat
from kernelpack.kernels.sparse_mla_prefill.rows import LARGEST

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]

WEIGHT = 256.0
"""What weights are multiplied by before they are rounded: the largest becomes at most 256."""
NORMAL = 2.0**-6
"""The least normal number of e4m3."""
STEP, LEAST_WEIGHT = 2.0**-9, 64.0
"""What numbers of e4m3 below NORMAL are apart: kernels add at most half of it, either way, to
weights that are multiplied by LEAST_WEIGHT at least, for their maximum may lag."""


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


def quantised_columns(row: RowFormat) -> int:
    """How many columns of Q are multiplied as e4m3; the rest, rope, as bf16."""
    return LATENT if row.rope_dtype is DType.BF16 else row.width


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What tokens attend to: out [.., h, 512], lse and max_logits [.., h], natural units."""

    out: Doubles
    lse: Doubles
    max_logits: Doubles


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """The keys of one token as its heads weigh them.

    Attributes:
        scores: in units of log2 [h, n].
        most: the integer that weights refer to [h, 1].
        exact: weights, without their rows' scales [h, n].
        scales: of rows [n].

    """

    scores: Doubles
    most: Doubles
    exact: Doubles
    scales: Doubles

    @classmethod
    def of(cls, q: Queries, keys: Doubles, of_rows: Doubles, scale_log2e: float) -> "Weighed":
        """Weigh keys [entries, width], at least one, of scales [entries, 1] or [1, 1]."""
        s = np.broadcast_to(of_rows, (len(keys), 1))[:, 0]
        x = scale_log2e * q.scales * (q.numbers @ keys.T) * s
        most = np.ceil((x + np.log2(s)).max(1, keepdims=True))
        return cls(scores=x, most=most, exact=np.exp2(x - most), scales=s)

    @property
    def weights(self) -> Doubles:
        """Of the rows' codes [h, n]."""
        return self.exact * self.scales

    @property
    def dithered(self) -> Doubles:
        """How far rounded weights are off at most for what kernels add before they round [h, n]."""
        weights, half = self.weights, STEP / 2 / LEAST_WEIGHT
        found = rounded(weights)
        less, more = rounded(np.maximum(weights - half, 0)), rounded(weights + half)
        moved = np.maximum(found - less, more - found)
        small = np.abs(found - weights) + np.minimum(2 * half, weights + half)
        return np.where(weights * LEAST_WEIGHT < NORMAL, small, moved)

    def moved(self, error: Doubles) -> Doubles:
        """How far rounded weights are off at most where scores are, by `error` natural units."""
        found = rounded(self.weights)
        less, more = (rounded(self.weights * np.exp(e)) for e in (-error, error))
        return np.maximum(found - less, more - found)


def attend(weighed: Weighed, keys: Doubles, sink: Doubles) -> Result:
    """One token over its keys; sinks are of each head [h], -inf is none."""
    r, total = rounded(weighed.weights), weighed.exact.sum(1)
    with np.errstate(over="ignore"):
        denominator = total + np.exp2(sink * np.log2(np.e) - weighed.most[:, 0])
    factor = weighed.weights.sum(1) / r.sum(1) / denominator
    return Result(
        out=r @ keys[:, :LATENT] * factor[:, None],
        lse=(weighed.most[:, 0] + np.log2(total)) * np.log(2),
        max_logits=np.where(np.isnan(total), total, weighed.scores.max(1) * np.log(2)),
    )


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


def astray(weighed: Weighed, keys: Doubles, result: Result, error: Doubles) -> Astray:
    """How far a token's result may be off where its scores are, by `error` [h, n] at most.

    Weights that lie where e4m3 rounds the other way move by a step; each takes its share of the
    output with it.
    """
    share = weighed.exact / weighed.exact.sum(1, keepdims=True)
    out, square = of_moved(weighed, keys, result, weighed.moved(error))
    mean = (share * error).sum(1)
    of_scales = (weighed.weights * error).sum(1) / weighed.weights.sum(1)
    return Astray(
        square=square,
        out=out + (mean + of_scales)[:, None] * np.abs(result.out),
        lse=mean,
        max_logits=error.max(1),
    )


def of_moved(
    weighed: Weighed, keys: Doubles, result: Result, moved: Doubles
) -> tuple[Doubles, Doubles]:
    """How far outputs [h, 512] are off where rounded weights are, by `moved` [h, n] at most.

    Also of each head the square of the length by which its whole output is off [h].
    """
    v, total = keys[:, :LATENT], rounded(weighed.weights).sum(1)
    share = weighed.exact / weighed.exact.sum(1, keepdims=True)
    scale = (weighed.scales * share).sum(1, keepdims=True)
    of_keys = moved @ np.abs(v) * scale + moved.sum(1, keepdims=True) * np.abs(result.out)
    lengths = np.square(v).sum(1) * np.square(scale) + np.square(result.out).sum(1, keepdims=True)
    square = (np.square(moved) * lengths).sum(1) / np.square(total)
    return of_keys / total[:, None], square


def rounded(weights: Doubles) -> Doubles:
    """What multiplies codes of V."""
    scaled = weights * WEIGHT
    return np.where(scaled < NORMAL, scaled, e4m3(scaled.astype(np.float32))) / WEIGHT


def e4m3(values: Floats) -> Doubles:
    """The nearest numbers of e4m3, saturating."""
    return np.asarray(decode(DType.E4M3, encode(DType.E4M3, values, satfinite=True)), np.float64)
