"""How a row of the cache is laid out: its bytes, and the numbers they mean."""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """One layout of rows.

    Attributes:
        name: the word of the manifest's axis ROW.
        depth: columns of K: 576, or 512 for rows without rope.
        bytes: of a row.

    """

    name: str
    depth: int
    bytes: int

    def decode(self, rows: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The numbers [rows, depth] of rows of bytes [rows, bytes]."""
        return np.asarray(rows.view(ml_dtypes.bfloat16).astype(np.float64))

    def encode(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        """The nearest rows of bytes [rows, bytes] to numbers [rows, depth]."""
        return np.ascontiguousarray(values.astype(ml_dtypes.bfloat16)).view(np.uint8)


BF16_576 = RowFormat(name="bf16_576", depth=576, bytes=1152)
BF16_512 = RowFormat(name="bf16_512", depth=512, bytes=1024)
ROWS = (BF16_576, BF16_512)
