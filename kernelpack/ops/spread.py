"""Arrays whose rows may lie apart, as a kernel sees them: a piece of memory and the steps in it."""

from dataclasses import dataclass

from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.checks import require
from kernelpack.ops.dlpack import row_major


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread(DeviceArray):
    """The memory of an array, from its first element to its last.

    Attributes:
        sides: elements along each dimension of the array.
        steps: elements from one to the next along each; of a side of 1, as if there were no gap.

    """

    sides: tuple[int, ...]
    steps: tuple[int, ...]


def spread(array: DeviceArray, name: str, kernel: str) -> Spread:
    """The memory of an array whose last dimension is adjacent.

    Raises:
        ProblemError: it is not, or elements lie in falling order; names the array.

    """
    is_plain = array.strides is None or array.size == 0  # numpy has strides of 0 without elements
    given = row_major(array.shape) if is_plain else array.strides or ()
    steps, step = [0] * len(given), 1
    for axis in reversed(range(len(given))):
        steps[axis] = given[axis] if array.shape[axis] > 1 else step
        step = steps[axis] * array.shape[axis]
    fits = array.size == 0 or (steps[-1] == 1 and min(steps) >= 0)
    rule = "must have adjacent elements in its last dimension, and no negative strides"
    require(fits, f"`{name}` {rule}; they are {list(given)}", kernel)
    reach = sum((side - 1) * step for side, step in zip(array.shape, steps, strict=True)) + 1
    return Spread(
        pointer=array.pointer,
        shape=(reach if array.size else 0,),
        dtype=array.dtype,
        device=array.device,
        is_read_only=array.is_read_only,
        sides=array.shape,
        steps=tuple(steps),
    )


def spread_of(view: DeviceArray) -> Spread:
    """Results of `spread`, found again among views."""
    assert isinstance(view, Spread), "the request spreads it"
    return view
