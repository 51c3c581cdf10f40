"""Shared arguments and checks of NVFP4 weights' ops: packed codes, their scales, groups.

Scales are bytes of e4m3, given as such or as u8; see `formats.grouped_scales` for their layout.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.formats.grouped_scales import group_scale_offsets, scale_blocks
from kernelpack.kernels.nvfp4.problem import Problem
from kernelpack.ops.arrays import Array, Type
from kernelpack.ops.checks import require
from kernelpack.ops.groups import check_ids, check_offsets
from kernelpack.ops.operation import Read, Traced
from kernelpack.ops.scale_bytes import check_weight_scales

CODES = (DType.U8,)
SCALES = (DType.E4M3, DType.U8)


def traced(a: Array, b: Array, *_: Array, out_dtype: Type = None, **_choice: int | None) -> Traced:
    """The output of tensors without values."""
    return [((a.shape[0], b.shape[1]), out_dtype or DType.BF16)]


def check_values(problem: Problem, read: Read, kernel: str) -> None:
    """Check the groups, their experts' factors and the scales of the weights against what is right.

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
    """Those of experts that take part: one that is not a number makes all of its rows none."""
    for expert in np.unique(ids[ids >= 0]).tolist():
        found = float(scales[expert])
        rule = f"`expert_scales` must be finite, not {found} (expert {expert})"
        require(bool(np.isfinite(found)), rule, kernel)


def check_row_blocks(
    offsets: NDArray[Any], found: tuple[str, NDArray[Any]], held: tuple[str, int], kernel: str
) -> None:
    """Check where the scales of groups of tokens lie against what a kernel relies on.

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
