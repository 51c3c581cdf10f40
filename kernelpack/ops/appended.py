"""Messages of `debug`: where new rows of a cache go."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.checks import require


def sequences_of(offsets: DeviceArray, name: str, where: str) -> int:
    """How many sequences offsets are of: they have the end of the last one too.

    Raises:
        ProblemError: there is not even an end; names the array.

    """
    found = offsets.shape[0]
    require(found >= 1, f"`{name}` must have sequences + 1 elements, at least 1, not 0", where)
    return found - 1


def check_row_offsets(offsets: NDArray[Any], t: int, where: str) -> None:
    """Refuse offsets that are not those of sequences one after another.

    Raises:
        ProblemError: shows them.

    """
    whole = offsets.view(np.uint32).astype(np.int64)
    rises = whole[0] == 0 and (np.diff(whole) >= 0).all() and whole[-1] <= t
    rule = f"`row_offsets` must rise from 0 to at most t = {t}, not {offsets.tolist()}"
    require(bool(rises), rule, where)


def check_apart(rows: NDArray[np.int64], name: str, where: str) -> None:
    """Refuse two tokens of one row: which of them it holds afterwards is not known.

    Raises:
        ProblemError: names the array and the tokens.

    """
    order = np.argsort(rows, kind="stable")
    again = (np.diff(rows[order]) == 0) & (rows[order][1:] >= 0)
    for at in np.flatnonzero(again)[:1].tolist():
        first, second = order[at : at + 2].tolist()
        rule = f"{name} must give each token a row of its own: {first} and {second} have the same"
        raise ProblemError(rule, where=where)
