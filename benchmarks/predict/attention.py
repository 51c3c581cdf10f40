"""Calls of measured shapes of MLA on a library that notes them.

Queries and rows are zeros. A token's keys are scattered over the pool, each once: the benchmarks
choose them at random. A function takes a row of a benchmark's results.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.predict.calls import BF16, BYTE, words
from kernelpack import kv, ops
from kernelpack.predict.planned import PlannedLibrary

Row = Mapping[str, Any]
LATENT, ROPE, NOPE, PAGE = 512, 64, 128, 64
INLINE_SCALES = 656  # bytes of a row that has its scales in it
KEYS, MOST_ROWS = 8192, 131_072  # of a sequence, and of the pool, in decode attention
DECODE_SCALE = 192**-0.5


def scattered(tokens: int, topk: int, pool: int, seed: int = 0) -> NDArray[np.int32]:
    """Places in a pool, a row a token: all different, in no order that a cache likes.

    Steps of a random odd number through a pool whose size is a power of two meet each place once.
    """
    assert pool & (pool - 1) == 0, pool
    random = np.random.default_rng(seed)
    step = random.integers(0, pool // 2, (tokens, 1)) * 2 + 1
    first = random.integers(0, pool, (tokens, 1))
    return words((first + step * np.arange(topk)) % pool)


def sparse_mla_prefill(row: Row, library: PlannedLibrary) -> None:
    """Tokens over listed rows; outputs are lse and the largest logits too."""
    t, h, d, pool = (row[word] for word in ("t", "h", "d", "pool"))
    listed = scattered(t, row["topk"], pool)
    if row["layers"]:
        blocks = np.random.default_rng(1).permutation(pool // PAGE)
        listed = words(blocks[listed // PAGE] * PAGE + listed % PAGE)
    ops.sparse_mla_prefill(
        np.zeros((t, h, d), BF16),
        _stored(row),
        listed,
        d**-0.5,
        lse=np.zeros((t, h), np.float32),
        max_logits=np.zeros((t, h), np.float32),
        library=library,
    )


def _stored(row: Row) -> kv.Operand:
    """A pool of rows in the shape's format; pages of one layer of several where it has layers."""
    pool, layers = row["pool"], row["layers"]
    if layers:
        cache = np.zeros((pool // PAGE, 1, layers, PAGE, 1, row["d"]), BF16)
        return kv.Paged(cache, layer=layers - 1)
    if row["row"] == "bf16":
        return kv.Ragged(np.zeros((pool, row["d"]), BF16))
    width = int(row["row"].removeprefix("fp8_"))
    scales = None if width == INLINE_SCALES else np.zeros(pool, np.float32)
    return kv.Ragged(np.zeros((pool, width), BYTE), scales=scales)


def mla_decode_attention(row: Row, library: PlannedLibrary) -> None:
    """Attention and, with several splits of keys, their combination."""
    batch, h, splits = row["batch"], row["h"], row["partitions"]
    tokens, pool = batch * row["new"], min(batch * KEYS, MOST_ROWS)
    order, pages = np.random.default_rng(1).permutation(pool // PAGE), KEYS // PAGE
    table = order[np.arange(batch * pages) % len(order)].reshape(batch, pages)
    width = int(row["row"].partition("_")[2])
    kind = BF16 if row["row"] == "bf16_576" else BYTE
    cache = kv.Paged(
        np.zeros((pool // PAGE, PAGE, width), kind),
        table=words(table),
        lengths=words([KEYS - row["new"]] * batch),
    )
    given: dict[str, Any] = {"mask": "causal"}
    if row["topk"]:
        given = {"indices": scattered(tokens, row["topk"], pool)}
    parts = {
        "partial_out": np.zeros((splits, tokens, h, LATENT), np.float32),
        "partial_lse": np.zeros((splits, tokens, h), np.float32),
    }
    given |= parts if splits > 1 else {"out": np.zeros((tokens, h, LATENT), BF16)}
    q = np.zeros((tokens, h, LATENT + ROPE), BF16)
    ops.mla_decode_attention(q, cache, DECODE_SCALE, **given, library=library)
    if splits > 1:
        ops.mla_decode_combine(**parts, library=library)


def mla_decode_absorb(row: Row, library: PlannedLibrary) -> None:
    """Before attention; its new rows go into the cache."""
    step = _step(row)
    ops.mla_decode_absorb(step.pop("q"), **step, library=library)


def mla_decode_project(row: Row, library: PlannedLibrary) -> None:
    """After it."""
    x = np.zeros((row["tokens"], row["heads"], LATENT), BF16)
    ops.mla_decode_project(x, *_values(row["heads"]), library=library)


def mla_decode_fp8(row: Row, library: PlannedLibrary) -> None:
    """A whole step: both ends, and attention between them."""
    step, keys = _step(row), row["keys"]
    w_uv, w_uv_scale = _values(row["heads"])
    places = scattered(row["tokens"], row["topk"], keys)
    listed = np.take_along_axis(step["kv"].table, places // PAGE, 1) * PAGE + places % PAGE
    ops.mla_decode_fp8(
        step.pop("q"),
        step.pop("new_kv"),
        step.pop("kv"),
        DECODE_SCALE,
        **step,
        w_uv=w_uv,
        w_uv_scale=w_uv_scale,
        indices=words(listed),
        num_partitions=row["splits"],
        library=library,
    )


def _step(row: Row) -> dict[str, Any]:
    """What a step has that comes before attention; each token is of its own sequence."""
    t, h, keys = row["tokens"], row["heads"], row["keys"]
    pages = -(-(keys + 1) // PAGE)
    table = np.random.default_rng(1).permutation(t * pages).reshape(t, pages)
    blocks = np.zeros((t * pages, PAGE, INLINE_SCALES), BYTE)
    return {
        "q": np.zeros((t, h, NOPE + ROPE), BF16),
        "new_kv": np.zeros((t, LATENT + ROPE), BF16),
        "kv": kv.Paged(blocks, table=words(table), lengths=words([keys] * t)),
        "w_uk": np.zeros((h, LATENT, NOPE), BYTE),
        "w_uk_scale": np.zeros((h, 4, 1), np.float32),
        "freqs": np.zeros((keys + 1, ROPE), np.float32),
        "gamma": np.zeros(LATENT, BF16),
        "row_offsets": words(range(t + 1)),
    }


def _values(h: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """W_UV and its scales."""
    return np.zeros((h, NOPE, LATENT), BYTE), np.zeros((h, 1, 4), np.float32)
