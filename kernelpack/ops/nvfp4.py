"""What the ops of NVFP4 weights take and check alike: packed codes, their scales, groups.

Scales are bytes of e4m3, given as such or as u8; see `formats.grouped_scales` for their layout.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.formats.grouped_scales import group_scale_offsets, scale_blocks
from kernelpack.formats.scale_layout import BLOCKS, ROWS
from kernelpack.kernels.nvfp4.problem import BLOCK, OUT_DTYPES, Problem
from kernelpack.ops.arrays import Array, Type, dtype_of
from kernelpack.ops.checks import integer, require
from kernelpack.ops.groups import OFFSETS, check_ids, check_lengths, check_offsets
from kernelpack.ops.operation import Form, Made, Read, Traced, Views
from kernelpack.ops.scale_bytes import check_weight_scales

CODES = (DType.U8,)
SCALES = (DType.E4M3, DType.U8)
ATOM = (ROWS // BLOCKS, BLOCKS, BLOCKS)
"""The last sides of a scale tensor: 128 rows by 4 blocks."""

B = Form(dims="e n k/2", dtypes=CODES)
B_SCALES = Form(dims="e n/128 k/64 32 4 4", dtypes=SCALES)
GROUP_OFFSETS = Form(dims="n_active+1", dtypes=OFFSETS)
EXPERT_IDS = Form(dims="n_active", dtypes=(DType.I32,))
EXPERT_SCALES = Form(dims="e", dtypes=(DType.FP32,))
C = Form(dims="t n", dtypes=OUT_DTYPES)


def problem_of(
    views: Views, outs: Views, k: int, asked: Type, kernel: str, choose_for: int | None
) -> Problem:
    """The sizes of a call, after the rules about weights and groups hold.

    Args:
        views: the inputs.
        outs: the output, if one was given.
        k: elements of a token.
        asked: the type of a new output; None: bf16.
        kernel: the kernel's stem, for errors.
        choose_for: tokens that tile and slices of K are chosen for; None: those there are.

    Raises:
        ProblemError: says what was found and what would be right.

    """
    out_dtype = None if asked is None else dtype_of(asked)
    given = outs["c"].dtype if "c" in outs else DType.BF16
    e, n, columns = views["b"].shape
    problem = Problem(
        t=views["a"].shape[0],
        n=n,
        k=k,
        e=e,
        n_active=views["expert_ids"].shape[0],
        out_dtype=out_dtype or given,
        scale_blocks=views["a_scales"].shape[0] if "a_scales" in views else None,
        choose_for=0 if choose_for is None else integer(choose_for, "choose_for", where=kernel),
    )
    require(2 * columns == k, f"`b` must have a's k, {k // 2} bytes, not {columns}", kernel)
    problem.check(kernel)
    check_scales(views, "b_scales", (e, -(-n // ROWS), atoms_along(k)), kernel)
    check_lengths(views, "group_offsets", kernel)
    found = views["expert_scales"].shape[0]
    require(found == e, f"`expert_scales` must have b's e = {e} elements, not {found}", kernel)
    return problem


def atoms_along(k: int) -> int:
    """Scale atoms along k elements."""
    return -(-k // (BLOCK * BLOCKS))


def check_scales(views: Views, name: str, sides: tuple[int, ...], kernel: str) -> None:
    """Hold a scale tensor's shape against the sides before its atoms'.

    Raises:
        ProblemError: names the tensor, its shape and what would be right.

    """
    found, wanted = views[name].shape, (*sides, *ATOM)
    rule = f"`{name}` must have the shape {list(wanted)}, not {list(found)}"
    require(found == wanted, rule, kernel)


def made(problem: Problem) -> dict[str, Made]:
    """The output as the problem makes it."""
    return {"c": Made(shape=(problem.t, problem.n), dtype=problem.out_dtype)}


def traced(a: Array, b: Array, *_: Array, out_dtype: Type = None, **_choice: int | None) -> Traced:
    """The output of tensors without values."""
    return [((a.shape[0], b.shape[1]), out_dtype or DType.BF16)]


def check_values(problem: Problem, read: Read, kernel: str) -> None:
    """Hold the groups, their experts' factors and the scales of the weights against what is right.

    Raises:
        ProblemError: names the group and its numbers, the expert, or the scale and its byte.

    """
    offsets, rows = read("group_offsets"), ("t", problem.t)
    check_offsets(offsets, "group_offsets", problem.n_active, rows=rows, kernel=kernel)
    ids = read("expert_ids")
    check_ids(ids, problem.e, kernel)
    _check_expert_scales(read("expert_scales"), ids, kernel)
    if not problem.is_empty:
        check_weight_scales(read("b_scales"), problem.n, problem.k, ids, kernel)


def _check_expert_scales(scales: NDArray[Any], ids: NDArray[Any], kernel: str) -> None:
    """Those of experts that take part: one that is no number makes all of its rows none."""
    for expert in np.unique(ids[ids >= 0]).tolist():
        found = float(scales[expert])
        rule = f"`expert_scales` must be finite, not {found} (expert {expert})"
        require(bool(np.isfinite(found)), rule, kernel)


def check_row_blocks(
    offsets: NDArray[Any], found: tuple[str, NDArray[Any]], held: tuple[str, int], kernel: str
) -> None:
    """Hold where the scales of groups of tokens lie against what a kernel relies on.

    Args:
        offsets: first row of each group, then the number of rows.
        found: the name and the values of the groups' scale offsets.
        held: the name of the scale tensor and its row blocks.
        kernel: the kernel's stem, for errors.

    Raises:
        ProblemError: names the group and its numbers, or the tensor that is too small.

    """
    (name, values), (tensor, blocks) = found, held
    for group, right in enumerate(group_scale_offsets(offsets).tolist()):
        rule = f"`{name}` must be {right} for group {group}, not {values[group]}"
        require(values[group] == right, rule, kernel)
    needed = scale_blocks(offsets)
    rule = f"`{tensor}` must have {needed} row blocks for these groups, not {blocks}"
    require(blocks >= needed, rule, kernel)
