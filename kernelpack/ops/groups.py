"""Groups of adjacent token rows, as many ops take them: what must be true of their numbers.

Group g owns rows `offsets[g] … offsets[g + 1]`, and is one adapter's or expert's, `ids[g]`. Kernels
rely on it without a look; whoever debugs has it checked before the launch.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.checks import require

INACTIVE = -1
"""The id of a group that has no adapter or expert."""

OFFSETS = (DType.U32, DType.I32)
"""Types of offsets: the same bits, for none is negative."""


def check_lengths(views: Mapping[str, DeviceArray], offsets: str, kernel: str) -> None:
    """Hold the lengths of offsets and ids against each other; offsets may be longer.

    Raises:
        ProblemError: there is no end of the last group.

    """
    found, groups = views[offsets].shape[0], views["expert_ids"].shape[0]
    require(
        found > groups,
        f"`{offsets}` must have n_active + 1 elements, `expert_ids` n_active, "
        f"not {found} and {groups}",
        kernel,
    )


def check_offsets(
    values: NDArray[Any], name: str, groups: int, *, rows: tuple[str, int], kernel: str
) -> None:
    """Hold the first row of each group, and the number of rows, against what a kernel relies on.

    Args:
        values: the offsets; those after the groups' are ignored.
        name: the argument's name.
        groups: how many there are, as `expert_ids` says.
        rows: the name of the number of token rows, and the number.
        kernel: the kernel's stem, for errors.

    Raises:
        ProblemError: names the group and its numbers.

    """
    if groups == 0:
        return
    offsets, (size, end) = values[: groups + 1].tolist(), rows
    require(offsets[0] == 0, f"`{name}` must start with 0, not {offsets[0]}", kernel)
    require(
        offsets[-1] == end,
        f"`{name}` must end with {size} = {end} after the {groups} groups of `expert_ids`, "
        f"not {offsets[-1]}",
        kernel,
    )
    for group, (low, high) in enumerate(pairwise(offsets)):
        require(low <= high, f"`{name}` must not fall: group {group} is {low} to {high}", kernel)


def check_ids(values: NDArray[Any], experts: int, kernel: str) -> None:
    """Hold each group's adapter or expert against how many there are.

    Raises:
        ProblemError: names the group and its id.

    """
    for group, chosen in enumerate(values.tolist()):
        require(
            INACTIVE <= chosen < experts,
            f"`expert_ids` must be -1 to {experts - 1}, not {chosen} (group {group})",
            kernel,
        )
