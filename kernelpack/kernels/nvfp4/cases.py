"""The cases of grouped GEMMs to verify: the public grid, model shapes, every rule at its edges."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from kernelpack.formats.dtype import DType
from kernelpack.kernels.nvfp4.problem import Case

C = TypeVar("C", bound=Case)

# tokens, ids: those of the op's public tests, at n 2048, k 1024 and 6 experts
_GRID = (
    ((512, 1000, 2000, 3000), (0, 3, 2, 4)),
    ((65, 1027, 386), (2, 0, 1)),
    ((128, 256, 1024), (0, 2, 1)),
    ((256, 519, 1037, 129), (3, 1, 0, 5)),
    ((127, 257, 513, 1025), (1, 4, 2, 0)),
    ((31, 97, 63), (2, 0, 1)),
    ((0, 1, 2, 3), (3, 0, 2, 1)),
    ((128, 256, 512), (-1, 0, 2)),
    ((0, 3, 1, 2), (-1, 2, -1, 0)),
)
# (n, k) of models' experts, and tokens of 1 to 9 experts
_MODELS = ((4096, 7168), (7168, 2048), (512, 7168), (7168, 256), (2048, 4096), (1856, 2688))
_LOADS = (
    ("single_tokens", (1,) * 9),
    ("one_busy", (8, *(1,) * 8)),
    ("forty_each", (40,) * 9),
    ("full_tiles", (128,) * 4),
    ("primes", (2, 7, 13, 61, 127, 131)),
)
# name, tokens, ids: the rules about groups, at n 72, k 96 and 4 experts
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
    ("primes", (2, 3, 5, 7, 11, 13, 17), (3, 2, 1, 0, 3, 2, 1)),
    ("repeated_ids", (7, 20, 1, 9), (1, 1, 3, 1)),
    ("atoms_not_aligned", (65, 130, 3), (2, 0, 1)),
    ("groups_40_mostly_empty", (0,) * 30 + (3,) + (0,) * 8 + (9,), tuple(i % 4 for i in range(40))),
    ("counts_1_to_33", tuple(range(1, 34)), tuple(i % 4 for i in range(33))),
    ("counts_33_to_1", tuple(range(33, 0, -1)), tuple(i % 4 for i in range(33))),
    ("groups_384_mostly_idle", (0, 0, 0, 2) * 96, tuple(i % 5 - 1 for i in range(384))),
)
_COUNTS = (*range(1, 34), 63, 64, 65, 127, 128, 129, 255, 256, 257)
_COLUMNS = (8, 16, 56, 64, 72, 120, 128, 136, 192, 256, 264, 1000, 1856)
_LENGTHS = (32, 64, 96, 128, 160, 224, 256, 288, 512, 544, 1056, 2080, 7168)
# name, then n, k, tokens, ids: several rules at once, tiles of every size left ragged. The first
# has more tiles than a small device has blocks, the second many steps along K, the third rows of
# two scale atoms after a group that is not aligned to one.
_TELLING = (
    ("telling_groups", 136, 160, (5, 0, 20, 3, 40), (1, 0, 2, -1, 1)),
    ("telling_steps", 72, 1824, (3, 0, 20, 9), (2, 1, 0, -1)),
    ("telling_atoms", 136, 288, (9, 150), (2, 1)),
)
_SMALL = (
    *(name for name, *_ in _TELLING),
    *(name for name, *_ in _GROUPS if not name.startswith(("counts", "groups_384"))),
    *("count_1", "count_9", "count_17", "count_33", "count_65", "count_129"),
    *("columns_8", "columns_64", "columns_136", "columns_264"),
    *("length_32", "length_64", "length_96", "length_160", "length_256", "length_544"),
    *("length_2080", "largest"),
)


def cases(make: Callable[..., C], out_dtype: DType = DType.BF16) -> tuple[C, ...]:
    """Every case to verify, for one type of output; `make` is the kernel's own kind of case."""
    models = _models(make) if out_dtype is DType.BF16 else ()
    listed = (*_rules(make), *_grid(make), *models)
    return tuple(replace(case, out_dtype=out_dtype, seed=seed) for seed, case in enumerate(listed))


def small(listed: tuple[C, ...]) -> tuple[C, ...]:
    """Those of few bytes that still cover every rule."""
    return tuple(case for case in listed if case.name in _SMALL)


def telling(listed: tuple[C, ...]) -> tuple[C, ...]:
    """The few that every variant is verified on, as far as it serves them."""
    return tuple(case for case in listed if case.name.startswith("telling"))


def _rules(make: Callable[..., C]) -> Iterator[C]:
    for name, n, k, counted, used in _TELLING:
        yield make(name=name, e=3, n=n, k=k, tokens=counted, ids=used)
    for rule, tokens, ids in _GROUPS:
        yield make(name=rule, e=4, n=72, k=96, tokens=tokens, ids=ids)
    for count in _COUNTS:
        yield make(name=f"count_{count}", e=2, n=72, k=128, tokens=(count,), ids=(1,))
    for n in _COLUMNS:
        yield make(name=f"columns_{n}", e=3, n=n, k=96, tokens=(9, 21), ids=(2, 0))
    for k in _LENGTHS:
        yield make(name=f"length_{k}", e=3, n=72, k=k, tokens=(5, 18), ids=(2, 0))
    yield make(name="largest", e=2, n=72, k=160, tokens=(9, 21), ids=(1, 0), is_largest=True)


def _grid(make: Callable[..., C]) -> Iterator[C]:
    for tokens, ids in _GRID:
        name = f"grid_tokens_{'_'.join(map(str, tokens))}"
        yield make(name=name, e=6, n=2048, k=1024, tokens=tokens, ids=ids)


def _models(make: Callable[..., C]) -> Iterator[C]:
    for n, k in _MODELS:
        for load, tokens in _LOADS:
            ids = tuple(reversed(range(len(tokens))))
            name = f"model_n{n}_k{k}_{load}"
            yield make(name=name, e=len(tokens), n=n, k=k, tokens=tokens, ids=ids)
