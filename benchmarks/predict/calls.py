"""Calls of measured shapes on a library that notes them: GEMMs, the quantiser, rows.

Arrays of data are zeros; what steers a kernel is what the benchmarks give. A function takes a row
of a benchmark's results.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack import ops
from kernelpack.formats.dtype import DType
from kernelpack.formats.grouped_scales import group_scale_offsets, scale_blocks
from kernelpack.predict.planned import PlannedLibrary

Row = Mapping[str, Any]
BF16, BYTE = DType.BF16.numpy, np.dtype(np.uint8)
TYPES = {"bfloat16": DType.BF16.numpy, "float16": DType.FP16.numpy}


def words(values: Any) -> NDArray[np.int32]:
    return np.asarray(values, np.int32)


def lora_shrink_qkv(row: Row, library: PlannedLibrary) -> None:
    """Adapters of all sets of inputs are there; a call uses those of the first."""
    m, k, n, g = (row[side] for side in "mkng")
    ops.lora_shrink_qkv(
        np.zeros((m, k), BF16),
        np.zeros((row["sets"] * g, 3 * n, k), BF16),
        words(range(0, m + 1, m // g)),
        words(range(g)),
        library=library,
    )


def nvfp4_w4a16_grouped_gemm(row: Row, library: PlannedLibrary) -> None:
    """bf16 tokens, m of each expert."""
    e, m, k = (row[side] for side in "emk")
    tokens = np.zeros((e * m, k), BF16)
    ops.nvfp4_w4a16_grouped_gemm(
        tokens, *_weights(row), words(range(0, e * m + 1, m)), *_experts(e), library=library
    )


def nvfp4_grouped_gemm(row: Row, library: PlannedLibrary) -> None:
    """4-bit tokens, m of each expert."""
    e, m, k = (row[side] for side in "emk")
    b, b_scales = _weights(row)
    offsets = list(range(0, e * m + 1, m))
    ops.nvfp4_grouped_gemm(
        np.zeros((e * m, k // 2), BYTE),
        b,
        np.zeros((scale_blocks(offsets), *_atoms(k)), BYTE),
        b_scales,
        words(offsets),
        words(group_scale_offsets(offsets)),
        *_experts(e),
        library=library,
    )


def _weights(row: Row) -> tuple[NDArray[Any], NDArray[Any]]:
    """Codes and scales of all experts."""
    e, n, k = (row[side] for side in "enk")
    return np.zeros((e, n, k // 2), BYTE), np.zeros((e, -(-n // 128), *_atoms(k)), BYTE)


def _atoms(k: int) -> tuple[int, ...]:
    return -(-k // 64), 32, 4, 4


def _experts(e: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Every expert has a group, in order; their scales."""
    return words(range(e)), np.ones(e, np.float32)


def nvfp4_quantize(row: Row, library: PlannedLibrary) -> None:
    """Rows of groups, or of all."""
    groups = row["groups"]
    offsets = [row["rows"] * g for g in range(max(1, groups) + 1)]
    given: dict[str, Any] = {"tensor_scales": np.ones(max(1, groups), np.float32)}
    if groups:
        given["row_offsets"] = words(offsets)
        given["scale_offsets"] = words(group_scale_offsets(offsets))
        given["expert_ids"] = words(range(groups))
    x = np.zeros((offsets[-1], row["k"]), TYPES[row["dtype"]])
    ops.nvfp4_quantize(x, **given, library=library)


def rms_norm(row: Row, library: PlannedLibrary) -> None:
    """A kernel of examples/kernels."""
    kind = TYPES[row["dtype"]]
    x, w = np.zeros((row["rows"], row["width"]), kind), np.zeros(row["width"], kind)
    library.call("rms_norm", x=x, w=w, eps=1e-6)


def silu_mul_fp8(row: Row, library: PlannedLibrary) -> None:
    """A kernel of examples/kernels; a row is two halves of the width."""
    library.call("silu_mul_fp8", x=np.zeros((row["rows"], 2 * row["width"]), BF16))
