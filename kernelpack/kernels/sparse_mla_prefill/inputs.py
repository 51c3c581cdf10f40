"""Inputs of a case, made from its seed.

Everything that a kernel must not use is poison: rows that no entry names, entries after topk,
gaps of q.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.kv_operand.rows import RowFormat
from kernelpack.kernels.sparse_mla_prefill.choices import CHOICES, LENGTHS, Indices, Random
from kernelpack.kernels.sparse_mla_prefill.operands import chosen
from kernelpack.kernels.sparse_mla_prefill.problem import Problem
from kernelpack.kernels.sparse_mla_prefill.rows import BF16_576, Bytes, Rows, encode
from kernelpack.kernels.sparse_mla_prefill.values import VALUES, Floats

SINKS = (0.5, -np.inf, np.inf, -3.0, 2.0, -1e38)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem to verify, with what its inputs hold.

    Attributes:
        name: what people call it.
        t, h, topk, page, blocks, scale: as of Problem.
        row: the layout of rows.
        kv_scales: scales of a row in an array beside the rows; 0: none.
        layers: layers of the cache; blocks of one layer lie that many blocks apart.
        layer: which of them the call reads.
        spare: entries of a token after topk; they hold valid indices of rows that are NaN.
        indices: how entries are chosen, a key of `CHOICES`.
        lengths: how many of them count, a key of `LENGTHS`.
        values: what q and rows hold, a key of `VALUES`.
        q_scales: whether q comes as rows of e4m3 with their scales.
        sink: whether heads have sinks: finite ones, and infinities of both signs.
        outputs: whether lse and max_logits are asked for.
        dead_lse: lse of a row without keys.
        q_gap: poison between heads of q, elements of bf16; tokens lie three times that apart.
        seed: of what is random.

    """

    name: str
    t: int = 2
    h: int = 16
    topk: int = 128
    page: int = 64
    blocks: int = 5
    row: RowFormat = BF16_576
    kv_scales: int = 0
    layers: int = 1
    layer: int = 0
    spare: int = 0
    indices: str = "random"
    lengths: str = "none"
    values: str = "normal"
    q_scales: bool = False
    sink: bool = False
    outputs: bool = True
    dead_lse: float = float("inf")
    q_gap: int = 0
    scale: float = 0.5
    seed: int = 0

    @property
    def kind(self) -> str:
        """The name without its rows, where it begins with them."""
        rows = Rows(row=self.row, kv_scales=self.kv_scales, q_scales=self.q_scales)
        return self.name.removeprefix(f"{rows}_")

    @property
    def problem(self) -> Problem:
        """The numbers alone."""
        gap = self.q_gap * (DType.BF16.bits // 8 if self.q_scales else 1)
        head = (self.row.bytes if self.q_scales else self.row.width) + gap
        return Problem(
            t=self.t,
            h=self.h,
            row=self.row,
            topk=self.topk,
            indices_stride=self.topk + self.spare,
            page=self.page,
            blocks=self.blocks,
            block_stride=self.page * self.layers,
            q_token_stride=head * self.h + 3 * gap,
            q_head_stride=head,
            scale=self.scale,
            dead_lse=self.dead_lse,
            lse=self.outputs,
            max_logits=self.outputs,
            lengths=self.lengths != "none",
            sink=self.sink,
            kv_scales=self.kv_scales,
            q_scales=self.q_scales,
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The problem as the manifest names it."""
        return self.problem.sizes


def inputs(case: Case) -> Arrays:
    """Arrays of a case; those it does not have are empty."""
    random, problem = np.random.default_rng(case.seed), case.problem
    entries = CHOICES[case.indices](random, problem)
    lengths = LENGTHS[case.lengths](random, problem)
    q, rows = VALUES[case.values](random, problem, entries)
    q, q_scales = _queries(problem, q)
    arrays = {
        "q": _laid_out(q, problem),
        "q_scales": q_scales,
        "indices": _with_spare(random, problem, entries),
        "topk_lengths": lengths.astype(np.int32),
        "sink": np.resize(np.array(SINKS, np.float32), problem.h if case.sink else 0),
    }
    used = _used(problem, arrays)
    arrays["kv"], arrays["kv_scales"] = _cache(problem, rows, used)
    return arrays


def steering(case: Case) -> Arrays:
    """The entries of each token, and how many of them count."""
    random, problem = np.random.default_rng(case.seed), case.problem
    entries = CHOICES[case.indices](random, problem)
    lengths = LENGTHS[case.lengths](random, problem)
    listed = _with_spare(random, problem, entries)
    return {"indices": listed, "topk_lengths": lengths.astype(np.int32)}


def _queries(problem: Problem, q: Floats) -> tuple[NDArray[Any], Floats]:
    """Heads as they come, and their scales: of bf16, which has none, or as rows of e4m3."""
    if not problem.q_scales:
        return q.astype(DType.BF16.numpy), np.zeros((0, problem.h), np.float32)
    made, scales = encode(problem.row, q.reshape(-1, problem.row.width), 1)
    heads = made.view(DType.E4M3.numpy).reshape(problem.t, problem.h, problem.row.bytes)
    return heads, scales.reshape(problem.t, problem.h)


def _laid_out(q: NDArray[Any], problem: Problem) -> NDArray[Any]:
    """Tokens in memory of the problem's strides, NaN between heads and tokens."""
    size = q_elements(problem)
    flat = np.full(size * q.itemsize, 0xFF, np.uint8).view(q.dtype)
    strides = (problem.q_token_stride, problem.q_head_stride, 1)
    steps = tuple(step * q.itemsize for step in strides)
    np.lib.stride_tricks.as_strided(flat, q.shape, steps)[...] = q
    return flat


def q_elements(problem: Problem) -> int:
    """Elements from q's first to its last, and one."""
    tokens = max(0, problem.t - 1) * problem.q_token_stride
    return tokens + (problem.h - 1) * problem.q_head_stride + problem.q_width


def _used(problem: Problem, arrays: Arrays) -> Indices:
    """The rows that some token attends to."""
    listed = [chosen(problem, arrays, token) for token in range(problem.t)]
    return np.unique(np.concatenate(listed)) if listed else np.zeros(0, np.int64)


def _cache(problem: Problem, values: Floats, used: Indices) -> tuple[Bytes, Floats]:
    """The layer's memory and its scales; a row that nobody attends to is NaN: all bits set."""
    rows = np.full((problem.kv_rows, problem.row.bytes), 0xFF, np.uint8)
    beside = np.full((problem.kv_rows, problem.kv_scales), np.nan, np.float32)
    entry_of = np.full(problem.kv_rows, -1, np.int64)
    block, offset = np.divmod(np.arange(problem.entries), problem.page)
    entry_of[block * problem.block_stride + offset] = np.arange(problem.entries)
    rows[used], beside[used] = encode(problem.row, values[entry_of[used]], problem.kv_scales)
    return rows, beside


def _with_spare(random: Random, problem: Problem, entries: Indices) -> NDArray[np.int32]:
    """The entries in memory of the problem's stride; nothing after the last token's."""
    spare = problem.indices_stride - problem.topk
    after = random.integers(0, problem.entries, (problem.t, spare))
    listed = np.concatenate([entries, after], 1).astype(np.int32).reshape(-1)
    return listed[: listed.size - spare]
