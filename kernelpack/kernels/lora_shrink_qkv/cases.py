"""The cases of LoRA shrink to verify: the public grid, and every rule at its edges."""

from collections.abc import Iterator
from dataclasses import replace

from kernelpack.formats.dtype import DType
from kernelpack.kernels.lora_shrink_qkv.problem import Case

# adapters, (n, k), tokens, ids: those of the op's public tests
_GRID = (
    (6, (192, 1024), (27, 1500, 300, 150), (0, 3, 2, 4)),
    (1, (256, 256), (128,), (0,)),
    (1, (16, 256), (128,), (0,)),
    (1, (1024, 256), (200,), (0,)),
    (1, (512, 1024), (256,), (0,)),
    (4, (256, 64), (128,), (2,)),
    (4, (256, 64), (32, 96, 224), (2, 0, 1)),
    (4, (256, 64), (10, 60), (2, 0)),
    (4, (2880, 512), (10, 60), (2, 0)),
    (4, (5760, 512), (10, 60), (2, 0)),
    (4, (768, 1024), (128, 256), (0, 2)),
    (6, (1280, 1024), (27, 1500, 300, 150), (0, 3, 2, 4)),
    (6, (1280, 16), (27, 1500, 300, 150), (0, 3, 2, 4)),
    (6, (16, 1024), (27, 1500, 300, 150), (0, 3, 2, 4)),
)
# name, tokens, ids: the rules about groups, at rank 16 and k 136
_GROUPS = (
    ("inactive_first", (3, 5, 2), (-1, 0, 1)),
    ("inactive_middle", (3, 5, 2), (2, -1, 1)),
    ("inactive_last", (3, 5, 2), (2, 0, -1)),
    ("inactive_all", (3, 70, 2), (-1, -1, -1)),
    ("inactive_long", (70, 130, 20), (0, -1, 1)),
    ("empty_first", (0, 5, 2), (2, 0, 1)),
    ("empty_middle", (3, 0, 0, 2), (2, 0, 0, 1)),
    ("empty_last", (3, 5, 0), (2, 0, 1)),
    ("empty_inactive", (0, 5, 0), (-1, 0, -1)),
    ("single_tokens", (1,) * 9, (0, 1, 2, 3, -1, 0, 1, 2, 3)),
    ("counts_1_to_33", tuple(range(1, 34)), tuple(i % 4 for i in range(33))),
    ("counts_33_to_1", tuple(range(33, 0, -1)), tuple(i % 4 for i in range(33))),
    ("repeated_ids", (7, 20, 1, 9), (1, 1, 3, 1)),
    ("many_groups", (2,) * 200, tuple(i % 4 for i in range(200))),
)
_COUNTS = (*range(1, 34), 63, 64, 65, 127, 128, 129, 255, 256, 257)
_RANKS = (8, 16, 24, 32, 40, 64, 72, 96, 128, 136, 200, 264, 1000)
_HIDDEN = (8, 16, 24, 56, 64, 72, 128, 136, 200, 320, 512, 520, 1024, 4096, 7168)
# (m, k, n, g), groups equal: shapes that servers run
_SERVING = (
    (8, 4096, 16, 4),
    (16, 7168, 16, 4),
    (128, 7168, 16, 32),
    (128, 7168, 64, 32),
    (2048, 4096, 16, 4),
)
# name, then n, k, tokens, ids: several rules at once, tiles of every size left ragged. The first
# has more tiles than a small device has blocks, the second slices of K, the third neighbours
# that share b; the last two are for kernels that need k to be a multiple of 64.
_TELLING = (
    ("telling_groups", 24, 136, (5, 0, 130, 3, 20), (1, 0, 2, -1, 1)),
    ("telling_slices", 24, 456, (3, 0, 20, 9), (2, 1, 0, -1)),
    ("telling_long", 24, 136, (270,), (1,)),
    ("telling_aligned", 24, 320, (5, 0, 66, 3, 20), (1, 0, 2, -1, 1)),
    ("telling_aligned_slices", 40, 1088, (3, 0, 7, 9), (2, 1, 0, -1)),
)
# small problems for which selection takes the tiles of large ones, on a small device
_UNLIKELY = (
    ("one_token_rank_64", 64, 136, (1,), (2,)),
    ("one_token_rank_96", 96, 256, (1,), (0,)),
    ("one_token_each", 24, 64, (1, 1, 1), (2, 0, 1)),
    ("tokens_9_rank_72", 72, 64, (9,), (0,)),
    ("tokens_130_rank_40", 40, 64, (130,), (1,)),
    ("tokens_130_rank_72", 72, 136, (130,), (0,)),
)
_SMALL = (
    *(name for name, *_ in _UNLIKELY),
    *(name for name, *_ in _TELLING),
    *("inactive_first", "inactive_middle", "inactive_last", "inactive_all"),
    *("empty_first", "empty_middle", "empty_last", "single_tokens", "repeated_ids"),
    *("count_1", "count_17", "count_33", "rank_8", "rank_24", "rank_40"),
    *("hidden_8", "hidden_16", "hidden_72", "hidden_136", "hidden_320", "hidden_512"),
    *("hidden_520", "hidden_1024", "rows_after"),
)


def cases(dtype: DType = DType.BF16, out_dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """Every case to verify, for one pair of types."""
    return tuple(
        replace(case, dtype=dtype, out_dtype=out_dtype, seed=seed)
        for seed, case in enumerate(_listed())
    )


def small(dtype: DType = DType.BF16, out_dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return tuple(case for case in cases(dtype, out_dtype) if case.name in _SMALL)


def telling(dtype: DType = DType.BF16, out_dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """The few cases that every variant is verified on, as far as it serves them."""
    named = {case.name: case for case in cases(dtype, out_dtype)}
    return tuple(named[name] for name, *_ in _TELLING)


def _listed() -> Iterator[Case]:
    for g, (n, k), tokens, ids in _GRID:
        counts = "_".join(str(count) for count in tokens)
        name = f"grid_g{g}_n{n}_k{k}_tokens_{counts}"
        yield Case(name=name, g=g, n=n, k=k, tokens=tokens, ids=ids)
    for rule, counted, used in _GROUPS:
        yield Case(name=rule, g=4, n=16, k=136, tokens=counted, ids=used)
    for count in _COUNTS:
        yield Case(name=f"count_{count}", g=2, n=16, k=128, tokens=(count,), ids=(1,))
    for n in _RANKS:
        yield Case(name=f"rank_{n}", g=3, n=n, k=72, tokens=(9, 21), ids=(2, 0))
    for k in _HIDDEN:
        yield Case(name=f"hidden_{k}", g=3, n=16, k=k, tokens=(5, 18), ids=(2, 0))
    yield Case(name="rows_after", g=3, n=16, k=72, tokens=(5, 18), ids=(1, 2), rows_after=50)
    yield Case(
        name="rows_after_rank_128", g=3, n=128, k=256, tokens=(5, 90), ids=(1, 2), rows_after=7
    )
    for m, k, n, g in _SERVING:
        name = f"serving_m{m}_k{k}_n{n}_g{g}"
        yield Case(name=name, g=g, n=n, k=k, tokens=(m // g,) * g, ids=tuple(range(g)))
    for name, n, k, counted, used in (*_TELLING, *_UNLIKELY):
        yield Case(name=name, g=3, n=n, k=k, tokens=counted, ids=used, rows_after=3)
