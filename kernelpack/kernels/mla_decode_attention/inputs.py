"""Inputs of a case, made from its seed.

Everything that a kernel must not use is poison: rows that no key names, entries after topk, pages
after a sequence's, gaps of q.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import Arrays
from kernelpack.kernels.kv_operand.rows import RowFormat
from kernelpack.kernels.mla_decode_attention.positions import rows_of
from kernelpack.kernels.mla_decode_attention.problem import Lists, Pool, Problem, Sequences
from kernelpack.kernels.sparse_mla_prefill.choices import CHOICES, LENGTHS, Indices, Random
from kernelpack.kernels.sparse_mla_prefill.inputs import SINKS
from kernelpack.kernels.sparse_mla_prefill.problem import Problem as Prefill
from kernelpack.kernels.sparse_mla_prefill.rows import BF16_576, Bytes, Rows, encode
from kernelpack.kernels.sparse_mla_prefill.values import VALUES, Floats

GARBAGE_BLOCKS = (0xFFFFFFFF, 0x80000000, 114514)
"""Blocks that tables name after a sequence's pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A cache, and the entries of tokens in it.

    Attributes:
        topk: entries of a token that count; 0: keys are the sequences' pages.
        spare: entries of a token after topk; they hold valid indices of rows that are NaN.
        indices, lengths: how entries are chosen, and how many of them count: keys of `CHOICES` and
            `LENGTHS`.
        page, blocks: as of Pool.
        layers: of the cache, so many blocks lie between a block and the next of the call's layer.

    """

    topk: int = 128
    spare: int = 0
    indices: str = "random"
    lengths: str = "none"
    page: int = 64
    blocks: int = 5
    layers: int = 1

    @property
    def pool(self) -> Pool:
        """Where rows lie."""
        return Pool(page=self.page, blocks=self.blocks, block_stride=self.page * self.layers)

    @property
    def lists(self) -> Lists | None:
        """The entries of tokens."""
        if not self.topk:
            return None
        has_lengths = self.lengths != "none"
        return Lists(topk=self.topk, stride=self.topk + self.spare, has_lengths=has_lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One problem to verify, with what its inputs hold.

    Attributes:
        name: what people call it.
        t, h, partitions, split_units, causal, scale, lengths_of_sequences: as of Problem.
        row: the layout of rows.
        kv_scales: scales of a row in an array beside the rows; 0: none.
        source, extra: the caches; None: there is no second one.
        added: tokens of each sequence in the call; with `padding`, which is tokens of none, they
            are t. Empty: nothing is of a sequence.
        even: whether it is left out which token is whose.
        cached: tokens in the cache of each sequence; empty: it is left out.
        pages: of a sequence in the table, where keys are dense.
        values: what q and rows hold, a key of `VALUES`.
        sink, outputs: whether heads have sinks, whether lse is asked for.
        dead_lse: lse of a row without keys.
        q_gap: poison between heads of q, elements; tokens lie three times that apart.
        seed: of what is random.

    """

    name: str
    t: int = 2
    h: int = 16
    partitions: int = 1
    split_units: int = 1
    row: RowFormat = BF16_576
    kv_scales: int = 0
    source: Source = field(default_factory=Source)
    extra: Source | None = None
    added: tuple[int, ...] = ()
    even: bool = False
    cached: tuple[int, ...] = ()
    pages: int = 0
    lengths_of_sequences: bool = False
    causal: bool = False
    values: str = "normal"
    sink: bool = False
    outputs: bool = True
    dead_lse: float = float("inf")
    q_gap: int = 0
    scale: float = 0.5
    seed: int = 0

    @property
    def kind(self) -> str:
        """The name without its rows, where it begins with them."""
        return self.name.removeprefix(f"{Rows(row=self.row, kv_scales=self.kv_scales)}_")

    @property
    def problem(self) -> Problem:
        """The numbers alone."""
        head = self.row.width + self.q_gap
        return Problem(
            t=self.t,
            h=self.h,
            row=self.row,
            pool=self.source.pool,
            lists=self.source.lists,
            extra_pool=self.extra.pool if self.extra else None,
            extra_lists=self.extra.lists if self.extra else None,
            sequences=Sequences(
                count=len(self.added),
                pages=self.pages,
                table_stride=self.pages + (len(self.added) > 1) if self.pages else 0,
                has_offsets=bool(self.added) and not self.even,
                has_lengths=bool(self.cached),
            ),
            lengths_of_sequences=self.lengths_of_sequences,
            partitions=self.partitions,
            split_units=self.split_units,
            causal=self.causal,
            q_token_stride=head * self.h + 3 * self.q_gap,
            q_head_stride=head,
            scale=self.scale,
            dead_lse=self.dead_lse,
            lse=self.outputs,
            sink=self.sink,
            kv_scales=self.kv_scales,
        )

    @property
    def sizes(self) -> dict[str, int]:
        """The problem as the manifest names it."""
        return self.problem.sizes


def inputs(case: Case) -> Arrays:
    """Arrays of a case; those it does not have are empty."""
    random, problem = np.random.default_rng(case.seed), case.problem
    arrays = _sequences(random, case)
    arrays["sink"] = np.resize(np.array(SINKS, np.float32), problem.h if case.sink else 0)
    made: dict[str, Floats] = {}
    for of, source in (("", case.source), ("extra_", case.extra)):
        lists, q, made[of] = _source(random, case, source)
        arrays |= {of + name: array for name, array in lists.items()}
        if not of:
            arrays["q"] = _laid_out(q, problem)
    used = _used(problem, arrays)
    first = problem.pool.rows
    for of, source, rows in (
        ("", case.source, used[used < first]),
        ("extra_", case.extra, used[used >= first] - first),
    ):
        cache = _cache(case, source, made[of], rows)
        arrays[f"{of}kv"], arrays[f"{of}kv_scales"] = cache
    return arrays


def steering(case: Case) -> Arrays:
    """Where the keys of each token lie."""
    random = np.random.default_rng(case.seed)
    arrays = _sequences(random, case)
    for of, source in (("", case.source), ("extra_", case.extra)):
        if source is not None and source.topk:
            entries, lengths = _entries(random, case, source)
            listed = _listed(random, case, source, entries)
            arrays |= {f"{of}indices": listed, f"{of}topk_lengths": lengths}
    return arrays


def _sequences(random: Random, case: Case) -> Arrays:
    """Whose tokens are whose, and the pages of each sequence."""
    has_offsets = case.problem.sequences.has_offsets
    return {
        "row_offsets": np.cumsum((0, *case.added) if has_offsets else ()).astype(np.uint32),
        "cache_lengths": np.array(case.cached, np.int64).astype(np.int32),
        "table": _table(random, case),
    }


def _source(random: Random, case: Case, source: Source | None) -> tuple[Arrays, Floats, Floats]:
    """The lists of a source; q; and the values of its rows by their encoded index."""
    if source is None:
        nothing = np.zeros(0, np.int32)
        empty = np.zeros((0, case.row.width), np.float32)
        return {"indices": nothing, "topk_lengths": nothing}, empty, empty
    as_prefill = _as_prefill(case, source)
    if not source.topk:
        entries = np.tile(np.arange(source.page * source.blocks), (case.t, 1))
        q, rows = VALUES[case.values](random, as_prefill, entries)
        nothing = np.zeros(0, np.int32)
        return {"indices": nothing, "topk_lengths": nothing}, q, rows
    entries, lengths = _entries(random, case, source)
    q, rows = VALUES[case.values](random, as_prefill, entries)
    listed = _listed(random, case, source, entries)
    return {"indices": listed, "topk_lengths": lengths}, q, rows


def _entries(random: Random, case: Case, source: Source) -> tuple[Indices, NDArray[np.int32]]:
    """The entries of each token that may count, and how many do."""
    as_prefill = _as_prefill(case, source)
    entries = CHOICES[source.indices](random, as_prefill)
    counted = len(case.added) if case.lengths_of_sequences else case.t
    lengths = LENGTHS[source.lengths](random, _of_tokens(as_prefill, counted))
    return entries, lengths.astype(np.int32)


def _listed(random: Random, case: Case, source: Source, entries: Indices) -> NDArray[np.int32]:
    """Entries in memory, spare ones after them; nothing after the last token's."""
    after = random.integers(0, source.page * source.blocks, (case.t, source.spare))
    listed = np.concatenate([entries, after], 1).astype(np.int32).reshape(-1)
    return listed[: listed.size - source.spare]


def _as_prefill(case: Case, source: Source) -> Prefill:
    """A source as sparse prefill has its one: what choices, lengths and values are made for."""
    return Prefill(
        t=case.t,
        h=case.h,
        row=case.row,
        topk=source.topk or source.page * source.blocks,
        indices_stride=source.topk + source.spare,
        page=source.page,
        blocks=source.blocks,
        block_stride=source.page * source.layers,
        q_token_stride=0,
        q_head_stride=0,
        scale=case.scale,
        kv_scales=case.kv_scales,
    )


def _of_tokens(problem: Prefill, tokens: int) -> Prefill:
    return replace(problem, t=tokens)


def _table(random: Random, case: Case) -> NDArray[np.uint32]:
    """Blocks of each sequence's pages, distinct as far as there are enough; garbage after them."""
    count, pages, pool = len(case.added), case.pages, case.source.pool
    if not pages:
        return np.zeros(0, np.uint32)
    stride = case.problem.sequences.table_stride
    table = np.resize(np.array(GARBAGE_BLOCKS, np.uint32), (count, stride))
    blocks = np.resize(random.permutation(pool.blocks), count * pages)
    for sequence, (cached, added) in enumerate(zip(case.cached, case.added, strict=True)):
        needed = min(-(-(max(0, cached) + added) // pool.page), pages)
        table[sequence, :needed] = blocks[sequence * pages :][:needed]
    return table.reshape(-1)[: table.size - (stride - pages)]


def _laid_out(q: Floats, problem: Problem) -> NDArray[Any]:
    """Tokens in memory of the problem's strides, NaN between heads and tokens."""
    head = (problem.h - 1) * problem.q_head_stride + problem.row.width
    size = max(0, problem.t - 1) * problem.q_token_stride + head
    flat = np.full(2 * size, 0xFF, np.uint8).view(DType.BF16.numpy)
    steps = (2 * problem.q_token_stride, 2 * problem.q_head_stride, 2)
    np.lib.stride_tricks.as_strided(flat, q.shape, steps)[...] = q.astype(DType.BF16.numpy)
    return flat


def _used(problem: Problem, arrays: Arrays) -> NDArray[np.int64]:
    """The rows that some token attends to, numbered as `rows_of` does."""
    listed = [rows_of(problem, arrays, token) for token in range(problem.t)]
    rows = np.unique(np.concatenate([np.zeros(0, np.int64), *listed]))
    return rows[rows >= 0]


def _cache(
    case: Case, source: Source | None, values: Floats, used: NDArray[np.int64]
) -> tuple[Bytes, Floats]:
    """A layer's memory and its scales; a row that nobody attends to is NaN: all bits set."""
    count = source.pool.rows if source else 0
    rows = np.full((count, case.row.bytes), 0xFF, np.uint8)
    beside = np.full((count, case.kv_scales), np.nan, np.float32)
    if source is None:
        return rows, beside
    block, offset = np.divmod(used, source.pool.block_stride)
    rows[used], beside[used] = encode(
        case.row, values[block * source.page + offset], case.kv_scales
    )
    return rows, beside
