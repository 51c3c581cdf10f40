"""The oracle of what comes before decode attention: products in float64, all else bit for bit.

Absorbed queries are block-scaled products (`kernels/block_scaled`), rotation and norm are those of
`new_rows`, rows those of `kv_cache_append`. Omitted parts stay as they were, and so does
everything in the cache that no token names. Queries of a token without a position are rotated as at
position 0.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.kernels.block_scaled.reference import Weights, product
from kernelpack.kernels.definition import Arrays, Expected
from kernelpack.kernels.kv_cache_append.reference import rows_of
from kernelpack.kernels.kv_operand.rows import LATENT
from kernelpack.kernels.mla_decode_absorb.new_rows import normalise, rotate
from kernelpack.kernels.mla_decode_absorb.places import Places, find
from kernelpack.kernels.mla_decode_absorb.problem import NOPE, Problem


def expected(problem: Problem, arrays: Arrays) -> dict[str, Expected]:
    """Absorbed and rotated queries, rows and their scales; those that the call asks for."""
    places = find(problem, arrays) if problem.rotates or problem.appends else None
    found = {"out": _queries(problem, arrays, places)} if problem.h else {}
    return found | (_rows(problem, arrays, places) if places and problem.row else {})


def _queries(problem: Problem, arrays: Arrays, places: Places | None) -> Expected:
    shape = (problem.t, problem.h, problem.width)
    value, bound = np.full(shape, np.nan), np.zeros(shape)
    steps = (problem.q_token_stride, problem.q_head_stride, 1)
    q = _apart(arrays["q"], (*shape[:2], NOPE + problem.rope), steps)
    if problem.absorbs:
        weights = Weights.of(arrays["w_uk"], arrays["w_uk_scale"])
        made = product(q[..., :NOPE], weights)
        value[..., :LATENT], bound[..., :LATENT] = made.value, made.bound
    if problem.rotates and places:
        at = np.maximum(places.positions, 0)
        freqs = arrays["freqs"][at][:, None].repeat(problem.h, 1)
        value[..., LATENT:] = rotate(q[..., NOPE:], freqs)
    return Expected(value=value, bound=bound)


def _rows(problem: Problem, arrays: Arrays, places: Places) -> dict[str, Expected]:
    row = problem.row
    assert row, "rows are written"
    new = _apart(arrays["new_kv"], (problem.t, problem.width), (problem.new_stride, 1))
    gamma = arrays["gamma"].view(problem.gamma.numpy)
    latent, rope = normalise(new[:, :LATENT], gamma, problem.epsilon), new[:, LATENT:]
    if problem.rope:
        rope = rotate(rope, arrays["freqs"][np.maximum(places.positions, 0)])
    made, beside = rows_of(
        row, latent, rope, problem.scales_per_row, power_of_two=problem.power_of_two
    )
    kv = np.full((problem.kv_rows, row.bytes), np.nan)
    scales = np.full((problem.kv_rows, problem.scales_per_row), np.nan)
    there = places.rows >= 0
    kv[places.rows[there]], scales[places.rows[there]] = made[there], beside[there]
    found = {"kv": _exactly(kv)}
    return found | ({"kv_scales": _exactly(scales)} if problem.scales_per_row else {})


def _apart(values: NDArray[Any], shape: tuple[int, ...], steps: tuple[int, ...]) -> NDArray[Any]:
    """An array of bf16 out of memory with these steps."""
    assert values.dtype == DType.BF16.numpy, "values are of bf16"
    strides = tuple(step * values.itemsize for step in steps)
    return np.lib.stride_tricks.as_strided(values, shape, strides)


def _exactly(value: NDArray[np.float64]) -> Expected:
    return Expected(value=value, bound=np.zeros(value.shape))
