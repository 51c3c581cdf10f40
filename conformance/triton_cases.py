"""What `triton_emit.py` compiles of `triton_kernels.py`, and the launches of `ptx_host.py`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from conformance.case import Argument, Case, Map, Numbers, Places, Result, product
from kernelpack.formats import narrow, packing
from kernelpack.formats.dtype import DType

_EPS = np.float32(1e-5)
_HALF = np.finfo(np.float16).eps
_ROWS, _WIDTH = 3, 1000
_HEAD = 64
GROUPS = ((128, 128, 64), (100, 192, 128), (256, 64, 72))
"""M, N, K of the grouped launch: edges in the midst of a tile too."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """How a kernel is compiled: the types of its parameters, its constants, Triton's options."""

    kernel: str
    types: Mapping[str, str]
    constants: Mapping[str, int | bool]
    options: Mapping[str, int] = field(default_factory=dict)


def _types(words: str) -> dict[str, str]:
    return dict(word.split(":") for word in words.split())


_TILE = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}
_MAPPED = _types(
    "a:tensordesc<fp16[128,64]> b:tensordesc<fp16[128,64]> c:tensordesc<fp16[128,128]>"
    " M:i32 N:i32 K:i32"
)
_ATTENDED = _types(
    "q:tensordesc<fp16[128,64]> k:tensordesc<fp16[64,64]> v:tensordesc<fp16[64,64]>"
    " out:tensordesc<fp16[128,64]> scale:fp32"
)
_HEADS = {"BLOCK_M": 128, "BLOCK_N": 64, "HEAD": _HEAD}
_SCALED = _types("a:*u8 a_scale:*fp8e4nv b:*u8 b_scale:*fp8e4nv c:*fp32 N:i32 K:i32")

COMPILED = {
    "layer_norm": Compiled(
        "layer_norm",
        _types("x:*fp16 weight:*fp16 bias:*fp16 out:*fp16 eps:fp32"),
        {"N": _WIDTH, "BLOCK": 1024},
    ),
    "matmul": Compiled("matmul", _types("a:*fp16 b:*fp16 c:*fp16 M:i32 N:i32 K:i32"), _TILE),
    "matmul_tma": Compiled("matmul_tma", _MAPPED, {**_TILE, "PROGRAMS": 2, "SPECIALISED": False}),
    "matmul_tma_ws": Compiled("matmul_tma", _MAPPED, {**_TILE, "PROGRAMS": 2, "SPECIALISED": True}),
    "matmul_scaled": Compiled(
        "matmul_scaled",
        _SCALED,
        {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP": 16},
    ),
    "attention": Compiled("attention", _ATTENDED, {**_HEADS, "SPECIALISED": False}),
    "attention_ws": Compiled("attention", _ATTENDED, {**_HEADS, "SPECIALISED": True}),
    "grouped_matmul": Compiled(
        "grouped_matmul", _types("places:*i64 sizes:*i32 GROUPS:i32"), {**_TILE, "PROGRAMS": 2}
    ),
}


def _half(rng: np.random.Generator, *shape: int) -> NDArray[np.float16]:
    return rng.standard_normal(shape).astype(np.float16)


def _empty(*shape: int, dtype: type[np.floating] = np.float16) -> NDArray[np.floating]:
    return np.full(shape, np.nan, dtype)


def _wide(array: NDArray[np.float16]) -> Numbers:
    return array.astype(np.float64)


def _sizes(*sizes: int) -> tuple[Argument, ...]:
    return tuple(np.int32(size) for size in sizes)


def _described(array: NDArray[np.float16]) -> tuple[Argument, ...]:
    """A tensor map as Triton passes it: the map, then its shape and its strides."""
    strides = (np.int64(stride // array.itemsize) for stride in array.strides)
    return (Map(array), *_sizes(*array.shape), *strides)


def layer_norm(rng: np.random.Generator) -> Case:
    """Rows that do not fill their block."""
    x, weight, bias = _half(rng, _ROWS, _WIDTH), _half(rng, _WIDTH), _half(rng, _WIDTH)
    out, wide = _empty(_ROWS, _WIDTH), _wide(x)
    centred = wide - wide.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt(wide.var(axis=1, keepdims=True) + float(_EPS))
    want = centred * scale * _wide(weight) + _wide(bias)
    size = np.abs(centred * scale * _wide(weight)) + np.abs(_wide(bias))
    bound = 1e-5 * size + _HALF * np.abs(want)
    return Case((x, weight, bias, out, _EPS), (_ROWS, 1, 1), (Result(out, want, bound),))


def matmul(rng: np.random.Generator) -> Case:
    """Sizes that no tile divides."""
    m, n, k = 208, 144, 176
    a, b, c = _half(rng, m, k), _half(rng, k, n), _empty(m, n)
    right = product(c, _wide(a), _wide(b).T)
    return Case((a, b, c, *_sizes(m, n, k)), (2, 2, 1), (right,))


def matmul_tma(rng: np.random.Generator) -> Case:
    """Two programs, two tiles each."""
    m, n, k = 256, 256, 192
    a, b, c = _half(rng, m, k), _half(rng, n, k), _empty(m, n)
    arguments = (*_described(a), *_described(b), *_described(c), *_sizes(m, n, k))
    return Case(arguments, (2, 1, 1), (product(c, _wide(a), _wide(b)),))


def matmul_scaled(rng: np.random.Generator) -> Case:
    """NVFP4: e2m1 with a scale of e4m3 for each sixteen."""
    m, n, k, group = 128, 256, 256, 16
    four, scale = DType.parse("e2m1"), DType.parse("e4m3")
    operands, meant = [], []
    for rows in (m, n):
        codes = rng.integers(0, 16, (rows, k)).astype(np.uint8)
        factors = rng.uniform(0.25, 2, (rows, k // group)).astype(np.float32)
        scales = narrow.encode(scale, factors, satfinite=True).astype(np.uint8)
        of_each = np.repeat(narrow.decode(scale, scales).astype(np.float64), group, axis=1)
        operands += [packing.pack(codes, 4), scales]
        meant.append(narrow.decode(four, codes).astype(np.float64) * of_each)
    c = _empty(m, n, dtype=np.float32)
    return Case((*operands, c, *_sizes(n, k)), (1, 2, 1), (product(c, *meant),))


def attention(rng: np.random.Generator) -> Case:
    """One causal head; the first block of queries sees two blocks of keys, the second four."""
    queries, scale = 256, np.float32(0.125)
    q, k, v = (_half(rng, queries, _HEAD) for _ in range(3))
    out = _empty(queries, _HEAD)
    scores = np.where(np.tri(queries) > 0, _wide(q) @ _wide(k).T * float(scale), -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    want, size = weights @ _wide(v), weights @ np.abs(_wide(v))
    bound = _HALF * (size + np.abs(want))  # weights are rounded to fp16, and so is the output
    described = (word for array in (q, k, v, out) for word in _described(array))
    return Case((*described, scale), (2, 1, 1), (Result(out, want, bound),))


def grouped_matmul(rng: np.random.Generator) -> Case:
    """Three products of different sizes over two programs."""
    arrays, results = [], []
    for m, n, k in GROUPS:
        a, b, c = _half(rng, m, k), _half(rng, n, k), _empty(m, n)
        arrays += [a, b, c]
        results.append(product(c, _wide(a), _wide(b)))
    sizes = np.array(GROUPS, np.int32)
    return Case((Places(tuple(arrays)), sizes, *_sizes(len(GROUPS))), (2, 1, 1), tuple(results))


CASES: dict[str, Callable[[np.random.Generator], Case]] = {
    "layer_norm": layer_norm,
    "matmul": matmul,
    "matmul_tma": matmul_tma,
    "matmul_tma_ws": matmul_tma,
    "matmul_scaled": matmul_scaled,
    "attention": attention,
    "attention_ws": attention,
    "grouped_matmul": grouped_matmul,
}
