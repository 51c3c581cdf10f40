"""Rules for an op's arrays, one a function; each names the array at fault.

The order in which an op asks is the order in which a person would: rank and type, then the sides
that must agree, then how the elements lie, then whether two arrays get in each other's way.
"""

from collections.abc import Mapping, Sequence
from operator import index

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.ops.arrays import DeviceArray


def require(holds: bool, rule: str, kernel: str) -> None:
    """Refuse what breaks a rule; `rule` says what must be, and what was found.

    Raises:
        ProblemError: the rule does not hold.

    """
    if not holds:
        raise ProblemError(rule, where=kernel)


def integer(value: object, name: str, *, least: int | None = None, where: str = "") -> int:
    """A number that was given as one; numpy's integers are numbers too, `True` is not.

    Raises:
        ProblemError: names the argument, its value and what would be right.

    """
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        what = f"`{name}` must be an integer, not {value!r:.60} of type {type(value).__name__}"
        raise ProblemError(what, where=where)
    try:
        number = index(value)
    except TypeError:  # an array of several elements
        what = f"`{name}` must be an integer, not a {type(value).__name__}"
        raise ProblemError(what, where=where) from None
    if least is not None and number < least:
        raise ProblemError(f"`{name}` must be at least {least}, not {number}", where=where)
    return number


def number(value: object, name: str, *, where: str = "") -> float:
    """A number as a float; numpy's are numbers too, `True` is not.

    Raises:
        ProblemError: it is not a number, or no float holds it; names the argument.

    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        what = f"`{name}` must be a number, not {value!r} of type {type(value).__name__}"
        raise ProblemError(what, where=where)
    try:
        return float(value)
    except OverflowError:
        rule = f"`{name}` must be a number that a float holds, not an integer of more digits"
        raise ProblemError(rule, where=where) from None


def check_array(
    array: DeviceArray, name: str, dims: str, dtypes: Sequence[DType], kernel: str
) -> None:
    """Check a view against what an op takes: rank and element type.

    Args:
        array: the view.
        name: the argument's name.
        dims: the dimensions' names, such as `g 3n k`.
        dtypes: the types allowed.
        kernel: the kernel's stem, for errors.

    Raises:
        ProblemError: says what was found and what would be right.

    """
    wanted = dims.split()
    what = f"`{name}`"
    shape = list(array.shape)
    if len(array.shape) != len(wanted):
        raise ProblemError(
            f"{what} must have the shape [{', '.join(wanted)}], not {shape}", where=kernel
        )
    if array.dtype not in dtypes:
        labels = " or ".join(dtype.label for dtype in dtypes)
        raise ProblemError(f"{what} must be {labels}, not {array.dtype.label}", where=kernel)


def check_contiguous(arrays: Mapping[str, DeviceArray], kernel: str) -> None:
    """Refuse an array that is not row-major, or has gaps.

    Raises:
        ProblemError: names the array, its shape and its strides.

    """
    for name, array in arrays.items():
        if not array.is_contiguous:
            shape, strides = list(array.shape), list(array.strides or ())
            raise ProblemError(
                f"`{name}` must be row-major without gaps; shape {shape} has strides {strides}",
                where=kernel,
                hint="give a contiguous copy",
            )


def check_devices(arrays: Mapping[str, DeviceArray], kernel: str) -> int:
    """The one device that all arrays lie on.

    Raises:
        ProblemError: names two arrays on different devices.

    """
    placed = [(name, array.device) for name, array in arrays.items() if array.device is not None]
    if not placed:
        return 0
    first, device = placed[0]
    for name, other in placed:
        if other != device:
            raise ProblemError(
                f"`{name}` is on device {other}, `{first}` on device {device}", where=kernel
            )
    assert device is not None, "arrays without a device were left out"
    return device


def check_out(
    out: DeviceArray,
    name: str,
    shape: tuple[int, ...],
    dtype: DType,
    kernel: str,
) -> None:
    """Check an output that was given against the problem.

    Args:
        out: its view.
        name: the caller's word for it.
        shape: what the problem makes it.
        dtype: likewise.
        kernel: the kernel's stem, for errors.

    Raises:
        ProblemError: says what was found and what would be right.

    """
    if out.shape != shape:
        what = f"`{name}` must have the shape {list(shape)}, not {list(out.shape)}"
        raise ProblemError(what, where=kernel)
    if out.dtype != dtype:
        what = f"`{name}` must be {dtype.label} as `out_dtype` says, not {out.dtype.label}"
        raise ProblemError(what, where=kernel)
    check_contiguous({name: out}, kernel)


def check_writable(
    array: DeviceArray, name: str, others: Mapping[str, DeviceArray], kernel: str
) -> None:
    """Refuse to write an array that may only be read, or that shares memory with another.

    What is read would change under the kernel that reads it.

    Raises:
        ProblemError: names the array, and the other.

    """
    if array.is_read_only:
        raise ProblemError(f"`{name}` is read-only", where=kernel)
    for other, theirs in others.items():
        if overlap(array.bytes, theirs.bytes):
            what = f"`{name}` overlaps `{other}`"
            raise ProblemError(what, where=kernel, hint="give it memory of its own")


def overlap(a: range, b: range) -> bool:
    """Whether two pieces of memory share bytes."""
    return max(a.start, b.start) < min(a.stop, b.stop)
