"""A decode step of MLA before it attends, in one launch.

    out[t, h]      = w_uk[h] q[t, h, :128], rope(q[t, h, 128:])        queries, absorbed and rotated
    row of token t = rmsnorm(new_kv[t, :512]), rope(new_kv[t, 512:])   in the format of the cache

Each of the three kinds of work may be left out, by leaving out what it needs: products without
`w_uk`, rotation of queries without `freqs`, rows without `new_kv`. Queries are quantised on the
way, one scale each token and head, as the weights have a scale each block of 128 by 128. Nothing
waits for the GPU, and lengths, positions and slots are read on it, so that one captured graph
serves any. numpy arrays are computed on the CPU emulator. See `kernels/mla_decode_absorb/reference`
for what is computed.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.mla_decode_absorb.places import find
from kernelpack.kernels.mla_decode_absorb.problem import ABIS, KERNEL, Problem
from kernelpack.kv import Continuous, Operand, Paged, operand
from kernelpack.load.library import Library
from kernelpack.ops import kv_operand
from kernelpack.ops.absorbed import Settings, located, problem_of
from kernelpack.ops.appended import check_apart, check_row_offsets
from kernelpack.ops.arrays import Array
from kernelpack.ops.checks import require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.kv_operand import INTEGERS
from kernelpack.ops.mla_decode_project import check_scales
from kernelpack.ops.op import op
from kernelpack.ops.operation import Form, Made, Operation, Read, Request
from kernelpack.ops.stream import Stream


def _made(problem: Problem) -> dict[str, Made]:
    made, rows = {}, problem.kv_rows
    if problem.h:
        made["out"] = Made(shape=(problem.t, problem.h, problem.width), dtype=DType.BF16)
    if problem.row:
        made["kv"] = Made(shape=(rows * problem.row.bytes,), dtype=DType.U8)
    if problem.scales_per_row:
        made["kv_scales"] = Made(shape=(rows * problem.scales_per_row,), dtype=DType.U32)
    return made


def _check_values(problem: Problem, read: Read) -> None:
    """Report scales that are not numbers, and tokens without a position or a row."""
    if problem.absorbs:
        check_scales("w_uk_scale", read, KERNEL)
    if not (problem.rotates or problem.appends):
        return
    names = _PLACES[:2] if problem.position_words else _PLACES[2:]
    arrays = {name: np.zeros(0, np.uint32) for name in _PLACES}
    used = {"slots": problem.slot_words, "batch": problem.has_batch}
    used["table"] = problem.lookup.has_table
    given = {name: read(name) for name in names if used.get(name, True)}
    if not problem.position_words:
        _check_offsets(problem, given)
    arrays |= {name: array.view(np.uint32) for name, array in given.items()}
    places = find(problem, arrays)
    for token in np.flatnonzero(places.positions < 0)[:1].tolist():
        most = problem.most_positions
        rule = f"token {token} must have a position from 0 to {most - 1}, by what was given"
        raise ProblemError(rule, where=KERNEL, hint="debug=False passes over such tokens")
    if not problem.appends:
        return
    bad = np.flatnonzero(places.rows < 0)[:1].tolist()
    for token in bad:
        rule = f"token {token}, at position {places.positions[token]}, has no row in the cache"
        raise ProblemError(rule, where=KERNEL, hint="debug=False passes over such tokens")
    check_apart(places.rows, "`slots`" if problem.slot_words else "`table`", KERNEL)


def _check_offsets(problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a number of sequences that are not there, and offsets that do not rise."""
    offsets = arrays["row_offsets"]
    if problem.has_batch:
        count, most = int(arrays["batch"][0]), len(offsets) - 1
        require(0 <= count <= most, f"`batch` must be 0 to {most}, not {count}", KERNEL)
        offsets = offsets[: count + 1]
    check_row_offsets(offsets, problem.t, KERNEL)


_PLACES = ("positions", "slots", "row_offsets", "lengths", "batch", "table")
"""The places of tokens: one by one, or by sequence."""


@op(
    Operation(
        kernel=KERNEL,
        abis=ABIS,
        inputs={
            "q": Form(dims="elements", dtypes=(DType.BF16,)),
            "w_uk": Form(dims="h 512 128", dtypes=(DType.E4M3, DType.U8)),
            "w_uk_scale": Form(dims="h blocks", dtypes=(DType.FP32,)),
            "freqs": Form(dims="positions 64", dtypes=(DType.FP32,)),
            "new_kv": Form(dims="elements", dtypes=(DType.BF16,)),
            "gamma": Form(dims="bytes", dtypes=(DType.U8,)),
            "row_offsets": Form(dims="sequences+1", dtypes=INTEGERS),
            "lengths": Form(dims="sequences", dtypes=INTEGERS),
            "batch": Form(dims="1", dtypes=INTEGERS),
            "slots": Form(dims="words", dtypes=(DType.U32,)),
            "positions": Form(dims="words", dtypes=(DType.U32,)),
            "table": kv_operand.LOOKUP["table"],
        },
        outputs={
            "out": Form(dims="t h 576", dtypes=(DType.BF16,)),
            "kv": Form(dims="bytes", dtypes=(DType.U8,)),
            "kv_scales": Form(dims="words", dtypes=(DType.U32,)),
        },
        optional=frozenset(
            {"q", "w_uk", "w_uk_scale", "freqs", "new_kv", "gamma", "kv", "kv_scales", *_PLACES}
        ),
        made=_made,
        check_values=_check_values,
        takes_any_values=True,
        in_place=frozenset(("kv", "kv_scales")),
    )
)
def mla_decode_absorb(
    q: Array = None,
    w_uk: Array = None,
    w_uk_scale: Array = None,
    *,
    freqs: Array = None,
    new_kv: Array = None,
    gamma: Array = None,
    kv: Operand | None = None,
    epsilon: float = 1e-6,
    row_offsets: Array = None,
    batch: Array = None,
    positions: Array = None,
    slots: Array = None,
    power_of_two: bool = False,
    out: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
    debug: bool = False,
) -> Request[Problem, Array]:
    """Absorb, rotate and append; returns `out` at once, values and rows follow on the stream.

    Args:
        q: queries [t, h, 192], bf16, or [t, h, 128] without rope values. Tokens and heads may be
            any multiples of 8 elements apart. None: rows are written, and nothing is returned.
        w_uk: weights of each head [h, 512, 128], e4m3 or its bytes. None: `out` keeps what it has
            in its first 512 columns.
        w_uk_scale: what each block of 128 by 128 is to be multiplied by [h, 4, 1], fp32.
        freqs: cosine and sine of each pair of rope values, side by side (c0, s0, c1, s1, …; a
            pair is values 2i and 2i + 1), for each position [positions, 64], fp32. None: `out`
            keeps what it has from column 512 on.
        new_kv: a row of each token before norm and rotation [t, 576], bf16, or [t, 512] for rows
            without rope. Tokens may be any multiple of 8 elements apart. None: no row is written.
        gamma: weights of the norm of the first 512 values [512], bf16 or fp32.
        kv: the cache, an operand of `kernelpack.kv`. Its `scales` are written too; its `lengths`
            are those before this step.
        epsilon: added to the mean of squares.
        row_offsets: the first token of each sequence, then their number [sequences + 1], i32 or
            u32. Tokens follow those that `kv.lengths` counts, in the pages of `kv.table`.
        batch: how many of the sequences count [1], i32 or u32, on the device: what comes after
            them in offsets, lengths and table may be any numbers. None: all count.
        positions: in place of row_offsets: the position of each token [t], i32 or i64.
        slots: with positions: the row of each token [t], i32 or i64: an encoded index,
            `block * page + offset`. No two may be the same.
        power_of_two: whether scales of rows are rounded up to powers of two.
        out: the output [t, h, 576], or [t, h, 512] without rope values, bf16; without it a new one
            is made.
        stream: a handle, or a stream of any framework; without it the legacy default stream.
        library: the kernels to choose from; without it those of the installed bundle.
        debug: read scales and places back first, and refuse offsets that do not rise, tokens
            that have no position or no row, and two of one row; waits for the GPU.

    A token whose position or row is not there, -1 by custom, is not written to the cache; its
    queries are rotated as at position 0. Queries above 1200 count as 1200. With numpy arrays the
    op computes on the emulator, and returns when all is written.

    Raises:
        ProblemError: an argument is not what the list above says.
        SelectionError: the library holds no kernel for this problem and device.
        CaptureError: first use of a kernel, or a new output, while a stream is captured.
        BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
        EmulationError: on the emulator: the kernel broke a rule.

    """
    held = None if kv is None else operand(kv)
    appends = held is not None and new_kv is not None
    by_sequence = row_offsets is not None
    looks_up = appends and by_sequence
    return Request(
        inputs={
            "q": q,
            "w_uk": w_uk,
            "w_uk_scale": w_uk_scale,
            "freqs": freqs,
            "new_kv": new_kv,
            "gamma": gamma,
            "row_offsets": row_offsets,
            "lengths": _lengths(held) if by_sequence else None,
            "batch": batch,
            "slots": slots,
            "positions": positions,
            "table": kv_operand.lookup_arrays(held)[0] if held and looks_up else None,
        },
        outputs={
            "out": out,
            "kv": held.rows if held and appends else None,
            "kv_scales": held.scales if held and appends else None,
        },
        problem=partial(
            problem_of, kv=held, settings=Settings(epsilon=epsilon, power_of_two=power_of_two)
        ),
        located=partial(located, held),
        stream=stream,
        library=library,
        debug=debug,
    )


def _lengths(kv: Operand | None) -> Array:
    """The lengths of a cache's sequences."""
    if kv is None:
        raise ProblemError("`kv` must be given: `row_offsets` follow its lengths", where=KERNEL)
    if not isinstance(kv, Paged | Continuous):
        what = "a storage whose sequences have no lengths of their own cannot grow"
        hint = "name rows by `positions` and `slots`"
        raise ProblemError(what, where=f"kv.{type(kv).__name__}", hint=hint)
    return kv.lengths


@mla_decode_absorb.of_tensors
def _of_tensors(
    q: Array,
    *,
    w_uk: Array = None,
    w_uk_scale: Array = None,
    freqs: Array = None,
    new_kv: Array = None,
    gamma: Array = None,
    row_offsets: Array = None,
    lengths: Array = None,
    batch: Array = None,
    slots: Array = None,
    positions: Array = None,
    table: Array = None,
    epsilon: float = 1e-6,
    power_of_two: bool = False,
    out: Array,
    kv: Array = None,
    kv_scales: Array = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
) -> Request[Problem, Array]:
    """The op, which fills the queries and writes the cache that it is given."""
    held = None if kv is None else kv_operand.of_tensors(kv, kv_scales, table, lengths)
    return mla_decode_absorb.request(
        q,
        w_uk,
        w_uk_scale,
        freqs=freqs,
        new_kv=new_kv,
        gamma=gamma,
        kv=held,
        epsilon=epsilon,
        row_offsets=row_offsets,
        batch=batch,
        positions=positions,
        slots=slots,
        power_of_two=power_of_two,
        out=out,
        stream=stream,
        library=library,
    )
