"""The NVFP4 grouped GEMM: tokens times the weights of their group's expert, both of 4 bits.

    c[i, j] = expert_scales[x] * sum over l of a[i, l] * b[x, j, l]     x = expert of row i

Every 16 elements along k of a and b share a scale. Rows of groups without an expert are not
written. One launch and no wait for the GPU. numpy arrays are computed on the CPU emulator,
whatever GPU is there. See `kernels/nvfp4_grouped_gemm` for what is computed, and
`formats/grouped_scales` for how scales are laid out.
"""

from collections.abc import Mapping
from functools import partial

from kernelpack.formats.dtype import DType
from kernelpack.formats.scale_layout import ROWS
from kernelpack.kernels.nvfp4.problem import Problem
from kernelpack.kernels.nvfp4_grouped_gemm.problem import ABIS, KERNEL
from kernelpack.load.library import Library
from kernelpack.ops import nvfp4
from kernelpack.ops.arrays import Array, Type
from kernelpack.ops.checks import require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.groups import said_of_groups
from kernelpack.ops.named import Named
from kernelpack.ops.op import op
from kernelpack.ops.operation import Read, Request, Said, Views
from kernelpack.ops.scale_bytes import check_token_scales
from kernelpack.ops.stream import Stream


def _said(views: Views, outs: Views, *, asked: Type, choose_for: int | None) -> Said:
    """Rules across arrays: a byte of tokens is two."""
    usual = DType.BF16
    groups = said_of_groups(views, outs, usual, asked=asked, choose_for=choose_for, kernel=KERNEL)
    return {**groups, "k": 2 * views["a"].shape[1]}


def _problem(sizes: Mapping[str, int]) -> Problem:
    """The problem, whose scales are enough for tokens however they form groups."""
    problem = Problem.of(sizes, KERNEL)
    blocks, least = sizes["scale_blocks"], -(-problem.t // ROWS)
    rule = f"`a_scales` must have at least ceil(t / {ROWS}) = {least} row blocks, not {blocks}"
    require(blocks >= least, rule, KERNEL)
    return problem


def _check_values(problem: Problem, read: Read) -> None:
    """Check groups, where their scales lie, and all scales against what the kernel relies on."""
    nvfp4.check_values(problem, read, KERNEL)
    if problem.is_empty:
        return
    offsets = read("group_offsets")[: problem.n_active + 1]
    found = ("group_scale_offsets", read("group_scale_offsets"))
    scales = read("a_scales")
    blocks = ("a_scales", scales.shape[0])
    nvfp4.check_row_blocks(offsets, found, blocks, KERNEL)
    check_token_scales(scales, problem.k, offsets, read("expert_ids"), KERNEL)


@op(
    Named(
        kernel=KERNEL,
        abis=ABIS,
        outputs={"c": "out"},
        types={
            "a": nvfp4.CODES,
            "b": nvfp4.CODES,
            "a_scales": nvfp4.SCALES,
            "b_scales": nvfp4.SCALES,
        },
        problem=_problem,
        check_values=_check_values,
        traced=nvfp4.traced,
    )
)
def nvfp4_grouped_gemm(
    a: Array,
    b: Array,
    a_scales: Array,
    b_scales: Array,
    group_offsets: Array,
    group_scale_offsets: Array,
    expert_ids: Array,
    expert_scales: Array,
    *,
    out: Array = None,
    out_dtype: Type = None,
    choose_for: int | None = None,
    stream: Stream = None,
    library: Library | EmulatedLibrary | None = None,
    debug: bool = False,
) -> Request[Said, Array]:
    """Run the grouped GEMM; returns the output at once, its values follow on the stream.

    Args:
        a: tokens [t, k / 2], u8: two codes (e2m1) a byte, the low nibble first.
        b: weights [e, n, k / 2], u8, likewise.
        a_scales: scales [row blocks, ceil(k / 64), 32, 4, 4] of a, e4m3 or u8, group by group.
        b_scales: scales [e, ceil(n / 128), ceil(k / 64), 32, 4, 4] of b.
        group_offsets: first row of each group, then t: [n_active + 1], u32 or i32.
        group_scale_offsets: what is added to a group's `group_offsets[g] // 128` to find its
            first row block of a_scales [n_active]: `formats.grouped_scales` computes it.
        expert_ids: expert of each group [n_active], i32; -1 leaves the group's rows alone.
        expert_scales: factor of each expert's rows [e], fp32.
        out: the output [t, n], bf16, fp16 or fp32; without it a new one: torch's where an
            input is, else an `Output`.
        out_dtype: the type of a new output; without it bf16.
        choose_for: choose the tile and the slices of K as for this many tokens of all experts,
            whatever there are: then a row's bits do not depend on what comes with it.
        stream: a handle, or a stream of any framework; without it the legacy default stream.
        library: the kernels to choose from; without it those of the installed bundle.
        debug: read offsets, ids and scales back and check them first; waits for the GPU.

    Scales are bytes up to 0x7F: what bit 7 does is not defined. Padding of scales along k must
    be zero; padding rows may hold anything. With numpy arrays the op computes on the emulator,
    returns when the values are there, and makes an array of zeros where no output is given;
    offsets, ids and scales are always checked.

    Raises:
        ProblemError: an argument is not what the list above says.
        SelectionError: the library holds no kernel for this problem and device.
        CaptureError: first use of a kernel, or a new output, while a stream is captured.
        BundleError: on the emulator: the bundle's PTX, X.ptx.kpk, is not beside it.
        EmulationError: on the emulator: the kernel broke a rule.

    """
    return Request(
        inputs={
            "a": a,
            "b": b,
            "a_scales": a_scales,
            "b_scales": b_scales,
            "group_offsets": group_offsets,
            "group_scale_offsets": group_scale_offsets,
            "expert_ids": expert_ids,
            "expert_scales": expert_scales,
        },
        outputs={"c": out},
        problem=partial(_said, asked=out_dtype, choose_for=choose_for),
        stream=stream,
        library=library,
        debug=debug,
    )
