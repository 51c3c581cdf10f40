"""LoRA shrink: tokens times the stacked Q, K, V adapters of their group, into three planes.

    c[p, i, j] = sum over x of a[i, x] * b[adapter of row i, p * n + j, x]

One launch and no wait for the GPU. numpy arrays are computed on the CPU emulator, whatever GPU is
there. See `kernels/lora_shrink_qkv` for what is computed.
"""

from functools import partial

from kernelpack.formats.dtype import DType
from kernelpack.kernels.lora_shrink_qkv.problem import (
    ABIS,
    IN_DTYPES,
    KERNEL,
    OUT_DTYPES,
    PLANES,
    Problem,
)
from kernelpack.load.library import Library
from kernelpack.ops.arrays import Array, Type, dtype_of
from kernelpack.ops.checks import integer, require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.groups import OFFSETS, check_ids, check_lengths, check_offsets
from kernelpack.ops.op import op
from kernelpack.ops.operation import Form, Made, Operation, Read, Request, Traced, Views
from kernelpack.ops.stream import Stream


def _problem(
    views: Views, outs: Views, *, m: int | None, asked: Type, choose_for: int | None
) -> Problem:
    """The sizes of a call, after the rules about sides hold."""
    out = outs.get("c")
    out_dtype = None if asked is None else dtype_of(asked)
    rule = "`m` must be at most"
    if out is not None and m is None:
        m, rule = out.shape[1], "`out` must have at most"
    _check_sides(views)
    (rows, k), (g, stacked, _) = views["a"].shape, views["b"].shape
    problem = Problem(
        m=rows if m is None else integer(m, "m", where=KERNEL),
        n=stacked // PLANES,
        k=k,
        g=g,
        n_active=views["expert_ids"].shape[0],
        dtype=views["a"].dtype,
        out_dtype=out_dtype or (views["a"].dtype if out is None else out.dtype),
        choose_for=0 if choose_for is None else integer(choose_for, "choose_for", where=KERNEL),
    )
    problem.check()
    require(problem.m <= rows, f"{rule} a's {rows} rows, not {problem.m}", KERNEL)
    return problem


def _check_sides(views: Views) -> None:
    """The sides and types that must agree between the inputs."""
    k, dtype = views["a"].shape[1], views["a"].dtype
    _, stacked, b_k = views["b"].shape
    require(b_k == k, f"`b` must have a's k, {k} columns, not {b_k}", KERNEL)
    require(stacked % PLANES == 0, f"`b` must have 3n rows an adapter, not {stacked}", KERNEL)
    found = views["b"].dtype
    require(found == dtype, f"`b` must have a's type {dtype.label}, not {found.label}", KERNEL)
    check_lengths(views, "a_offsets", KERNEL)


def _made(problem: Problem) -> dict[str, Made]:
    return {"c": Made(shape=(PLANES, problem.m, problem.n), dtype=problem.out_dtype)}


def _traced(
    a: Array,
    b: Array,
    *_: Array,
    m: int | None = None,
    out_dtype: Type = None,
    **_choice: int | None,
) -> Traced:
    return [((PLANES, a.shape[0] if m is None else m, b.shape[1] // PLANES), out_dtype or a.dtype)]


def _check_values(problem: Problem, read: Read) -> None:
    """Hold the groups against what the kernel relies on."""
    offsets, rows = read("a_offsets"), ("m", problem.m)
    check_offsets(offsets, "a_offsets", problem.n_active, rows=rows, kernel=KERNEL)
    check_ids(read("expert_ids"), problem.g, KERNEL)


@op(
    Operation(
        kernel=KERNEL,
        abis=ABIS,
        inputs={
            "a": Form(dims="rows k", dtypes=IN_DTYPES),
            "b": Form(dims="g 3n k", dtypes=IN_DTYPES),
            "a_offsets": Form(dims="n_active+1", dtypes=OFFSETS),
            "expert_ids": Form(dims="n_active", dtypes=(DType.I32,)),
        },
        outputs={"c": Form(dims="3 m n", dtypes=OUT_DTYPES)},
        keywords={"c": "out"},
        cleared=frozenset({"c"}),
        made=_made,
        check_values=_check_values,
        traced=_traced,
    )
)
def lora_shrink_qkv(
    a: Array,
    b: Array,
    a_offsets: Array,
    expert_ids: Array,
    *,
    m: int | None = None,
    out: Array = None,
    out_dtype: Type = None,
    choose_for: int | None = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
    debug: bool = False,
) -> Request[Problem, Array]:
    """Run LoRA shrink; returns the output at once, its values follow on the stream.

    Args:
        a: tokens [rows >= m, k], bf16 or fp16; rows from m on are never read.
        b: adapters [g, 3n, k] of a's type; the rows of a plane are adjacent: Q, K, V.
        a_offsets: first row of each group, then m: [n_active + 1], u32 or i32.
        expert_ids: adapter of each group [n_active], i32; -1 gives zero rows. Without a group all
            rows are zero.
        m: token rows that adapters cover; without it out's, or all rows of a.
        out: the output [3, m, n], bf16, fp16 or fp32; without it a new `Output` is made.
        out_dtype: the type of a new output; without it a's.
        choose_for: choose the tile and the slices of K as for this many tokens of all adapters,
            whatever there are: then a row's bits do not depend on what comes with it.
        stream: a handle, or a stream of any framework; without it the legacy default stream.
        library: the kernels to choose from; without it those of the installed bundle.
        debug: read offsets and ids back and check them first; waits for the GPU.

    With numpy arrays the op computes on the emulator, returns when the values are there, and
    makes a numpy array where no output is given; offsets and ids are always checked.

    Raises:
        ProblemError: an argument is not what the list above says.
        SelectionError: the library holds no kernel for this problem and device.
        CaptureError: first use of a kernel, or a new output, while a stream is captured.
        BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
        EmulationError: on the emulator: the kernel broke a rule.

    """
    return Request(
        inputs={"a": a, "b": b, "a_offsets": a_offsets, "expert_ids": expert_ids},
        outputs={"c": out},
        problem=partial(_problem, m=m, asked=out_dtype, choose_for=choose_for),
        stream=stream,
        library=library,
        debug=debug,
    )
