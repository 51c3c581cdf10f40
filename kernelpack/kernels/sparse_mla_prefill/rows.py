"""The numbers that rows of the cache mean, and rows of bytes for numbers.

Rows of fp8 are numbers times scales: of the row, or of each block of its columns. Scales lie in
the row (fp8_656) or in an array [rows, scales of a row] beside it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import decode as decode_e4m3
from kernelpack.formats.narrow import encode as encode_e4m3
from kernelpack.kernels.kv_operand.rows import FORMATS, LATENT, RowFormat

Bytes = NDArray[np.uint8]
Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]

BF16_576 = FORMATS["bf16_576"]
LARGEST = 448.0  # of e4m3
NO_SCALES: Floats = np.zeros((0, 0), np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """One kind of rows: their layout, and how many scales each has in an array beside them.

    Heads of q are bf16, or, with `q_scales`, laid out as rows are and with a scale each.
    """

    row: RowFormat = BF16_576
    kv_scales: int = 0
    q_scales: bool = False

    def __str__(self) -> str:
        beside = f"_scales_{self.kv_scales}" if self.kv_scales else ""
        return self.row.name + beside + ("_q_scales" if self.q_scales else "")


BF16, BF16_LATENT = Rows(), Rows(row=FORMATS["bf16_512"])
FP8 = tuple(
    Rows(row=FORMATS[name], kv_scales=count)
    for name, count in (
        *(("fp8_576", 0), ("fp8_576", 1)),
        *(("fp8_512", 0), ("fp8_512", 1), ("fp8_640", 1), ("fp8_656", 0)),
        *(("fp8_576", 18), ("fp8_576", 9), ("fp8_576", 5)),
        *(("fp8_512", 16), ("fp8_512", 8), ("fp8_512", 4)),
    )
)
FP8_QUERIES = tuple(
    Rows(row=FORMATS[name], kv_scales=count, q_scales=True)
    for name, count in (("fp8_576", 1), ("fp8_512", 0), ("fp8_640", 1))
)
ROWS = (BF16, BF16_LATENT, *FP8, *FP8_QUERIES)
"""The kinds that there are kernels for."""


def codes(row: RowFormat, rows: Bytes) -> Doubles:
    """The values of rows [rows, bytes], without their scales: [rows, width]."""
    if row.dtype is DType.BF16:
        return _bf16(rows)
    latent = _e4m3(rows[:, :LATENT])
    if row.rope_dtype is None:
        return latent
    rope = rows[:, row.rope_offset : row.bytes]
    of_rope = _bf16(rope) if row.rope_dtype is DType.BF16 else _e4m3(rope)
    return np.concatenate([latent, of_rope], 1)


def scales(row: RowFormat, rows: Bytes, beside: Floats) -> Doubles:
    """The factor of each column: [rows, width], or [rows, 1] where all are alike."""
    if row.inline_scales:
        inside = np.ascontiguousarray(rows[:, LATENT : LATENT + 4 * row.inline_scales])
        of_latent = (
            inside.view(np.float32).astype(np.float64).repeat(LATENT // row.inline_scales, 1)
        )
        return np.concatenate([of_latent, np.ones((len(rows), row.rope))], 1)
    if not beside.size:
        return np.ones((len(rows), 1))
    block = row.block_of(beside.shape[1])
    return beside.astype(np.float64).repeat(block, 1)[:, : row.width]


def decode(row: RowFormat, rows: Bytes, beside: Floats = NO_SCALES) -> Doubles:
    """The numbers that rows mean, exactly."""
    return codes(row, rows) * scales(row, rows, beside)


def dequantise(row: RowFormat, rows: Bytes, beside: Floats = NO_SCALES) -> Doubles:
    """The numbers as bf16: a multiplication in fp32, rounded once. Those of bf16 rows stay."""
    product = codes(row, rows).astype(np.float32) * scales(row, rows, beside).astype(np.float32)
    return np.asarray(product.astype(DType.BF16.numpy).astype(np.float64))


def encode(row: RowFormat, values: NDArray[Any], per_row: int) -> tuple[Bytes, Floats]:
    """Rows of the nearest numbers to `values` [rows, width], and their scales beside them.

    A scale is such that the largest number of its columns becomes 448; no power of two.
    """
    if row.dtype is DType.BF16:
        return _bytes_of_bf16(values), np.zeros((len(values), 0), np.float32)
    block = row.block_of(per_row) if per_row else LATENT // max(1, row.inline_scales)
    beside = _scales_of(values, block, row.inline_scales or per_row)
    wide = beside.repeat(block, 1)[:, : row.width] if beside.size else np.ones((1, 1), np.float32)
    if row.inline_scales:
        wide = np.concatenate([wide[:, :LATENT], np.ones((len(values), row.rope))], 1)
    scaled = (values / wide).astype(np.float32)
    made = np.zeros((len(values), row.bytes), np.uint8)
    made[:, :LATENT] = encode_e4m3(DType.E4M3, scaled[:, :LATENT], satfinite=True)
    if row.rope_dtype is DType.BF16:
        made[:, row.rope_offset :] = _bytes_of_bf16(scaled[:, LATENT:])
    elif row.rope_dtype is not None:
        rope = encode_e4m3(DType.E4M3, scaled[:, LATENT:], satfinite=True)
        made[:, row.rope_offset :] = rope
    if row.inline_scales:
        made[:, LATENT : row.rope_offset] = np.ascontiguousarray(beside).view(np.uint8)
    return made, beside if per_row else beside[:, :0]


def _scales_of(values: NDArray[Any], block: int, count: int) -> Floats:
    """The scale of each block of columns [rows, count]; the last block may be short."""
    columns = [values[:, at * block : (at + 1) * block] for at in range(count)]
    largest = [np.abs(part).max(1, initial=1e-30) for part in columns]
    made = np.stack(largest, 1) / LARGEST if largest else np.zeros((len(values), 0))
    return np.asarray(made.astype(np.float32))


def _bf16(raw: Bytes) -> Doubles:
    return np.asarray(np.ascontiguousarray(raw).view(DType.BF16.numpy).astype(np.float64))


def _bytes_of_bf16(values: NDArray[Any]) -> Bytes:
    return np.ascontiguousarray(values.astype(DType.BF16.numpy)).view(np.uint8)


def _e4m3(raw: Bytes) -> Doubles:
    return np.asarray(decode_e4m3(DType.E4M3, raw).astype(np.float64))
