"""A NaN among the scales of an NVFP4 GEMM, and where it must show."""

import numpy as np

ROW, BLOCK = 70, 5
"""Which scale: that of elements 80 to 95 of a row, past the first quarter of an atom's rows."""
NAN = 0x7F
"""The byte of ue4m3's NaN."""


def with_nan(arrays, name):
    """The arrays with one scale of the first row block NaN."""
    scales = arrays[name].copy()
    blocks = scales[0] if name == "b_scales" else scales
    blocks[0, BLOCK // 4, ROW % 32, ROW // 32, BLOCK % 4] = NAN
    return arrays | {name: scales}


def expected_nan(shape, name):
    """Where c [t, n] is NaN: the column of a weight, the row of a token."""
    nan = np.zeros(shape, bool)
    if name == "b_scales":
        nan[:, ROW] = True
    else:
        nan[ROW] = True
    return nan
