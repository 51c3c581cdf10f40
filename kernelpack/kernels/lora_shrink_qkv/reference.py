"""The oracle of LoRA shrink in float64, and how far a kernel may be from it.

For every group with an adapter, its rows times the adapter's stacked matrices, transposed; column
j of the result belongs to plane j // n. Groups without an adapter give zeros. Rows that no group
covers are not defined and are not expected.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.kernels.bounds import bound
from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.lora_shrink_qkv.problem import PLANES

Doubles = NDArray[np.float64]


def expected(arrays: Arrays, m: int, out_dtype: DType) -> Expected:
    """The planes [3, m, n] and the bound of each element."""
    value = shrink(arrays, m)
    magnitudes = arrays | {name: np.abs(_doubles(arrays[name])) for name in ("a", "b")}
    return Expected(value=value, bound=bound(value, shrink(magnitudes, m), out_dtype))


def shrink(arrays: Arrays, m: int) -> Doubles:
    """The planes [3, m, n] in float64; `a` [>= m, k] and `b` [g, 3n, k] of any float type."""
    a, b, offsets, ids = (arrays[name] for name in ("a", "b", "a_offsets", "expert_ids"))
    n = b.shape[1] // PLANES
    planes = np.zeros((PLANES, m, n))
    for group, adapter in enumerate(ids):
        low, high = int(offsets[group]), int(offsets[group + 1])
        if adapter >= 0 and high > low:
            flat = _doubles(a[low:high]) @ _doubles(b[adapter]).T  # [rows, 3n]
            planes[:, low:high] = flat.reshape(high - low, PLANES, n).transpose(1, 0, 2)
    return planes


def _doubles(array: NDArray[Any]) -> Doubles:
    return array.astype(np.float64)
