"""Groups of token rows: messages about numbers that a kernel could not work with."""

import numpy as np
import pytest

from kernelpack.errors import ProblemError
from kernelpack.ops.groups import check_ids, check_offsets


@pytest.mark.parametrize(
    ("offsets", "message"),
    [
        ([1, 4, 9], "kernel: `offsets` must start with 0, not 1"),
        ([0, 4, 8], "`offsets` must end with t = 9 after the 2 groups of `expert_ids`, not 8"),
        ([0, 10, 9], "`offsets` must not fall: group 1 is 10 to 9"),
    ],
)
def test_bad_offsets(offsets, message):
    """The group at fault and its rows are named."""
    with pytest.raises(ProblemError, match=message):
        check_offsets(np.array(offsets), "offsets", 2, rows=("t", 9), kernel="kernel")


@pytest.mark.parametrize("offsets", [[0, 4, 9], [0, 0, 9], [0, 9, 9, 5]])
def test_good_offsets(offsets):
    """Groups may be empty; what follows the last group's end is ignored."""
    given = np.array(offsets, np.uint32)
    assert check_offsets(given, "offsets", 2, rows=("t", 9), kernel="kernel") is None


def test_offsets_of_no_groups():
    """Without groups nothing is looked at."""
    given = np.array([], np.uint32)
    assert check_offsets(given, "offsets", 0, rows=("t", 9), kernel="kernel") is None


@pytest.mark.parametrize(("ids", "found"), [([0, 3], "3 (group 1)"), ([-2, 0], "-2 (group 0)")])
def test_bad_ids(ids, found):
    """An id is -1 or one of the experts."""
    with pytest.raises(ProblemError) as caught:
        check_ids(np.array(ids, np.int32), 3, "kernel")
    assert f"`expert_ids` must be -1 to 2, not {found}" in str(caught.value)
