"""Groups of adjacent token rows, as many ops take them: what must be true of their numbers.

Group g owns rows `offsets[g] … offsets[g + 1]`, and is one adapter's or expert's, `ids[g]`. Kernels
rely on it without a look; whoever debugs has it checked before the launch.
"""

from itertools import pairwise
from typing import Any

from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.ops.arrays import Type, dtype_of
from kernelpack.ops.checks import integer, require
from kernelpack.ops.operation import Views

INACTIVE = -1
"""The id of a group that has no adapter or expert."""


def said_of_groups(
    views: Views, outs: Views, usual: DType, *, asked: Type, choose_for: int | None, kernel: str
) -> dict[str, int]:
    """Rules across arrays of a grouped GEMM: offsets may be more than groups need.

    Args:
        views: the inputs.
        outs: the output, if one was given, whose type says `out_dtype`.
        usual: the type of a new output.
        asked: the type of a new output that was asked for, if one was.
        choose_for: tokens that tile and slices of K are chosen for; None: those there are.
        kernel: the kernel's stem, for errors.

    Raises:
        ProblemError: a setting is not a type, or no number.

    """
    said = {
        "n_active": views["expert_ids"].shape[0],
        "choose_for": 0 if choose_for is None else integer(choose_for, "choose_for", where=kernel),
    }
    if asked is not None or "c" not in outs:
        said["out_dtype"] = usual if asked is None else dtype_of(asked)
    return said


def check_offsets(
    values: NDArray[Any], name: str, groups: int, *, rows: tuple[str, int], kernel: str
) -> None:
    """Check the first row of each group, and the number of rows, against what a kernel relies on.

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
    """Check each group's adapter or expert against how many there are.

    Raises:
        ProblemError: names the group and its id.

    """
    for group, chosen in enumerate(values.tolist()):
        require(
            INACTIVE <= chosen < experts,
            f"`expert_ids` must be -1 to {experts - 1}, not {chosen} (group {group})",
            kernel,
        )
