"""The numbers that rows of the cache mean, and rows of bytes for numbers."""

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kernelpack.kernels.kv_operand.rows import FORMATS, RowFormat

Bytes = NDArray[np.uint8]

BF16_576, BF16_512 = FORMATS["bf16_576"], FORMATS["bf16_512"]
ROWS = (BF16_576, BF16_512)
"""The formats that there are kernels for."""


def decode(row: RowFormat, rows: Bytes) -> NDArray[np.float64]:
    """The numbers [rows, width] of rows [rows, bytes]."""
    assert row in ROWS, f"no kernel reads {row.name}"
    return np.asarray(rows.view(ml_dtypes.bfloat16).astype(np.float64))


def encode(row: RowFormat, values: NDArray[Any]) -> Bytes:
    """The nearest rows [rows, bytes] to numbers [rows, width]."""
    assert row in ROWS, f"no kernel reads {row.name}"
    return np.ascontiguousarray(values.astype(ml_dtypes.bfloat16)).view(np.uint8)
