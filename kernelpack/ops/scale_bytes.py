"""The bytes of NVFP4 scales, checked against what is defined: a ue4m3 number has seven bits.

Bit 7 of a scale's byte has no defined meaning: PTX ISA 9.1 says nothing of it, and no B200 was
asked. So a byte above 0x7F is refused where a kernel reads it as a scale: in the rows there are,
of groups and experts that take part. Bytes of padding rows are never read as numbers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError
from kernelpack.formats.grouped_scales import deinterleave, scale_rows
from kernelpack.formats.scale_layout import ROWS
from kernelpack.kernels.nvfp4.problem import BLOCK, LARGEST_SCALE_BYTE

Scales = NDArray[Any]


def check_weight_scales(scales: Scales, n: int, k: int, ids: NDArray[Any], kernel: str) -> None:
    """Check `b_scales` [e, ceil(n / 128), ceil(k / 64), 32, 4, 4] against what is defined.

    Args:
        scales: the tensor, bytes or e4m3.
        n: rows of an expert's weights.
        k: elements of a row.
        ids: the expert of each group; the scales of others are not looked at.
        kernel: the kernel's stem, for errors.

    Raises:
        ProblemError: names the first byte above 0x7F by its expert, row and block of 16.

    """
    wrong = _wrong(scales)
    for expert in np.unique(ids[ids >= 0]).tolist() if wrong.any() else ():
        place = _first(deinterleave(wrong[expert], n, k // BLOCK))
        if place:
            row, block = place
            byte = _bytes(deinterleave(scales[expert], n, k // BLOCK))[row, block]
            raise _refusal("b_scales", byte, f"expert {expert}, row {row}, block {block}", kernel)


def check_token_scales(
    scales: Scales, k: int, offsets: NDArray[Any], ids: NDArray[Any], kernel: str
) -> None:
    """Check `a_scales` [row blocks, ceil(k / 64), 32, 4, 4] against what is defined.

    Args:
        scales: the tensor, bytes or e4m3; its groups lie where `formats.grouped_scales` puts them.
        k: elements of a row.
        offsets: first row of each group, then the number of rows.
        ids: the expert of each group; rows of groups without one are not looked at.
        kernel: the kernel's stem, for errors.

    Raises:
        ProblemError: names the first byte above 0x7F by its row of `a` and block of 16.

    """
    wrong = _wrong(scales)
    if not wrong.any():
        return
    held = (scales.shape[0] * ROWS, k // BLOCK)
    starts = offsets.astype(np.int64)
    takes_part = np.repeat(ids >= 0, starts[1:] - starts[:-1])
    rows = scale_rows(offsets)
    place = _first(deinterleave(wrong, *held)[rows] & takes_part[:, None])
    if place:
        row, block = place
        byte = _bytes(deinterleave(scales, *held))[rows[row], block]
        raise _refusal("a_scales", byte, f"row {row} of `a`, block {block}", kernel)


def _bytes(scales: Scales) -> NDArray[np.uint8]:
    """Scales as their bytes, whatever their type is called."""
    return np.ascontiguousarray(scales).view(np.uint8)


def _wrong(scales: Scales) -> NDArray[np.bool_]:
    """Where a byte has bit 7 set."""
    return _bytes(scales) > LARGEST_SCALE_BYTE


def _first(wrong: NDArray[np.bool_]) -> tuple[int, int] | None:
    """Row and block of the first byte that is wrong."""
    places = np.argwhere(wrong)
    return (int(places[0, 0]), int(places[0, 1])) if len(places) else None


def _refusal(name: str, byte: np.uint8, place: str, kernel: str) -> ProblemError:
    return ProblemError(
        f"`{name}` must be 0 to {LARGEST_SCALE_BYTE:#x}, not {byte:#x} ({place})",
        where=kernel,
        hint="ue4m3 has no sign: what bit 7 of a scale does is not defined",
    )
