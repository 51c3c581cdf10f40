"""The cases that the NVFP4 quantiser is verified on: rules about groups, shapes and values."""

from collections.abc import Iterator
from dataclasses import replace

from kernelpack.formats.dtype import DType
from kernelpack.kernels.nvfp4_quantize.problem import Case
from kernelpack.kernels.nvfp4_quantize.values import VALUES

# name, k, tokens, ids, spare row blocks: several rules at once, for every variant; the last has
# more work than a small device has warps
_TELLING_GROUPS = (
    ("telling_groups", 96, (5, 0, 130, 3, 20), (1, 0, 2, -1, 1), 1),
    ("telling_golden", 32, (65, 1027, 386), (2, 0, 1), 0),
    ("telling_edges", 64, (128, 33, 1), (0, -1, 2), 2),
)
_TELLING_ROWS = (
    ("telling_rows", 96, 150, "normal"),
    ("telling_bits", 160, 40, "bits"),
    ("telling_long_rows", 1056, 133, "normal"),
)
_GROUPS = (
    ("inactive_first", (3, 5, 2), (-1, 0, 1)),
    ("inactive_last", (3, 5, 130), (2, 0, -1)),
    ("inactive_all", (3, 130, 2), (-1, -1, -1)),
    ("empty_first", (0, 0, 5, 2), (2, 1, 0, 1)),
    ("empty_middle", (3, 0, 0, 130), (2, 0, -1, 1)),
    ("empty_last", (3, 5, 0, 0), (2, 0, 1, 0)),
    ("counts_0_to_3", (0, 1, 2, 3), (0, 2, 1, 2)),
    ("inactive_in_turn", (0, 3, 1, 2), (-1, 2, -1, 0)),
    ("repeated_ids", (7, 20, 1, 9), (1, 1, 2, 1)),
    ("single_tokens", (1,) * 9, (0, 1, 2, 0, -1, 0, 1, 2, 0)),
    ("groups_31", (2,) * 31, tuple(i % 3 for i in range(31))),
    ("groups_33", (2,) * 33, tuple(i % 3 for i in range(33))),
    (
        "groups_70_mostly_empty",
        (0,) * 40 + (3,) + (0,) * 28 + (9,),
        tuple(i % 3 for i in range(70)),
    ),
)
# too large for an emulator
_MANY = (
    ("groups_400", (1, 0, 3, 0) * 100, tuple(i % 3 for i in range(400))),
    ("groups_1100", (0, 2) * 550, tuple(i % 4 - 1 for i in range(1100))),
    ("groups_of_the_gemm", (512, 1000, 2000, 3000), (0, 3, 2, 4)),
    ("groups_with_skips", (128, 256, 512), (-1, 0, 2)),
    ("groups_of_primes", (127, 257, 513, 1025), (3, 1, 0, 2)),
)
_ROWS = (1, 7, 8, 31, 32, 33, 127, 128, 129, 257)
_COLUMNS = (32, 64, 96, 128, 160, 544, 1024)
_SERVING = ((1, 7168), (64, 7168), (4096, 2048), (2048, 7168))


def cases(dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """Every case to verify, for one type."""
    listed = (*_small(), *_large())
    return tuple(replace(case, dtype=dtype, seed=seed) for seed, case in enumerate(listed))


def small(dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return cases(dtype)[: len(tuple(_small()))]


def telling(dtype: DType = DType.BF16) -> tuple[Case, ...]:
    """The few cases that every variant is verified on, as far as it serves them."""
    return cases(dtype)[: len(tuple(_telling()))]


def _telling() -> Iterator[Case]:
    for name, k, tokens, ids, spare in _TELLING_GROUPS:
        yield Case(name=name, k=k, tokens=tokens, ids=ids, e=3, spare_blocks=spare)
    for name, k, t, values in _TELLING_ROWS:
        yield Case(name=name, k=k, tokens=(t,), values=values)


def _small() -> Iterator[Case]:
    yield from _telling()
    for name, tokens, ids in _GROUPS:
        yield Case(name=name, k=96, tokens=tokens, ids=ids, e=3)
    for values in VALUES:
        yield Case(name=f"values_{values}", k=320, tokens=(40,), values=values)
        name = f"values_{values}_of_groups"
        yield Case(name=name, k=64, tokens=(9, 3, 30), ids=(2, 0, 1), e=3, values=values)
    for t in _ROWS:
        yield Case(name=f"rows_{t}", k=32, tokens=(t,))
    for k in _COLUMNS:
        yield Case(name=f"columns_{k}", k=k, tokens=(5,))
    yield Case(name="spare_blocks", k=96, tokens=(5,), spare_blocks=2)
    yield Case(name="spare_blocks_of_groups", k=96, tokens=(5, 1), ids=(1, 0), e=2, spare_blocks=2)


def _large() -> Iterator[Case]:
    for name, tokens, ids in _MANY:
        yield Case(name=name, k=192, tokens=tokens, ids=ids, e=5)
    for t, k in _SERVING:
        yield Case(name=f"serving_t{t}_k{k}", k=k, tokens=(t,))
        name = f"serving_t{8 * t}_k{k}_of_groups"
        yield Case(name=name, k=k, tokens=(t,) * 8, ids=tuple(range(8)), e=8)
    for values in VALUES:
        yield Case(name=f"many_{values}", k=4096, tokens=(300,), values=values)
