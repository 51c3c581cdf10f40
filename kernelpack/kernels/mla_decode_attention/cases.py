"""The cases of the decode attention to verify: every rule at its edges, and steps at full size."""

from collections.abc import Iterator
from dataclasses import replace

from kernelpack.formats.dtype import DType
from kernelpack.kernels.mla_decode_attention.inputs import Case, Source
from kernelpack.kernels.sparse_mla_prefill.rows import BF16, BF16_LATENT, FP8, Rows

ROWS = (BF16, BF16_LATENT, *FP8)
"""The kinds of rows that there are kernels for."""

HEADS = (1, 5, 8, 24, 64, 96, 128)
PARTITIONS = (1, 2, 3, 5, 17)
GROUPS = (
    *("heads", "options", "partitions", "values", "indices", "whole_lengths", "lengths"),
    *("second_after", "second", "empty", "tokens"),
    *("dense_splits", "dense_padded", "dense_ragged", "dense_folds", "dense_new", "dense"),
)
"""The prefix of cases that differ in numbers alone; the first counts."""
MORE_HEADS = (16, 32)
MORE_PARTITIONS = (1, 3, 4, 6, 7, 8, 13, 17, 256)
"""Beside those of small cases, for a GPU."""
_DENSE = Source(topk=0, page=16, blocks=60)
_LONG = Source(topk=0, page=64, blocks=300)
_MOST_SCALES = 16  # or 18: of blocks of 32 columns

# name, then what is not as in Case: several rules at once, the most telling first
_TELLING: tuple[tuple[str, dict[str, object]], ...] = (
    (
        "telling_two_sources",
        {
            "t": 2,
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
            "t": 4,
            "h": 5,
            "source": Source(topk=0, page=16, blocks=30),
            "added": (1, 0, 2),
            "cached": (67, 7, 127),
            "pages": 9,
            "causal": True,
            "sink": True,
            "dead_lse": float("-inf"),
        },
    ),
    ("telling_empty_splits", {"t": 1, "h": 65, "partitions": 2, "source": Source(topk=37)}),
    (
        "telling_whole",
        {
            "t": 3,
            "h": 5,
            "added": (2, 1),
            "cached": (60, -9),
            "lengths_of_sequences": True,
            "source": Source(topk=130, lengths="full", indices="bad"),
            "extra": Source(topk=70, lengths="uneven", page=16, blocks=20),
            "sink": True,
        },
    ),
)

# For rows of fp8, which have many kinds: mistakes of their own parts of a kernel.
_FP8 = (
    *(name for name, _ in _TELLING),
    *("heads_5", "heads_64", "heads_128", "partitions_2", "partitions_17", "long"),
    *("values_peaked", "values_rising", "values_falling", "second_after_64", "second_after_63"),
    *("full_size", "dense_long", "batch_16", "batch_16_few_heads"),
)


def cases(rows: Rows = BF16) -> tuple[Case, ...]:
    """Every case to verify, for one kind of rows."""
    return _of((*_small(), *_large()), rows)


def small(rows: Rows = BF16) -> tuple[Case, ...]:
    """The cases of few bytes that still cover every rule."""
    return _of(tuple(_small()), rows)


def telling(rows: Rows = BF16) -> tuple[Case, ...]:
    """The few cases that every variant is verified on, as far as it serves them.

    The first has most rules. Rows with scales of 64 or 128 columns, which differ from those of 32
    in a constant, have it alone.
    """
    is_like_another = 1 < rows.kv_scales < _MOST_SCALES
    return small(rows)[: 1 if is_like_another else len(_TELLING)]


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
        yield _heads(h, topk=70)
    for splits in PARTITIONS:
        yield _partitions(splits, topk=260)
    yield Case(name="partitions_256", t=1, h=5, partitions=256, source=Source(topk=70))
    uneven = Source(topk=300, blocks=9, lengths="uneven")
    yield Case(
        name="partitions_uneven", t=3, h=5, partitions=2, split_units=2, source=uneven, sink=True
    )
    yield Case(name="long", t=1, h=5, source=Source(topk=700, blocks=12))
    yield from _values()
    yield from _lists()
    yield from _second()
    yield from _tokens()
    yield from _paged()


def _heads(h: int, topk: int) -> Case:
    return Case(name=f"heads_{h}", t=1, h=h, source=Source(topk=topk))


def _partitions(splits: int, topk: int, name: str = "partitions") -> Case:
    source = Source(topk=topk, blocks=topk // 50)
    return Case(name=f"{name}_{splits}", t=1, h=5, partitions=splits, source=source)


def _values() -> Iterator[Case]:
    """Patterns of scores along five tiles, and the requested outputs."""
    for values in ("shifted", "peaked", "rising", "falling"):
        source = Source(topk=300, blocks=6)
        yield Case(name=f"values_{values}", t=1, source=source, values=values)
    few = Source(topk=37)
    yield Case(name="options_q_apart", h=20, q_gap=64, source=few)
    yield Case(name="options_no_lse", t=1, h=65, outputs=False, sink=True, source=few)
    invalid = Source(topk=70, indices="invalid")
    yield Case(name="options_dead_lse_down", h=5, source=invalid, dead_lse=float("-inf"))


def _lists() -> Iterator[Case]:
    """Lists of one source, each rule alone."""
    for indices in ("bad", "duplicates", "invalid", "last", "first", "sparse"):
        source = Source(topk=150, indices=indices)
        yield Case(name=f"indices_{indices}", h=5, source=source, sink=True)
    for lengths in ("uneven", "zero", "garbage"):
        t = 5 if lengths == "garbage" else 3
        split, whole = (Source(topk=n, spare=56, lengths=lengths) for n in (150, 70))
        yield Case(name=f"lengths_{lengths}", t=t, h=5, source=split, partitions=2)
        yield Case(name=f"whole_lengths_{lengths}", t=t, h=5, source=whole, sink=True)


def _second() -> Iterator[Case]:
    """Lists of two sources."""
    for lengths in ("uneven", "zero", "garbage"):
        t = 5 if lengths == "garbage" else 3
        source = Source(topk=90, lengths=lengths)
        extra = Source(topk=40, page=7, blocks=30, lengths=lengths)
        yield Case(name=f"second_{lengths}", t=t, h=5, source=source, extra=extra)
    for length in ("1", "63", "64", "65", "128"):
        source, extra = Source(topk=150, lengths=length), Source(topk=70, page=10, blocks=20)
        yield Case(name=f"second_after_{length}", t=1, h=5, source=source, extra=extra)
    both = {"source": Source(lengths="zero"), "extra": Source(lengths="zero")}
    yield Case(name="empty", sink=True, partitions=1, **both)  # type: ignore[arg-type]
    yield Case(name="empty_split", partitions=3, **both)  # type: ignore[arg-type]


def _tokens() -> Iterator[Case]:
    """Lists that lengths of sequences cut, and tokens of no sequence."""
    base = Case(name="", t=3, h=5, added=(1, 2), source=Source(topk=70))
    yield replace(base, name="tokens_clamped", cached=(0, 5))
    yield replace(base, name="tokens_clamped_evenly", t=2, added=(1, 1), cached=(0, 66), even=True)
    yield replace(base, name="tokens_padded", t=5, sink=True)
    added = tuple(int(b in (0, 31, 32, 67)) for b in range(68))
    yield replace(base, name="tokens_of_68", t=6, added=added, cached=(9,) * 68)


def _paged() -> Iterator[Case]:
    """Dense keys: masks, lengths, tables."""
    base = Case(
        name="", t=4, h=5, source=_DENSE, added=(2, 2), cached=(20, 126), pages=10, even=True
    )
    yield replace(base, name="dense")
    yield replace(base, name="dense_causal", causal=True)
    yield replace(base, name="dense_splits", cached=(5, 140), partitions=3, causal=True)
    yield replace(base, name="dense_new", cached=(0, 0), causal=True)
    yield replace(base, name="dense_below_0", cached=(-5, -(2**31)))
    yield replace(base, name="dense_past_the_table", cached=(2**31 - 1, 91), pages=6)
    yield replace(base, name="dense_ragged", t=5, added=(1, 0, 3), cached=(60, 70, 63), even=False)
    yield replace(base, name="dense_padded", t=7, even=False, cached=(20, 127), partitions=2)
    yield replace(
        base, name="dense_folds", t=9, added=(4, 5), cached=(62, 40), even=False, causal=True
    )
    yield replace(base, name="dense_page_1", source=Source(topk=0, page=1, blocks=300), pages=150)
    yield replace(base, name="dense_page_3", source=Source(topk=0, page=3, blocks=200), pages=50)
    yield replace(base, name="dense_layers", source=replace(_DENSE, layers=3))


def _large() -> Iterator[Case]:
    """Those for a GPU, as a token at full size."""
    yield from (_heads(h, topk=128) for h in MORE_HEADS)
    yield from (_partitions(splits, 2200, "splits") for splits in MORE_PARTITIONS)
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
