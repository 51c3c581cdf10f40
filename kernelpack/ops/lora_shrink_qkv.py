"""LoRA shrink: tokens times the stacked Q, K, V adapters of their group, into three planes.

    c[p, i, j] = sum over x of a[i, x] * b[adapter of row i, p * n + j, x]

One launch and no wait for the GPU. numpy arrays are computed on the CPU emulator, whatever GPU is
there. See `kernels/lora_shrink_qkv` for what is computed.
"""

from functools import partial

from kernelpack.kernels.lora_shrink_qkv.problem import ABIS, KERNEL, PLANES, Problem
from kernelpack.load.library import Library
from kernelpack.ops.arrays import Array, Type
from kernelpack.ops.checks import integer
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.groups import check_ids, check_offsets, said_of_groups
from kernelpack.ops.named import Named
from kernelpack.ops.op import op
from kernelpack.ops.operation import Read, Request, Said, Traced, Views
from kernelpack.ops.stream import Stream


def _said(views: Views, outs: Views, *, m: int | None, asked: Type, choose_for: int | None) -> Said:
    """Rules across arrays: a may have more rows than out."""
    rows = outs["c"].shape[1] if "c" in outs else views["a"].shape[0]
    usual = views["a"].dtype
    groups = said_of_groups(views, outs, usual, asked=asked, choose_for=choose_for, kernel=KERNEL)
    return {**groups, "m": rows if m is None else integer(m, "m", where=KERNEL)}


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
    """Check the groups against what the kernel relies on."""
    offsets, rows = read("a_offsets"), ("m", problem.m)
    check_offsets(offsets, "a_offsets", problem.n_active, rows=rows, kernel=KERNEL)
    check_ids(read("expert_ids"), problem.g, KERNEL)


@op(
    Named(
        kernel=KERNEL,
        abis=ABIS,
        outputs={"c": "out"},
        problem=Problem.of,
        check_values=_check_values,
        cleared=frozenset({"c"}),
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
) -> Request[Said, Array]:
    """Run LoRA shrink; returns the output at once, its values follow on the stream.

    Args:
        a: tokens [rows >= m, k], bf16 or fp16; rows from m on are never read.
        b: adapters [g, 3n, k] of a's type; the rows of a plane are adjacent: Q, K, V.
        a_offsets: first row of each group, then m: [n_active + 1], u32 or i32.
        expert_ids: adapter of each group [n_active], i32; -1 gives zero rows. Without a group all
            rows are zero.
        m: token rows that adapters cover; without it out's, or all rows of a.
        out: the output [3, m, n], bf16, fp16 or fp32; without it a new one: torch's where an
            input is, else an `Output`.
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
        problem=partial(_said, m=m, asked=out_dtype, choose_for=choose_for),
        stream=stream,
        library=library,
        debug=debug,
    )
