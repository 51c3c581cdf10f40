"""Problems of the decode attention: the numbers of one call, and the rules they obey.

    q [t, h, d] · keys of each token, in splits → out [t, h, 512], or partial outputs of each split

A token's keys are listed: entries of `indices`, each block * page + offset of a cache, and, where
there is a second source, entries of lists of its own over a cache of its own. Or they are dense:
the tokens of its sequence, in pages that a table finds. `positions` says which key is where.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import isfinite

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import RowFormat
from kernelpack.kernels.sparse_mla_prefill.problem import LOG2E, MOST_HEADS, Q_BYTES, Rule, bits
from kernelpack.kernels.sparse_mla_prefill.rows import BF16_576

KERNEL = "mla_decode_attention"
ABIS = range(1, 2)
"""The kernel-ABI numbers this version can call."""

MOST_PARTITIONS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Where the rows of a cache lie.

    Attributes:
        page: rows of a block.
        blocks: how many there are.
        block_stride: rows from one block's first to the next one's.

    """

    page: int
    blocks: int
    block_stride: int

    @property
    def rows(self) -> int:
        """Rows from the first to the last one of a block, and one."""
        return (self.blocks - 1) * self.block_stride + self.page

    @property
    def entries(self) -> int:
        """How many encoded indices name a row: 0 to this, without it."""
        return self.blocks * self.page


@dataclass(frozen=True, slots=True, kw_only=True)
class Lists:
    """The entries of tokens in one source.

    Attributes:
        topk: of a token, that count.
        stride: of a token in memory; those from topk on are never read.
        has_lengths: whether it is given how many of them count.

    """

    topk: int
    stride: int
    has_lengths: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sequences:
    """Whose tokens they are.

    Attributes:
        count: sequences.
        pages: of each in the table; 0: there is no table.
        table_stride: entries of the table from one sequence to the next.
        has_offsets: whether the first token of each is given; else all have as many tokens.
        has_lengths: whether lengths of their caches are given, without the call's tokens.

    """

    count: int = 0
    pages: int = 0
    table_stride: int = 0
    has_offsets: bool = False
    has_lengths: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The numbers of one call.

    Attributes:
        t: query tokens.
        h: heads of a token, 1 to 128.
        row: how a row of the caches is laid out; it says d too.
        pool: the cache.
        lists: the tokens' entries; None: keys are the sequences' tokens, in pages.
        extra_pool, extra_lists: the second source; None: there is none.
        sequences: whose tokens they are.
        lengths_of_sequences: whether lengths of lists are of sequences, not of tokens.
        partitions: splits of a token's keys; with one, outputs are whole.
        split_units: units of 128 keys that a split has at least, so that tokens of few keys have
            fewer splits.
        causal: whether a token sees no key after itself; of dense keys.
        q_token_stride, q_head_stride: elements from one token, or head, of q to the next.
        scale: what q·k is multiplied by before the softmax; natural units.
        dead_lse: lse of a row without keys: infinity, or minus infinity.
        lse: whether lse is written; partial outputs have theirs always.
        sink: whether sink is given; it joins whole outputs alone.
        kv_scales: scales of a row in an array of their own; 0: there is none.

    """

    t: int
    h: int
    row: RowFormat = BF16_576
    pool: Pool
    lists: Lists | None
    extra_pool: Pool | None = None
    extra_lists: Lists | None = None
    sequences: Sequences = Sequences()
    lengths_of_sequences: bool = False
    partitions: int = 1
    split_units: int = 1
    causal: bool = False
    q_token_stride: int
    q_head_stride: int
    scale: float
    dead_lse: float = float("inf")
    lse: bool = True
    sink: bool = False
    kv_scales: int = 0

    @property
    def sizes(self) -> dict[str, int]:
        """The names a manifest's expressions use; fp32 numbers by their bits."""
        lists, extra = self.lists or _NO_LISTS, self.extra_lists or _NO_LISTS
        pool, of = self.extra_pool or _NO_POOL, self.sequences
        lengths = of.count if self.lengths_of_sequences else self.t
        return {
            "t": self.t,
            "h": self.h,
            "partitions": self.partitions,
            "split_units": self.split_units,
            "row_bytes": self.row.bytes,
            "kv_scales": self.kv_scales,
            "q_token_stride": self.q_token_stride,
            "q_head_stride": self.q_head_stride,
            "topk": lists.topk,
            "indices_stride": lists.stride,
            "lengths": lengths if lists.has_lengths else 0,
            "page": self.pool.page,
            "blocks": self.pool.blocks,
            "block_stride": self.pool.block_stride,
            "extra_topk": extra.topk,
            "extra_indices_stride": extra.stride,
            "extra_lengths": lengths if extra.has_lengths else 0,
            "extra_page": pool.page,
            "extra_blocks": pool.blocks,
            "extra_block_stride": pool.block_stride,
            "sequences": of.count,
            "pages": of.pages,
            "table_stride": of.table_stride,
            "has_row_offsets": int(of.has_offsets),
            "has_cache_lengths": int(of.has_lengths),
            "lengths_of_sequences": int(self.lengths_of_sequences),
            "causal": int(self.causal),
            "has_lse": int(self.lse and not self.is_partial),
            "has_sink": int(self.sink),
            "scale_log2e": bits(self.scale * LOG2E),
            "dead_lse": bits(self.dead_lse),
        }

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute, so that nothing is launched."""
        return self.t == 0

    @property
    def is_partial(self) -> bool:
        """Whether outputs are those of splits."""
        return self.partitions > 1

    @property
    def tokens_of_each(self) -> int:
        """Tokens of a sequence, where all have as many."""
        return self.t // self.sequences.count if self.sequences.count else 1

    def check(self) -> None:
        """Check the numbers against the kernel's definition.

        Raises:
            ProblemError: names the number, its value and the rule.

        """
        rules = (self._of_call(), self._of_keys(), self._of_sequences(), self._of_units())
        for name, value, holds, rule in chain.from_iterable(rules):
            if not holds:
                raise ProblemError(f"`{name}` must be {rule}, not {value}", where=KERNEL)

    def _of_call(self) -> Iterator[Rule]:
        yield "t", self.t, 0 <= self.t < 2**24, "from 0 to below 2^24"
        yield "h", self.h, 1 <= self.h <= MOST_HEADS, f"1 to {MOST_HEADS}"
        fits = 1 <= self.partitions <= MOST_PARTITIONS
        yield "num_partitions", self.partitions, fits, f"1 to {MOST_PARTITIONS}"
        fits = 1 <= self.split_units < 2**24
        yield "split_units", self.split_units, fits, "1 to below 2^24"
        multiple = Q_BYTES * 8 // DType.BF16.bits
        rule = f"a multiple of {multiple} elements, below 2^39"
        for name in ("q_token_stride", "q_head_stride"):
            stride = getattr(self, name)
            yield name, stride, 0 <= stride < 2**39 and stride % multiple == 0, rule

    def _of_keys(self) -> Iterator[Rule]:
        for of, pool, lists in (
            ("", self.pool, self.lists),
            ("extra_", self.extra_pool, self.extra_lists),
        ):
            yield from _of_pool(of, pool) if pool else ()
            yield from _of_lists(of, lists) if lists else ()

    def _of_sequences(self) -> Iterator[Rule]:
        of = self.sequences
        yield "sequences", of.count, 0 <= of.count < 2**24, "from 0 to below 2^24"
        known = of.count > 0 or not self.lengths_of_sequences
        yield "lengths_of_sequences", True, known, "left out where no sequences are given"
        yield "pages", of.pages, 0 <= of.pages * self.pool.page < 2**31, "of below 2^31 rows"
        rule = f"from {of.pages}, the pages, to below 2^32"
        stride = of.table_stride
        yield "table_stride", stride, of.pages <= stride < 2**32, rule
        even = of.has_offsets or not of.count or self.t % of.count == 0
        yield "q", self.t, even, f"a multiple of {of.count} tokens without `row_offsets`"

    def _of_units(self) -> Iterator[Rule]:
        fits = isfinite(self.scale) and 2.0**-100 < self.scale < 2.0**100
        yield "scale", self.scale, fits, "from 2^-100 to 2^100"
        yield "dead_lse", self.dead_lse, abs(self.dead_lse) == float("inf"), "inf or -inf"


_NO_LISTS = Lists(topk=0, stride=0)
_NO_POOL = Pool(page=0, blocks=0, block_stride=0)


def _of_pool(of: str, pool: Pool) -> Iterator[Rule]:
    stride = pool.block_stride
    yield f"{of}page", pool.page, pool.page >= 1, "at least 1 row"
    yield f"{of}blocks", pool.blocks, pool.blocks >= 1, "at least 1"
    rule = f"from page = {pool.page} rows to below 2^32"
    yield f"{of}block_stride", stride, pool.page <= stride < 2**32, rule
    yield f"{of}kv_rows", pool.rows, pool.rows < 2**31, "below 2^31"


def _of_lists(of: str, lists: Lists) -> Iterator[Rule]:
    topk, stride = lists.topk, lists.stride
    yield f"{of}topk", topk, 1 <= topk < 2**30, "from 1 to below 2^30"
    rule = f"from topk = {topk} to below 2^31"
    yield f"{of}indices_stride", stride, topk <= stride < 2**31, rule
