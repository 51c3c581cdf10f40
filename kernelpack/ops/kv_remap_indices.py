"""Logical indices of tokens to the encoded ones that sparse kernels take.

    out[t, j] = block * page + offset of token indices[t, j] of the sequence of t

It is between an indexer, which says which tokens of a sequence to attend, and
`sparse_mla_prefill`. A negative index passes as it is; one beyond the storage becomes -1.
One launch and no wait for the GPU. numpy arrays are computed on the CPU emulator.
"""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_remap_indices.problem import ABIS, KERNEL, Problem
from kernelpack.kv import Continuous, Operand, Paged
from kernelpack.load.library import Library
from kernelpack.ops import kv_operand
from kernelpack.ops.arrays import Array
from kernelpack.ops.checks import check_array, require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.kv_operand import INTEGERS
from kernelpack.ops.op import op
from kernelpack.ops.operation import Form, Made, Operation, Read, Request, Traced, Views
from kernelpack.ops.spread import spread, spread_of
from kernelpack.ops.stream import Stream


def _located(kv: Operand, views: Views) -> Views:
    check_array(views["indices"], "indices", "t k", INTEGERS, KERNEL)
    apart = {"indices": spread(views["indices"], "indices", KERNEL)}
    return {**kv_operand.looked_up(kv, kv_operand.located(kv, views)), **apart}


def _problem(views: Views, kv: Operand) -> Problem:
    """The numbers of a call, after the rules about sides hold."""
    indices = spread_of(views["indices"])
    t, k = indices.sides
    if "token_sequences" in views:
        found = views["token_sequences"].shape[0]
        require(found == t, f"`token_sequences` must have {t} elements, not {found}", KERNEL)
    problem = Problem(
        t=t,
        k=k,
        indices_stride=indices.steps[0],
        lookup=kv_operand.lookup_of(kv, views),
        has_token_sequences="token_sequences" in views,
    )
    problem.check()
    return problem


def _of_any_layer(kv: Operand) -> Operand:
    """The storage with a layer named: rows of no layer are read, and all lie alike."""
    if isinstance(kv, Paged | Continuous) and kv.layer is None:
        return replace(kv, layer=0)
    return kv


def _made(problem: Problem) -> dict[str, Made]:
    return {"out": Made(shape=(problem.t, problem.k), dtype=DType.I32)}


def _traced(indices: Array, *_: Array, **_given: Array) -> Traced:
    return [(tuple(indices.shape), DType.I32)]


def _check_values(problem: Problem, read: Read) -> None:
    """Report sequences, blocks and places that are not there; the kernel makes -1 of theirs."""
    lookup = problem.lookup
    if problem.has_token_sequences:
        _report("token_sequences", read("token_sequences"), lookup.sequences)
    else:
        rule = f"`token_sequences` must be given for {problem.t} tokens of {lookup.sequences}"
        require(problem.t <= lookup.sequences, f"{rule} sequences", KERNEL)
    if lookup.has_offsets:
        _check_offsets(read("offsets").astype(np.int64), lookup.blocks * lookup.page)
    memory, sides = read("indices").view(np.int32), (problem.t, problem.k)
    places = np.lib.stride_tricks.as_strided(memory, sides, (4 * problem.indices_stride, 4))
    _report("indices", places, lookup.pages * lookup.page, least=-1)
    if lookup.has_table and lookup.sequences:
        memory = read("table").view(np.uint32)
        steps = (4 * lookup.table_stride, 4)
        sides = (lookup.sequences, lookup.pages)
        _report("table", np.lib.stride_tricks.as_strided(memory, sides, steps), lookup.blocks)


def _check_offsets(offsets: NDArray[np.int64], rows: int) -> None:
    """Refuse sequences that do not lie one after another in the storage.

    Raises:
        ProblemError: shows them.

    """
    rises = offsets.min() >= 0 and (np.diff(offsets) >= 0).all() and offsets[-1] <= rows
    rule = f"`offsets` must rise to at most the {rows} rows, not {offsets.tolist()}"
    require(bool(rises), rule, KERNEL)


def _report(name: str, values: NDArray[Any], end: int, least: int = 0) -> None:
    """Refuse a number that names nothing; as u32 what is negative is large.

    Raises:
        ProblemError: names the array, the place and the number.

    """
    numbers = (values.astype(np.int64) - least) & 0xFFFFFFFF
    for at in np.argwhere(numbers >= end - least)[:1].tolist():
        where = ", ".join(map(str, at))
        rule = f"`{name}[{where}]` must be {least} to {end - 1}, not {int(values[tuple(at)])}"
        raise ProblemError(rule, where=KERNEL)


@op(
    Operation(
        kernel=KERNEL,
        abis=ABIS,
        inputs={
            "indices": Form(dims="entries", dtypes=INTEGERS),
            "token_sequences": Form(dims="t", dtypes=INTEGERS),
            "kv": Form(dims="bytes", dtypes=(DType.U8,)),
            **kv_operand.LOOKUP,
        },
        outputs={"out": Form(dims="t k", dtypes=(DType.I32,))},
        unread=frozenset(("kv",)),
        optional=frozenset(("token_sequences", "table", "offsets")),
        made=_made,
        check_values=_check_values,
        takes_any_values=True,
        traced=_traced,
    )
)
def kv_remap_indices(
    indices: Array,
    kv: Operand,
    *,
    token_sequences: Array = None,
    out: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
    debug: bool = False,
) -> Request[Problem, Array]:
    """Remap; returns the output at once, its values follow on the stream.

    Args:
        indices: places of tokens in their sequence [t, k], i32 or u32; any numbers, -1 by
            custom for none. Query tokens may lie more than k entries apart.
        kv: the storage, an operand of `kernelpack.kv` with what says whose rows are whose: the
            table of `Paged` and `Continuous`, the offsets of `Ragged`. Rows are not read.
        token_sequences: the sequence of each query token [t], i32 or u32; without it token t is
            of sequence t, as in a decode step.
        out: the output [t, k], i32; without it a new one is made.
        stream: a handle, or a stream of any framework; without it the legacy default stream.
        library: the kernels to choose from; without it those of the installed bundle.
        debug: read indices, sequences, table and offsets back first, and refuse those that name
            nothing and are not -1; waits for the GPU.

    With numpy arrays the op computes on the emulator, returns when the values are there, and
    makes a numpy array where no output is given.

    Raises:
        ProblemError: an argument is not what the list above says.
        SelectionError: the library holds no kernel for this problem and device.
        CaptureError: first use of a kernel, or a new output, while a stream is captured.
        BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
        EmulationError: on the emulator: the kernel broke a rule.

    """
    rule = f"`kv` must be an operand of kernelpack.kv, not a {type(kv).__name__}"
    require(isinstance(kv, Operand), rule, KERNEL)
    table, offsets = kv_operand.lookup_arrays(kv)
    kv = _of_any_layer(kv)
    return Request(
        inputs={
            "indices": indices,
            "token_sequences": token_sequences,
            "kv": kv.rows,
            "table": table,
            "offsets": offsets,
        },
        outputs={"out": out},
        problem=lambda views, _outs: _problem(views, kv),
        located=partial(_located, kv),
        stream=stream,
        library=library,
        debug=debug,
    )


@kv_remap_indices.of_tensors
def _of_tensors(
    indices: Array,
    kv: Array,
    table: Array,
    *,
    token_sequences: Array = None,
    out: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
) -> Request[Problem, Array]:
    """The op, of blocks [blocks, page, .., row] and their table."""
    return kv_remap_indices.request(
        indices,
        Paged(kv, table=table),
        token_sequences=token_sequences,
        out=out,
        stream=stream,
        library=library,
    )
