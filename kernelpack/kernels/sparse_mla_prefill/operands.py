"""The arrays of a call as numbers: tokens, and the rows that they attend to."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.sparse_mla_prefill.problem import Problem
from kernelpack.kernels.sparse_mla_prefill.rows import (
    NO_SCALES,
    Bytes,
    Doubles,
    Floats,
    codes,
    dequantise,
    scales,
)
from kernelpack.kernels.sparse_mla_prefill.weights import Places

NO_ROWS = np.zeros(0, np.int64)
STEP = 16
"""Columns of an MMA."""


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

    def keys_at(self, chose: NDArray[np.int64], places: Places) -> "Keys":
        """Rows of the cache that a token has at places of its list."""
        at = np.searchsorted(self.numbers, chose)
        return Keys(
            numbers=self.keys[at], scales=self.scales[at], sizes=self.sizes[at], places=places
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The keys of a token: rows of a pool, and their places in the token's list [n]."""

    numbers: Doubles
    scales: Doubles
    sizes: Doubles
    places: Places


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
    return placed(problem, arrays, token)[0]


def placed(problem: Problem, arrays: Arrays, token: int) -> tuple[NDArray[np.int64], Places]:
    """The same, and the places of those entries in the token's list."""
    length = problem.topk
    if problem.lengths:
        length = int(np.clip(arrays["topk_lengths"][token], 0, problem.topk))
    first = token * problem.indices_stride
    entries = arrays["indices"].reshape(-1)[first : first + length].astype(np.int64)
    places = np.flatnonzero((entries >= 0) & (entries < problem.entries))
    block, offset = np.divmod(entries[places], problem.page)
    return block * problem.block_stride + offset, places
