"""The cases of sparse MLA prefill to verify: every rule at its edges, and a token at full size."""

from collections.abc import Iterator
from dataclasses import replace

from kernelpack.formats.dtype import DType
from kernelpack.kernels.sparse_mla_prefill.inputs import Case
from kernelpack.kernels.sparse_mla_prefill.rows import BF16, Rows

HEADS = (1, 5, 8, 16, 24, 32, 64, 96, 128)
TOPK = (1, 37, 63, 64, 65, 128, 129, 191, 256, 300, 512)
PAGES = ((1, 300), (3, 60), (16, 20), (64, 5), (128, 3))  # page, blocks
_EXACT_LENGTHS = ("1", "63", "64", "65", "127", "128", "129")

_MOST_SCALES = 16  # or 18: of blocks of 32 columns

# name, then what is not as in Case: several rules at once, the most telling first
_TELLING: tuple[tuple[str, dict[str, object]], ...] = (
    (
        "telling_garbage",
        {
            "t": 3,
            "h": 5,
            "topk": 191,
            "spare": 5,
            "page": 3,
            "blocks": 80,
            "layers": 2,
            "layer": 1,
            "indices": "bad",
            "lengths": "garbage",
            "sink": True,
            "dead_lse": float("-inf"),
            "q_gap": 8,
        },
    ),
    ("telling_rising", {"t": 1, "h": 65, "topk": 300, "values": "rising", "sink": True}),
    ("telling_few", {"t": 2, "h": 8, "topk": 129, "indices": "invalid", "outputs": False}),
)

# For rows of fp8, which have many kinds: mistakes of their own parts of a kernel.
_FP8 = (
    *(name for name, _ in _TELLING),
    *("heads_5", "heads_64", "heads_128", "topk_1", "topk_129", "topk_300", "page_3"),
    *("indices_bad", "indices_last", "indices_invalid_sink", "lengths_garbage", "length_65"),
    *("values_shifted", "values_peaked", "values_rising", "values_falling"),
    *("layers_last", "q_apart", "no_outputs", "all_rules"),
    *("full_size", "full_size_few_heads", "s_q_213_pool_1840_topk_256_h_128", "serving_topk_2048"),
)


def cases(rows: Rows = BF16) -> tuple[Case, ...]:
    """Every case to verify, for one kind of rows."""
    return _of((*_small(), *_large()), rows)


def small(rows: Rows = BF16) -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return _of(tuple(_small()), rows)


def telling(rows: Rows = BF16) -> tuple[Case, ...]:
    """The few cases that every variant is verified on, as far as it serves them.

    The first has every rule. Kinds that differ from another one in little have it alone: queries
    of e4m3 in how Q comes in, scales of 64 or 128 columns from those of 32 in a constant.
    """
    is_like_another = rows.q_scales or 1 < rows.kv_scales < _MOST_SCALES
    return small(rows)[: 1 if is_like_another else len(_TELLING)]


def _of(listed: tuple[Case, ...], rows: Rows) -> tuple[Case, ...]:
    return tuple(
        replace(
            case,
            name=f"{rows}_{case.name}",
            row=rows.row,
            kv_scales=rows.kv_scales,
            q_scales=rows.q_scales,
            seed=seed,
        )
        for seed, case in enumerate(listed)
        if rows.row.dtype is DType.BF16 or case.name in _FP8
    )


def _small() -> Iterator[Case]:
    for name, given in _TELLING:
        yield replace(Case(name=name), **given)  # type: ignore[arg-type]
    for h in HEADS:
        yield Case(name=f"heads_{h}", t=1, h=h, lengths="full")
    for topk in TOPK:
        yield Case(name=f"topk_{topk}", t=1, h=24, topk=topk, blocks=6)
    for page, blocks in PAGES:
        yield Case(name=f"page_{page}", page=page, blocks=blocks, indices="bad", lengths="uneven")
    yield from _rules()
    for length in _EXACT_LENGTHS:
        yield Case(name=f"length_{length}", t=1, topk=150, spare=1, lengths=length, sink=True)


def _rules() -> Iterator[Case]:
    """Each rule alone."""
    for indices in ("bad", "duplicates", "invalid", "last", "first", "sparse"):
        yield Case(name=f"indices_{indices}", h=40, topk=256, indices=indices)
        yield Case(name=f"indices_{indices}_sink", topk=150, indices=indices, sink=True)
    for lengths in ("full", "uneven", "zero", "garbage"):
        yield Case(name=f"lengths_{lengths}", t=5, topk=200, spare=56, lengths=lengths)
    for values in ("shifted", "peaked", "rising", "falling"):
        yield Case(
            name=f"values_{values}", h=64, topk=300, blocks=6, indices="shared", values=values
        )
    yield Case(name="layers_first", layers=2, layer=0, page=16, blocks=20)
    yield Case(name="layers_last", layers=3, layer=2, page=16, blocks=20, indices="bad")
    yield Case(name="one_block", page=200, blocks=1)
    yield Case(name="one_row", page=1, blocks=1, topk=70)
    yield Case(name="pool_smaller_than_topk", page=32, blocks=1, topk=512, indices="bad")
    yield Case(name="q_apart", t=3, h=20, q_gap=64)
    yield Case(name="dead_lse_down", indices="invalid", dead_lse=float("-inf"), sink=True)
    yield Case(name="no_outputs", h=128, t=1, outputs=False, sink=True)
    yield Case(name="all_rules", h=48, t=4, spare=3, indices="bad", lengths="uneven", sink=True)


def _large() -> Iterator[Case]:
    """Those for a GPU; the first is one token at full size."""
    yield Case(name="full_size", t=1, h=128, topk=2048, page=64, blocks=128, lengths="full")
    yield Case(name="full_size_few_heads", t=1, h=8, topk=2048, page=64, blocks=128)
    for s_q, pool, topk in ((62, 592, 128), (213, 1840, 256), (62, 1592, 384), (213, 1521, 512)):
        for h in (64, 128):
            yield _flash_mla(s_q, pool, topk, h)
    for s_q, pool, topk in ((62, 95, 128), (213, 153, 256), (213, 114, 384)):
        yield _flash_mla(s_q, pool, topk, 128)
    for topk in (512, 1024, 2048):
        yield Case(name=f"serving_topk_{topk}", t=64, h=16, topk=topk, blocks=512, lengths="full")
    yield Case(name="lse_near_zero", t=3, topk=2048, blocks=64, values="cancelling")


def _flash_mla(s_q: int, pool: int, topk: int, h: int) -> Case:
    """One of FlashMLA's tests, its rows in one block."""
    return Case(
        name=f"s_q_{s_q}_pool_{pool}_topk_{topk}_h_{h}",
        t=s_q,
        h=h,
        topk=topk,
        page=pool,
        blocks=1,
        lengths="uneven",
        sink=True,
        values="shifted",
    )
