"""Messages of `debug` about a decode step's keys: lengths, entries, pages, each by place."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.kernels.mla_decode_attention.positions import standing
from kernelpack.kernels.mla_decode_attention.problem import KERNEL, Lists, Pool, Problem
from kernelpack.ops.appended import check_row_offsets
from kernelpack.ops.operation import Read

Arrays = Mapping[str, NDArray[Any]]

MOST = 2**31 - 1


def check_keys(problem: Problem, read: Read) -> None:
    """Refuse numbers that the kernel clamps or passes over, but for an entry of -1.

    Raises:
        ProblemError: names the array, the place, what is there and what may be.

    """
    of, sources = problem.sequences, _sources(problem)
    arrays: dict[str, NDArray[Any]] = {}
    if of.has_offsets:
        arrays["row_offsets"] = read("row_offsets")
        check_row_offsets(arrays["row_offsets"], problem.t, KERNEL)
    if of.has_lengths:
        arrays["cache_lengths"] = _lengths("cache_lengths", read, MOST)
    for name, (lists, _) in sources.items():
        arrays[f"{name}indices"] = read(f"{name}indices").view(np.int32)
        if lists.has_lengths:
            arrays[f"{name}topk_lengths"] = _lengths(f"{name}topk_lengths", read, lists.topk)
    if of.pages:
        arrays["table"] = read("table").view(np.int32)
    for token in range(problem.t):
        sequence, place, added = standing(problem, arrays, token)
        if sequence >= 0 and sources:
            _check_entries(problem, arrays, token, sequence, added)
        elif sequence >= 0:
            _check_pages(problem, arrays, sequence, place + 1 if problem.causal else added)


def _sources(problem: Problem) -> dict[str, tuple[Lists, Pool]]:
    """Lists and their caches, by what their arrays' names begin with."""
    pairs = {"": (problem.lists, problem.pool), "extra_": (problem.extra_lists, problem.extra_pool)}
    return {name: (lists, pool) for name, (lists, pool) in pairs.items() if lists and pool}


def _lengths(name: str, read: Read, most: int) -> NDArray[np.int32]:
    found = read(name).view(np.int32)
    for at in np.flatnonzero((found < 0) | (found > most))[:1].tolist():
        raise ProblemError(f"`{name}[{at}]` must be 0 to {most}, not {found[at]}", where=KERNEL)
    return found


def _check_entries(problem: Problem, arrays: Arrays, token: int, sequence: int, added: int) -> None:
    """Refuse an entry that counts and names no row."""
    for name, (lists, pool) in _sources(problem).items():
        at = sequence if problem.lengths_of_sequences else token
        count = int(arrays[f"{name}topk_lengths"][at]) if lists.has_lengths else lists.topk
        if not name and problem.sequences.has_lengths:
            count = min(count, int(arrays["cache_lengths"][sequence]) + added)
        first = token * lists.stride
        entries = arrays[f"{name}indices"][first : first + count]
        for j in np.flatnonzero((entries < -1) | (entries >= pool.entries))[:1].tolist():
            what = f"`{name}indices[{token}, {j}]` must be -1 to {pool.entries - 1}"
            raise ProblemError(f"{what}, not {entries[j]}", where=KERNEL)


def _check_pages(problem: Problem, arrays: Arrays, sequence: int, seen: int) -> None:
    """Refuse keys that the table has no page for, or one that is not a block."""
    of, pool = problem.sequences, problem.pool
    keys = int(arrays["cache_lengths"][sequence]) + seen
    room = of.pages * pool.page
    if keys > room:
        what = f"sequence {sequence} has {keys} keys, and `table` has pages for {room}"
        raise ProblemError(what, where=KERNEL)
    first = sequence * of.table_stride
    blocks = arrays["table"][first : first + -(-keys // pool.page)] if of.pages else np.zeros(0)
    for page in np.flatnonzero((blocks < 0) | (blocks >= pool.blocks))[:1].tolist():
        what = f"`table[{sequence}, {page}]` must be 0 to {pool.blocks - 1}, not {blocks[page]}"
        raise ProblemError(what, where=KERNEL)
