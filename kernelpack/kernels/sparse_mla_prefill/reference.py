"""The oracle of sparse MLA prefill in float64, and how far a kernel may be from it.

    x[j] = scale * q·k[row(indices[j])]      for the valid entries j < length
    out  = sum exp(x[j]) v[j] / (sum exp(x[j]) + exp(sink))
    lse  = ln(sum exp(x[j]))      max_logits = max x[j]

A row without a valid entry has out 0, max_logits -inf and lse as the call says. Rows of bf16 are
what they are, fp8 rows with scales of blocks are rounded to bf16 first, and those with one scale a
row, or none, are multiplied as they are (`native`). Tolerances are those of FlashMLA's tests
(tests/test_flash_mla_sparse_prefill.py and tests/lib.py there).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.kv_operand.rows import LATENT, RowFormat
from kernelpack.kernels.sparse_mla_prefill import native
from kernelpack.kernels.sparse_mla_prefill.native import Result
from kernelpack.kernels.sparse_mla_prefill.problem import LOG2E, Problem, bits
from kernelpack.kernels.sparse_mla_prefill.rows import (
    NO_SCALES,
    Bytes,
    Floats,
    codes,
    decode,
    dequantise,
    scales,
)

Doubles = NDArray[np.float64]

OUT_ABSOLUTE, OUT_RELATIVE, OUT_COSINE = 8e-4, 3.01 / 128, 7e-6
LSE_ABSOLUTE, LSE_RELATIVE = 1e-6, 2.01 / 65536
SUMMED = 2.0**-22
"""fp32 sums of products, relative to their magnitudes: it counts where scores are far from lse."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attended:
    """What the tokens attend to, exactly: out [t, h, 512], lse and max_logits [t, h].

    `magnitude` [t, h] is what no score's sum of magnitudes of products exceeds.
    """

    out: Doubles
    lse: Doubles
    max_logits: Doubles
    magnitude: Doubles


def expected(problem: Problem, arrays: Arrays) -> dict[str, Expected]:
    """The outputs of a call and their tolerances; those that it asks for."""
    found = attend(problem, arrays)
    is_dead = np.isneginf(found.max_logits)
    bound = np.maximum(OUT_ABSOLUTE, OUT_RELATIVE * np.abs(found.out))
    bound[is_dead] = 0
    outputs = {"out": Expected(value=found.out, bound=bound, cosine=OUT_COSINE)}
    for name, value, wanted in (
        ("lse", found.lse, problem.lse),
        ("max_logits", found.max_logits, problem.max_logits),
    ):
        if wanted:
            outputs[name] = Expected(value=value, bound=_of_scores(value, found.magnitude))
    return outputs


def _of_scores(value: Doubles, magnitude: Doubles) -> Doubles:
    size = np.where(np.isinf(value), 0, np.abs(value))
    return np.maximum(np.maximum(LSE_ABSOLUTE, LSE_RELATIVE * size), SUMMED * magnitude)


def attend(problem: Problem, arrays: Arrays) -> Attended:
    """The oracle, a token at a time."""
    scale_log2e = float(np.uint32(bits(problem.scale * LOG2E)).view(np.float32))
    q, (rows, beside) = queries(problem, arrays["q"]), cache(problem, arrays)
    sink = arrays["sink"].astype(np.float64) if problem.sink else np.full(problem.h, -np.inf)
    found = Attended(
        out=np.zeros((problem.t, problem.h, LATENT)),
        lse=np.full((problem.t, problem.h), problem.dead_lse),
        max_logits=np.full((problem.t, problem.h), -np.inf),
        magnitude=np.zeros((problem.t, problem.h)),
    )
    one = _native if problem.is_native else _exact
    for token in range(problem.t):
        chose = chosen(problem, arrays, token)
        if len(chose):
            args = (problem.row, rows[chose], beside[chose] if len(beside) else NO_SCALES)
            _note(found, token, one(q[token], *args, scale_log2e, sink))
            longest = np.linalg.norm(decode(*args), axis=1).max()
            size = np.linalg.norm(q[token], axis=1)
            found.magnitude[token] = scale_log2e / LOG2E * size * longest
    return found


def _note(found: Attended, token: int, result: Result) -> None:
    found.out[token], found.lse[token] = result.out, result.lse
    found.max_logits[token] = result.max_logits


def _native(
    q: Doubles, row: RowFormat, rows: Bytes, beside: Floats, scale_log2e: float, sink: Doubles
) -> Result:
    """One token, its rows multiplied as they are."""
    keys, of_rows = codes(row, rows), scales(row, rows, beside)[:, :1]
    return native.attend(native.Queries.of(q, row), keys, of_rows, scale_log2e, sink)


def _exact(
    q: Doubles, row: RowFormat, rows: Bytes, beside: Floats, scale_log2e: float, sink: Doubles
) -> Result:
    """One token, its rows as bf16."""
    k = dequantise(row, rows, beside)
    x = scale_log2e / LOG2E * q @ k.T
    largest = x.max(1)
    p = np.exp(x - largest[:, None])
    total = p.sum(1)
    with np.errstate(over="ignore"):
        denominator = total + np.exp(sink - largest)
    return Result(
        out=p @ k[:, :LATENT] / denominator[:, None],
        lse=largest + np.log(total),
        max_logits=largest,
    )


def cache(problem: Problem, arrays: Arrays) -> tuple[Bytes, Floats]:
    """The rows [kv_rows, bytes], and the scales beside them [kv_rows, scales of a row]."""
    kv = arrays["kv"].view(np.uint8).reshape(-1)
    rows = kv[: problem.kv_rows * problem.row.bytes].reshape(-1, problem.row.bytes)
    if not problem.kv_scales:
        return rows, NO_SCALES
    return rows, arrays["kv_scales"].reshape(-1, problem.kv_scales)


def queries(problem: Problem, q: NDArray[Any]) -> Doubles:
    """The tokens [t, h, d] out of memory with the problem's strides."""
    flat = q.reshape(-1)
    token, head = problem.q_token_stride, problem.q_head_stride
    at = (
        np.arange(problem.t)[:, None, None] * token
        + np.arange(problem.h)[:, None] * head
        + np.arange(problem.row.width)
    )
    return np.asarray(flat[at].astype(np.float64))


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
