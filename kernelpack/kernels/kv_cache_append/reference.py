"""The oracle of the cache append: the kernel's own operations in fp32, so bit for bit.

Of values that share a scale, every operation rounded to nearest:

    scale = max |x| / 448, at least 2^-40
          = 2^ceil(log2(max(max |x| / 448, 1e-4))) where powers of two are asked for
    code  = e4m3(x / scale), at most 448; where there is no scale e4m3(x)

The second is the convention of those who write powers of two (2^-13 for zeros). The first has a
floor so that rope values of fp8_640 rows, which are divided by the scale too, stay finite. What
follows:

- A NaN makes NaN of every value that shares its scale, of the scale, and of its fp8_640 row's rope.
- An infinity counts as the largest bf16 in the scale; its code is 448 with its sign.
- -0 keeps its sign.
- bf16 rows, and the rope of fp8_656 rows, are the values' own bits.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import encode
from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.kv_cache_append.problem import Problem
from kernelpack.kernels.kv_operand.rows import LATENT, RowFormat

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]

LARGEST = np.float32(448)  # of e4m3
BF16_LARGEST = np.float32(2.0**128 - 2.0**120)
LEAST_SCALE, LEAST_POWER = np.float32(2.0**-40), np.float32(1e-4)
NAN_BITS = 0x7FFFFFFF  # of an fp32 result that is NaN; a bf16 one is 0x7FFF


def scales_of(values: Floats, block: int, count: int, *, power_of_two: bool) -> Floats:
    """The scale of each block of values [t, count]; the last may be short."""
    parts = [values[:, at * block : (at + 1) * block] for at in range(count)]
    most = np.stack([np.abs(part).max(1) for part in parts], 1)  # numpy's keeps a NaN
    exact = np.minimum(most, BF16_LARGEST) / LARGEST
    if not power_of_two:
        return np.asarray(np.maximum(exact, LEAST_SCALE))
    mantissa, exponent = np.frexp(np.maximum(exact, LEAST_POWER))
    powers = np.ldexp(np.float32(1), exponent - (mantissa == 0.5))
    found: Floats = np.where(np.isnan(exact), exact, powers).astype(np.float32)
    return found


def rows_of(
    row: RowFormat, latent: NDArray[Any], rope: NDArray[Any], per_row: int, *, power_of_two: bool
) -> tuple[Bytes, Words]:
    """Rows of a format as bytes [t, bytes], and the bits of their scales in an array [t, per_row].

    Args:
        row: the format.
        latent: values [t, 512], bf16.
        rope: values [t, 64], bf16; not looked at where the format has none.
        per_row: scales of a row in an array; 0 where there is none.
        power_of_two: whether scales are powers of two.

    """
    made = np.zeros((len(latent), row.bytes), np.uint8)
    if row.dtype is DType.BF16:
        made[:, : 2 * LATENT] = _bytes(latent)
        if row.rope:
            made[:, row.rope_offset :] = _bytes(rope)
        return made, np.zeros((len(latent), 0), np.uint32)
    with np.errstate(all="ignore"):  # infinities and NaN go where the formula takes them
        return _narrow(row, made, latent, rope, per_row, power_of_two)


def _narrow(
    row: RowFormat,
    made: Bytes,
    latent: NDArray[Any],
    rope: NDArray[Any],
    per_row: int,
    power_of_two: bool,
) -> tuple[Bytes, Words]:
    joined = row.rope_dtype is DType.E4M3  # rope has the latent's type, and scales like its
    values = np.concatenate([latent, rope], 1) if joined else latent
    values = values.astype(np.float32)
    count = row.inline_scales or per_row
    block = LATENT // row.inline_scales if row.inline_scales else row.block_of(max(1, per_row))
    scales = np.ones((len(values), 1), np.float32)
    if count:
        scales = scales_of(values, block, count, power_of_two=power_of_two)
    of_value = scales.repeat(block, 1)[:, : values.shape[1]]
    made[:, : values.shape[1]] = encode(DType.E4M3, values / of_value, satfinite=True)
    if row.inline_scales:
        made[:, LATENT : row.rope_offset] = _bits(scales).view(np.uint8)
        made[:, row.rope_offset :] = _bytes(rope)
    elif row.rope_dtype is DType.BF16:
        made[:, row.rope_offset :] = _bytes(_to_bf16(rope.astype(np.float32) / scales))
    return made, _bits(scales[:, :per_row])


def _bits(scales: Floats) -> Words:
    raw = np.ascontiguousarray(scales).view(np.uint32)
    return np.where(np.isnan(scales), np.uint32(NAN_BITS), raw)


def _to_bf16(values: Floats) -> NDArray[np.uint16]:
    raw = values.astype(DType.BF16.numpy).view(np.uint16)
    return np.where(np.isnan(values), 0x7FFF, raw).astype(np.uint16)


def _bytes(values: NDArray[Any]) -> Bytes:
    return np.ascontiguousarray(values).view(np.uint8)


def places(problem: Problem, arrays: Arrays) -> NDArray[np.int64]:
    """The virtual row of each token; -1: it has none."""
    tokens, lookup = np.arange(problem.t), problem.lookup
    if problem.slot_words:
        slots = arrays["slots"].reshape(-1, problem.slot_words).astype(np.int64)
        low = slots[:, 0].astype(np.uint32).view(np.int32).astype(np.int64)
        encoded = np.where(slots[:, 1:].any(1), -1, low)
    else:
        offsets = arrays["row_offsets"].astype(np.int64)
        b = np.clip(np.searchsorted(offsets[:-1], tokens, side="right") - 1, 0, None)
        t = arrays["lengths"].astype(np.int64)[b] + tokens - offsets[b]
        is_new = (tokens < offsets[-1]) & (t < 2**31)
        encoded = lookup.encode(b, np.where(is_new, t, -1), arrays["table"], tokens)
    there = (encoded >= 0) & (encoded < lookup.blocks * lookup.page)
    block, offset = np.divmod(np.where(there, encoded, 0), lookup.page)
    return np.where(there, block * problem.block_stride + offset, -1)


def expected(problem: Problem, arrays: Arrays) -> dict[str, Expected]:
    """Rows and scales to the bit; everything that no token names is left as it was."""
    latent = _spread(arrays["latent"], problem.t, problem.latent_stride, LATENT)
    rope = _spread(arrays["rope"], problem.t, problem.rope_stride, problem.row.rope)
    rows, scales = rows_of(
        problem.row, latent, rope, problem.scales_per_row, power_of_two=problem.power_of_two
    )
    at = places(problem, arrays)
    kv = np.full((problem.kv_rows, problem.row.bytes), np.nan)
    kv_scales = np.full((problem.kv_rows, problem.scales_per_row), np.nan)
    kv[at[at >= 0]], kv_scales[at[at >= 0]] = rows[at >= 0], scales[at >= 0]
    found = {"kv": _exactly(kv)}
    return found | ({"kv_scales": _exactly(kv_scales)} if problem.scales_per_row else {})


def _spread(values: NDArray[Any], t: int, stride: int, width: int) -> NDArray[Any]:
    """Values [t, width] of tokens that may lie apart."""
    if width == 0:
        return np.zeros((t, 0), DType.BF16.numpy)
    steps = (stride * values.itemsize, values.itemsize)
    return np.lib.stride_tricks.as_strided(values, (t, width), steps)


def _exactly(value: NDArray[np.float64]) -> Expected:
    return Expected(value=value, bound=np.zeros(value.shape))
