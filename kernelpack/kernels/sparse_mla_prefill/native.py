"""What kernels that multiply e4m3 compute: rows of fp8 with one scale each, or none.

Weights are quantised on the way, and queries unless they come so, so the oracle quantises them as a
kernel must:

    a_h   = max |q_h| over its quantised columns: all, but for fp8_640 the latent ones
    q8    = e4m3(q_h * (448 / a_h))          saturating; fp8_640's rope: bf16(q_rope * (448 / a_h))
    x_j   = scale * log2(e) * a_h / 448 * s_j * (q8 · k8_j)         fp32
    M     = an integer, at least max(x_j + log2 s_j) once all keys are seen
    w_j   = 2^(x_j - M) * s_j                 the weight of k8_j
    w8_j  = e4m3(w_j * 256) / 256
    out   = sum w8_j v8_j / (sum w8_j / s_j + 2^(sink * log2(e) - M))
    lse   = M + log2(sum 2^(x_j - M))         in natural units

Outputs are divided by the sum of what multiplies V, rounded weights: where scores are nearly alike
all weights round the same way, and outputs over the sum of unrounded ones would be up to 6 % off.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """The heads of a token, quantised: numbers [h, width] and their scales [h, 1]."""

    numbers: Doubles
    scales: Doubles

    @classmethod
    def of(cls, q: Doubles, row: RowFormat) -> "Queries":
        """Quantise q [h, width], bf16 numbers, for rows of a format."""
        columns = LATENT if row.rope_dtype is DType.BF16 else row.width
        largest = np.abs(q[:, :columns]).max(1, keepdims=True).astype(np.float32)
        largest = np.where(largest > 0, largest, np.float32(1))
        factor = np.float32(LARGEST) / largest
        scaled: Floats = np.asarray(q.astype(np.float32) * factor, np.float32)
        numbers = scaled.astype(DType.BF16.numpy).astype(np.float64)
        numbers[:, :columns] = e4m3(scaled[:, :columns])
        return cls(numbers=numbers, scales=largest.astype(np.float64) / LARGEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one token attends to: out [h, 512], lse and max_logits [h], natural units."""

    out: Doubles
    lse: Doubles
    max_logits: Doubles


def attend(
    q: Queries, keys: Doubles, of_rows: Doubles, scale_log2e: float, sink: Doubles
) -> Result:
    """One token over its keys.

    Args:
        q: its heads.
        keys: what lies in the rows [entries, width], at least one.
        of_rows: their scales [entries, 1] or [1, 1].
        scale_log2e: of scores.
        sink: of each head [h]; -inf is none.

    """
    s = np.broadcast_to(of_rows, (len(keys), 1))[:, 0]
    x = scale_log2e * q.scales * (q.numbers @ keys.T) * s
    most = np.ceil((x + np.log2(s)).max(1, keepdims=True))
    p = np.exp2(x - most)
    weights = e4m3((p * s * WEIGHT).astype(np.float32)) / WEIGHT
    with np.errstate(over="ignore"):
        total = p.sum(1)
        rounded = (weights / s).sum(1)
        denominator = rounded + np.exp2(sink * np.log2(np.e) - most[:, 0])
    return Result(
        out=weights @ keys[:, :LATENT] / denominator[:, None],
        lse=(most[:, 0] + np.log2(total)) * np.log(2),
        max_logits=x.max(1) * np.log(2),
    )


def e4m3(values: Floats) -> Doubles:
    """The nearest numbers of e4m3, saturating."""
    return np.asarray(decode(DType.E4M3, encode(DType.E4M3, values, satfinite=True)), np.float64)
