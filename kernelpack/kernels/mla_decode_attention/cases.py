"""The cases of the decode attention to verify: every rule at its edges, and steps at full size."""

from collections.abc import Iterator
from dataclasses import replace

from kernelpack.formats.dtype import DType
from kernelpack.kernels.mla_decode_attention.inputs import Case, Source
from kernelpack.kernels.sparse_mla_prefill.rows import BF16, BF16_LATENT, FP8, Rows

ROWS = (BF16, BF16_LATENT, *FP8)
"""The kinds of rows that there are kernels for."""

HEADS = (1, 5, 8, 16, 24, 32, 64, 96, 128)
PARTITIONS = (*range(1, 9), 13, 17, 256)
_DENSE = Source(topk=0, page=16, blocks=60)
_LONG = Source(topk=0, page=64, blocks=300)

# name, then what is not as in Case: several rules at once, the most telling first
_TELLING: tuple[tuple[str, dict[str, object]], ...] = (
    (
        "telling_two_sources",
        {
            "t": 3,
            "h": 5,
            "partitions": 3,
            "split_units": 2,
            "source": Source(
                topk=191, spare=5, page=3, blocks=80, layers=2, indices="bad", lengths="uneven"
            ),
            "extra": Source(topk=70, spare=2, page=7, blocks=20, layers=3, lengths="garbage"),
            "values": "rising",
            "q_gap": 8,
        },
    ),
    (
        "telling_dense",
        {
            "t": 5,
            "h": 5,
            "source": Source(topk=0, page=16, blocks=30),
            "added": (1, 0, 3),
            "cached": (131, 7, 126),
            "pages": 9,
            "causal": True,
            "sink": True,
            "dead_lse": float("-inf"),
        },
    ),
    ("telling_empty_splits", {"t": 1, "h": 65, "partitions": 3, "source": Source(topk=130)}),
    (
        "telling_whole",
        {
            "t": 3,
            "h": 9,
            "added": (2, 1),
            "cached": (90, -9),
            "lengths_of_sequences": True,
            "source": Source(topk=130, lengths="full", indices="bad"),
            "extra": Source(topk=70, lengths="uneven", page=16, blocks=20),
            "sink": True,
        },
    ),
)

# Of rows of fp8, of which there are many kinds: what their own parts of a kernel may get wrong.
_FP8 = (
    *(name for name, _ in _TELLING),
    *("heads_5", "heads_64", "heads_128", "partitions_3", "partitions_17", "values_peaked"),
    *("values_rising", "values_falling", "second_after_64", "second_after_63", "full_size"),
    *("dense_long", "batch_16", "batch_16_few_heads"),
)


def cases(rows: Rows = BF16) -> tuple[Case, ...]:
    """Every case to verify, for one kind of rows."""
    return _of((*_small(), *_large()), rows)


def small(rows: Rows = BF16) -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return _of(tuple(_small()), rows)


def telling(rows: Rows = BF16) -> tuple[Case, ...]:
    """The few cases that every variant is verified on, as far as it serves them."""
    return small(rows)[: len(_TELLING)]


def _of(listed: tuple[Case, ...], rows: Rows) -> tuple[Case, ...]:
    return tuple(
        replace(case, name=f"{rows}_{case.name}", row=rows.row, kv_scales=rows.kv_scales, seed=seed)
        for seed, case in enumerate(listed)
        if rows.row.dtype is DType.BF16 or case.name in _FP8
    )


def _small() -> Iterator[Case]:
    for name, given in _TELLING:
        yield replace(Case(name=name), **given)  # type: ignore[arg-type]
    for h in HEADS:
        yield Case(name=f"heads_{h}", t=1, h=h)
    for splits in PARTITIONS:
        source = Source(topk=2200, blocks=40)
        yield Case(name=f"partitions_{splits}", t=1, h=8, partitions=splits, source=source)
    uneven = Source(topk=1100, blocks=30, lengths="uneven")
    yield Case(name="uneven_splits", t=5, h=8, partitions=5, split_units=2, source=uneven)
    yield from _listed()
    yield from _paged()
    for values in ("shifted", "peaked", "rising", "falling"):
        source = Source(topk=300, blocks=6, indices="shared")
        yield Case(name=f"values_{values}", h=64, partitions=2, source=source, values=values)
    yield Case(name="q_apart", t=3, h=20, q_gap=64)
    yield Case(name="no_lse", h=128, t=1, outputs=False, sink=True)
    yield Case(name="dead_lse_down", source=Source(indices="invalid"), dead_lse=float("-inf"))


def _listed() -> Iterator[Case]:
    """Lists of one source and of two, each rule alone."""
    for indices in ("bad", "duplicates", "invalid", "last", "first", "sparse"):
        source = Source(topk=256, indices=indices)
        yield Case(name=f"indices_{indices}", h=40, source=source, sink=True)
    for lengths in ("uneven", "zero", "garbage"):
        source = Source(topk=200, spare=56, lengths=lengths)
        yield Case(name=f"lengths_{lengths}", t=5, source=source, partitions=2)
        yield Case(name=f"lengths_{lengths}_alone", t=5, source=source, sink=True)
        extra = Source(topk=40, page=7, blocks=30, lengths=lengths)
        yield Case(name=f"second_{lengths}", t=5, source=source, extra=extra)
    for length in ("1", "63", "64", "65", "127", "128", "129"):
        source, extra = Source(topk=150, lengths=length), Source(topk=70, page=10, blocks=20)
        yield Case(name=f"second_after_{length}", t=1, source=source, extra=extra)
    both = {"source": Source(lengths="zero"), "extra": Source(lengths="zero")}
    yield Case(name="both_empty", sink=True, partitions=1, **both)  # type: ignore[arg-type]
    yield Case(name="both_empty_split", partitions=3, **both)  # type: ignore[arg-type]
    yield Case(
        name="clamped_by_cache",
        t=3,
        added=(1, 2),
        cached=(0, 5),
        even=False,
        source=Source(topk=64),
    )
    yield Case(name="clamped_evenly", t=4, added=(2, 2), cached=(0, 300), even=True)
    yield Case(name="padded", t=6, added=(1, 2), source=Source(topk=100), sink=True)
    yield Case(
        name="many_sequences", t=70, h=2, added=(1,) * 68, cached=(9,) * 68, source=Source(topk=16)
    )


def _paged() -> Iterator[Case]:
    """Dense keys: masks, lengths, tables."""
    base = Case(name="", t=4, source=_DENSE, added=(2, 2), cached=(100, 140), pages=10, even=True)
    yield replace(base, name="dense")
    yield replace(base, name="dense_causal", causal=True)
    yield replace(base, name="dense_splits", partitions=3, causal=True)
    yield replace(base, name="dense_new", cached=(0, 0), causal=True)
    yield replace(base, name="dense_below_0", cached=(-5, -(2**31)))
    yield replace(base, name="dense_past_the_table", cached=(2**31 - 1, 155))
    yield replace(base, name="dense_ragged", t=5, added=(1, 0, 3), cached=(60, 70, 130), even=False)
    yield replace(base, name="dense_padded", t=7, even=False, partitions=2)
    yield replace(
        base, name="dense_folds", t=9, h=8, added=(4, 5), cached=(126, 40), even=False, causal=True
    )
    yield replace(base, name="dense_page_1", source=Source(topk=0, page=1, blocks=300), pages=150)
    yield replace(base, name="dense_page_3", source=Source(topk=0, page=3, blocks=200), pages=50)
    yield replace(base, name="dense_layers", source=replace(_DENSE, layers=3))


def _large() -> Iterator[Case]:
    """Those for a GPU; the first is one token at full size."""
    full = Source(topk=2048, page=64, blocks=128)
    yield Case(name="full_size", t=1, h=128, partitions=16, source=full)
    yield Case(name="full_size_whole", t=1, h=128, source=full)
    yield Case(name="batch_16", t=16, h=128, partitions=4, source=full)
    yield Case(name="batch_16_few_heads", t=16, h=16, partitions=8, source=full)
    dense = {"t": 4, "source": _LONG, "added": (1,) * 4, "cached": (8000, 5, 3000, 129)}
    yield Case(name="dense_long", h=128, pages=126, partitions=16, **dense)  # type: ignore[arg-type]
    for t, topk, rows in ((4, 512, 64), (74, 1024, 576), (4, 2046, 2048), (321, 64, 64)):
        for h in (64, 128):
            yield _flash_mla(t, topk, rows, h)


def _flash_mla(t: int, topk: int, rows: int, h: int) -> Case:
    """One of FlashMLA's tests of sparse decoding, its rows in blocks of 61."""
    source = Source(topk=topk, page=61, blocks=-(-rows // 61), lengths="uneven", indices="bad")
    extra = Source(topk=100, page=2, blocks=70) if h == 64 else None
    return Case(
        name=f"t_{t}_topk_{topk}_h_{h}",
        t=t,
        h=h,
        source=source,
        extra=extra,
        sink=True,
        values="shifted",
    )
