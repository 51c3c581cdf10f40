"""Which key is where, and which split has it: the model of `kp/mla/decode_keys.cuh`.

Sparse: position p is entry p of the token's list; the second source's entries begin at the next
multiple of SOURCE_TILE. Dense: position p is token p of the sequence. A split has whole UNITs of
positions, as many as the others or, the last ones, fewer. Lengths, offsets, entries and tables may
hold any numbers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.mla_decode_attention.problem import Lists, Pool, Problem

Whole = NDArray[np.int64]

SOURCE_TILE = 64
UNIT = 128
NO_KEYS = np.zeros(0, np.int64)


def rows_of(problem: Problem, arrays: Arrays, token: int) -> Whole:
    """The row of each position of a token; -1 where none counts.

    Rows of the second cache are numbered after those of the first.
    """
    sequence, place, added = standing(problem, arrays, token)
    if sequence < 0:
        return NO_KEYS
    if problem.lists is None:
        return _dense(problem, arrays, sequence, place + 1 if problem.causal else added)
    of = sequence if problem.lengths_of_sequences else token
    length = _length(problem.lists, arrays["topk_lengths"], of)
    if problem.sequences.has_lengths:
        length = min(length, _cached(arrays, sequence) + added)
    first = _listed(problem.lists, problem.pool, arrays["indices"], token, length)
    if problem.extra_lists is None or problem.extra_pool is None:
        return first
    others = _length(problem.extra_lists, arrays["extra_topk_lengths"], of)
    if not others:
        return first
    gap = np.full(-length % SOURCE_TILE, -1)
    second = _listed(
        problem.extra_lists, problem.extra_pool, arrays["extra_indices"], token, others
    )
    return np.concatenate([first, gap, np.where(second < 0, -1, second + problem.pool.rows)])


def standing(problem: Problem, arrays: Arrays, token: int) -> tuple[int, int, int]:
    """A token's sequence, its place among that one's tokens, and how many those are.

    Sequence -1: it has none, as the tokens that pad a graph.
    """
    if not problem.sequences.has_offsets:
        each = problem.tokens_of_each
        return token // each, token % each, each
    offsets = arrays["row_offsets"].astype(np.int64)
    after = int((offsets[:-1] <= token).sum())
    if after == 0 or not offsets[after - 1] <= token < offsets[after]:
        return -1, 0, 0
    begin, end = int(offsets[after - 1]), int(offsets[after])
    return after - 1, token - begin, end - begin


def split(problem: Problem, positions: int, number: int) -> slice:
    """The positions of a split: even shares of units, but none of few."""
    units = -(-positions // UNIT)
    each = max(-(-units // problem.partitions), problem.split_units)
    first = min(number * each, units)
    return slice(first * UNIT, min(first + each, units) * UNIT)


def _cached(arrays: Arrays, sequence: int) -> int:
    return max(0, int(arrays["cache_lengths"][sequence]))


def _dense(problem: Problem, arrays: Arrays, sequence: int, seen: int) -> Whole:
    of, pool = problem.sequences, problem.pool
    length = min(_cached(arrays, sequence) + seen, of.pages * pool.page)
    place = np.arange(length)
    table = arrays["table"].reshape(-1).astype(np.uint32).astype(np.int64)
    block = table[sequence * of.table_stride + place // pool.page]
    return np.where(block < pool.blocks, block * pool.block_stride + place % pool.page, -1)


def _length(lists: Lists, lengths: NDArray[Any], of: int) -> int:
    return int(np.clip(lengths[of], 0, lists.topk)) if lists.has_lengths else lists.topk


def _listed(lists: Lists, pool: Pool, indices: NDArray[Any], token: int, length: int) -> Whole:
    first = token * lists.stride
    entries = indices.reshape(-1)[first : first + length].astype(np.int64)
    block, offset = np.divmod(entries, pool.page)
    is_valid = (entries >= 0) & (entries < pool.entries)
    return np.where(is_valid, block * pool.block_stride + offset, -1)
