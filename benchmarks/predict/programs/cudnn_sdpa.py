"""Launch an attention kernel of cudnn-frontend once, as its own host does.

`cudnn_sdpa.py PATH BATCH HEADS KV_HEADS DIM QUERIES KEYS [check]`. PATH is what `cudnn_emit.py`
wrote. Tensors are (batch, tokens, heads, values) of bf16. With 512 values a head the values are the
keys, as in absorbed MLA. `check` fills them and compares with a causal reference, its diagonal
at the bottom right.
"""

import json
import math
import sys
from ctypes import c_char, c_float, c_int, c_longlong, c_void_p
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[3]))

from conformance.device import Device

Sizes = tuple[int, ...]
Array = np.ndarray[Any, Any]
LATENT = 512
"""Values of a head that is both key and value."""


def view(pointer: c_void_p, extent: int) -> Any:
    """A vector as CuTe passes it: where it is, how long it is."""
    packed = (pointer.value or 0).to_bytes(8, "little") + extent.to_bytes(8, "little")
    return (c_char * 16).from_buffer_copy(packed)


def tensors(sizes: Sizes, checked: bool) -> tuple[Array, ...]:
    """Q, K, V and O; without values they take no memory."""
    batch, heads, kv_heads, dim, queries, keys = sizes
    shapes = [(batch, queries, heads, dim), (batch, keys, kv_heads, dim)]
    if not checked:
        q, k = (np.empty(shape, ml_dtypes.bfloat16) for shape in shapes)
        return q, k, k if dim == LATENT else np.empty_like(k), np.empty_like(q)
    rng = np.random.default_rng(1)
    q, k, v = (
        rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in (*shapes, shapes[1])
    )
    return q, k, k if dim == LATENT else v, np.zeros_like(q)


def places(device: Device, arrays: tuple[Array, ...], checked: bool) -> list[c_void_p]:
    """Where they are on the device, one array once."""
    found = {}
    for array in arrays:
        if id(array) not in found:
            found[id(array)] = device.put(array) if checked else device.room(array.nbytes)
    return [found[id(array)] for array in arrays]


def grid(told: dict[str, Any], sizes: Sizes) -> tuple[int, Any]:
    """Query tiles, heads and sequences: three dimensions, or one where the kernel maps them."""
    batch, heads, _, _, queries, _ = sizes
    clusters = -(-queries * told["packed"] // told["rows"])
    dims = (clusters * told["cluster"], heads // told["packed"], batch)
    return clusters * told["pair"], (math.prod(dims), 1, 1) if told["flat"] else dims


def reference(q: Array, k: Array, v: Array, *, causal: bool = True) -> Array:
    """Attention in float64."""
    group, shift = q.shape[2] // k.shape[2], k.shape[1] - q.shape[1]
    q, k, v = (array.astype(np.float64) for array in (q, *(x.repeat(group, 2) for x in (k, v))))
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[3])
    later = np.arange(k.shape[1]) > np.arange(q.shape[1])[:, None] + shift
    weights = np.exp(np.where(later & causal, -np.inf, scores))
    return np.einsum("bhqk,bkhd->bqhd", weights / weights.sum(-1, keepdims=True), v)


def compare(meant: Array, got: Array) -> int:
    worst = np.abs(got.astype(np.float64) - meant).max()
    print("right" if worst < 0.02 else "wrong", worst)
    return 0 if worst < 0.02 else 1


def main(path: str, *words: str) -> int:
    checked = words[-1] == "check"
    sizes = tuple(int(word) for word in words[:6])
    batch, heads, kv_heads, dim, queries, keys = sizes
    told, device = json.loads(Path(path).with_suffix(".json").read_text()), Device()
    arrays = tensors(sizes, checked)
    where = places(device, arrays, checked)
    maps = [
        device.tensor_map(place, array, box, {32: 1, 64: 2, 128: 3}[width])
        for place, array, (box, width) in zip(where, arrays, told["maps"], strict=True)
    ]
    supers, dims = grid(told, sizes)
    unused = device.room(128 + 4 * max(heads, batch))
    numbers = (queries, keys, supers, heads // told["packed"], batch, heads // kv_heads)
    arguments = [
        *maps,
        *(view(unused, heads), view(unused, batch), c_void_p(unused.value)),
        *(c_int(number) for number in numbers),
        c_float(math.log2(math.e) / math.sqrt(dim)),
        c_longlong(0),
    ]
    kernel = device.load(Path(path).read_text(), told["entry"])
    block, cluster = (told["threads"], 1, 1), (told["cluster"], 1, 1)
    device.launch(kernel, dims, block, arguments, shared=told["shared"], cluster=cluster)
    if not checked:
        return device.cuda.cudaDeviceSynchronize()
    device.get(where[3], arrays[3])
    return compare(reference(*arrays[:3]), arrays[3])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
