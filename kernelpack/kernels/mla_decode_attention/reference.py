"""The oracle of the decode attention: sparse prefill's, over the keys of each split.

    partial_out[s] = softmax over split s · v       partial_lse[s] = log2(sum exp(x) of split s)

A split without positions has partial_lse -inf, and its partial_out is left; of one whose positions
all name no row partial_out is 0. Rows of the two caches are taken for rows of one. Tolerances are
those of FlashMLA's decode tests (tests/test_flash_mla_sparse_decoding.py there); an lse's are as in
prefill.
"""

from dataclasses import replace

import numpy as np

from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.mla_decode_attention.positions import Whole, rows_of, split
from kernelpack.kernels.mla_decode_attention.problem import Problem
from kernelpack.kernels.sparse_mla_prefill import reference as prefill
from kernelpack.kernels.sparse_mla_prefill.problem import LOG2E, is_native
from kernelpack.kernels.sparse_mla_prefill.problem import Problem as Prefill
from kernelpack.kernels.sparse_mla_prefill.reference import Attended, Outputs
from kernelpack.kernels.sparse_mla_prefill.weights import Tiles

OUT_ABSOLUTE, OUT_RELATIVE, OUT_COSINE = 1e-3, 2.01 / 128, 5e-6


def expected(problem: Problem, arrays: Arrays) -> Outputs:
    """The outputs of a call and their tolerances; those that it asks for."""
    keys = [rows_of(problem, arrays, token) for token in range(problem.t)]
    expect = _partial if problem.is_partial else _whole
    return prefill.on_families(
        is_native(problem.row, problem.kv_scales),
        lambda tiles: expect(problem, arrays, keys, tiles),
    )


def _whole(problem: Problem, arrays: Arrays, keys: list[Whole], tiles: Tiles) -> Outputs:
    whole = _as_prefill(problem, keys)
    found = prefill.attend(whole, _arrays_of(problem, arrays, keys), tiles)
    outputs = {"out": _out(found)}
    if problem.lse:
        outputs["lse"] = prefill.tolerated(whole, found)["lse"]
    return outputs


def _partial(problem: Problem, arrays: Arrays, keys: list[Whole], tiles: Tiles) -> Outputs:
    of_one = replace(problem, sink=False, dead_lse=-np.inf)
    outs, scores = [], []
    for number in range(problem.partitions):
        own = [rows[split(problem, len(rows), number)] for rows in keys]
        whole = _as_prefill(of_one, own)
        found = prefill.attend(whole, _arrays_of(problem, arrays, own), tiles)
        found.out[[not len(rows) for rows in own]] = np.nan
        outs.append(_out(found))
        scores.append(prefill.tolerated(whole, found)["lse"])
    return {
        "partial_out": _joined(outs, 1),
        "partial_lse": _joined(scores, LOG2E),
    }


def _joined(parts: list[Expected], unit: float) -> Expected:
    """The expected outputs of each split, one after the other."""
    return Expected(
        value=np.stack([part.value for part in parts]) * unit,
        bound=np.stack([part.bound for part in parts]) * unit,
        cosine=max(part.cosine for part in parts),
    )


def _out(found: Attended) -> Expected:
    bound = np.maximum(OUT_ABSOLUTE, OUT_RELATIVE * np.abs(found.out))
    return prefill.expected_out(found, bound, OUT_COSINE)


def _as_prefill(problem: Problem, keys: list[Whole]) -> Prefill:
    """The call as one of sparse prefill, over one block that has the rows of both caches."""
    rows = problem.pool.rows + (problem.extra_pool.rows if problem.extra_pool else 0)
    longest = max(1, *(len(of_token) for of_token in keys))
    return Prefill(
        t=problem.t,
        h=problem.h,
        row=problem.row,
        topk=longest,
        indices_stride=longest,
        page=rows,
        blocks=1,
        block_stride=rows,
        q_token_stride=problem.q_token_stride,
        q_head_stride=problem.q_head_stride,
        scale=problem.scale,
        dead_lse=problem.dead_lse,
        lengths=False,
        sink=problem.sink,
        kv_scales=problem.kv_scales,
    )


def _arrays_of(problem: Problem, arrays: Arrays, keys: list[Whole]) -> Arrays:
    indices = np.full((problem.t, max(1, *(len(rows) for rows in keys))), -1, np.int64)
    for token, rows in enumerate(keys):
        indices[token, : len(rows)] = rows
    kv, scales = arrays["kv"], arrays["kv_scales"]
    if problem.extra_pool:
        kv = np.concatenate([kv.reshape(-1), arrays["extra_kv"].reshape(-1)])
        scales = np.concatenate([scales.reshape(-1), arrays["extra_kv_scales"].reshape(-1)])
    q, sink = arrays["q"], arrays["sink"]
    return {"q": q, "sink": sink, "kv": kv, "kv_scales": scales, "indices": indices}
