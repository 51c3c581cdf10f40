"""Problems of sparse MLA prefill: the numbers of one call, and the rules they obey.

    q [t, h, d] · rows of a cache, chosen by indices [t, indices_stride] → out [t, h, 512]

Heads of q are bf16, or they are laid out as rows of the cache are, of e4m3 with one scale each.

A row of the cache is one token's latent (512 values, which are its K and its V) and, where d is
576, its rope part (64 values of K). The cache is `blocks` blocks of `page` rows; an index is
`block * page + offset`, and its row is `block * block_stride + offset` from the layer's first. An
index is valid iff 0 <= index < blocks * page; others count as absent, whatever they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from math import isfinite

import numpy as np

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import RowFormat
from kernelpack.kernels.sparse_mla_prefill.rows import BF16_576

KERNEL = "sparse_mla_prefill"
ABIS = range(2, 3)
"""The kernel-ABI numbers this version can call."""

MOST_HEADS = 128
Q_BYTES = 16  # TMA strides are multiples of it
Rule = tuple[str, float | str, bool, str]
"""A number's name, its value, whether it is right, and what would be."""

LOG2E = 1.4426950408889634


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The numbers of one call.

    Attributes:
        t: query tokens.
        h: heads of a token, 1 to 128.
        row: how a row of the cache is laid out; it says d too.
        topk: entries of a token that count.
        indices_stride: entries of a token in memory; those from topk on are never read.
        page: rows of a block.
        blocks: blocks of the cache.
        block_stride: rows from one block's first to the next one's.
        q_token_stride: elements from one token of q to the next.
        q_head_stride: elements from one head of q to the next.
        scale: what q·k is multiplied by before the softmax; natural units.
        dead_lse: lse of a row without keys: infinity, or minus infinity.
        lse: whether lse is written.
        max_logits: whether the largest score is written.
        lengths: whether topk_lengths is given.
        sink: whether sink is given.
        kv_scales: scales of a row in an array of their own; 0: there is none.
        q_scales: whether heads of q are rows of e4m3, each with a scale in an array of their own.

    """

    t: int
    h: int
    row: RowFormat = BF16_576
    topk: int
    indices_stride: int
    page: int
    blocks: int
    block_stride: int
    q_token_stride: int
    q_head_stride: int
    scale: float
    dead_lse: float = float("inf")
    lse: bool = True
    max_logits: bool = True
    lengths: bool = True
    sink: bool = True
    kv_scales: int = 0
    q_scales: bool = False

    @property
    def sizes(self) -> dict[str, int]:
        """The names a manifest's expressions use; fp32 numbers by their bits."""
        return {
            "t": self.t,
            "h": self.h,
            "row_bytes": self.row.bytes,
            "q_bytes": self.q_bytes,
            "topk": self.topk,
            "indices_stride": self.indices_stride,
            "page": self.page,
            "blocks": self.blocks,
            "block_stride": self.block_stride,
            "q_token_stride": self.q_token_stride,
            "q_head_stride": self.q_head_stride,
            "scale_log2e": bits(self.scale * LOG2E),
            "dead_lse": bits(self.dead_lse),
            "has_lse": int(self.lse),
            "has_max_logits": int(self.max_logits),
            "has_lengths": int(self.lengths),
            "has_sink": int(self.sink),
            "kv_scales": self.kv_scales,
        }

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute, so that nothing is launched."""
        return self.t == 0

    @property
    def is_native(self) -> bool:
        """Whether fp8 is multiplied as it is; rows of blocks with scales are made bf16 first."""
        return is_native(self.row, self.kv_scales)

    @property
    def q_bytes(self) -> int:
        """Bytes of an element of q."""
        return 1 if self.q_scales else DType.BF16.bits // 8

    @property
    def q_width(self) -> int:
        """Elements of a head of q."""
        return self.row.bytes if self.q_scales else self.row.width

    @property
    def kv_rows(self) -> int:
        """Rows from the layer's first to the last one that an index can name, and one."""
        return (self.blocks - 1) * self.block_stride + self.page

    @property
    def entries(self) -> int:
        """How many indices are valid: 0 to this, without it."""
        return self.blocks * self.page

    def check(self) -> None:
        """Check the numbers against the kernel's definition.

        Raises:
            ProblemError: names the number, its value and the rule.

        """
        rules = (self._of_entries(), self._of_rows(), self._of_queries(), self._of_units())
        for name, value, holds, rule in chain.from_iterable(rules):
            if not holds:
                raise ProblemError(f"`{name}` must be {rule}, not {value}", where=KERNEL)

    def _of_entries(self) -> Iterator[Rule]:
        stride, topk = self.indices_stride, self.topk
        yield "t", self.t, 0 <= self.t < 2**30, "from 0 to below 2^30"
        yield "h", self.h, 1 <= self.h <= MOST_HEADS, f"1 to {MOST_HEADS}"
        yield "topk", topk, 1 <= topk < 2**31, "from 1 to below 2^31"
        rule = f"from topk = {topk} to below 2^31"
        yield "indices_stride", stride, topk <= stride < 2**31, rule

    def _of_rows(self) -> Iterator[Rule]:
        stride = self.block_stride
        yield "page", self.page, self.page >= 1, "at least 1 row"
        yield "blocks", self.blocks, self.blocks >= 1, "at least 1"
        rule = f"from page = {self.page} rows to below 2^32"
        yield "block_stride", stride, self.page <= stride < 2**32, rule
        yield "kv_rows", self.kv_rows, self.kv_rows < 2**31, "below 2^31"

    def _of_queries(self) -> Iterator[Rule]:
        rule = f"bf16 with rows of {self.row.name} and {self.kv_scales} scales each"
        yield "q", "e4m3", not self.q_scales or self.is_native, rule
        multiple = Q_BYTES // self.q_bytes
        rule = f"a multiple of {multiple} elements, below 2^39"
        for name in ("q_token_stride", "q_head_stride"):
            stride = getattr(self, name)
            yield name, stride, 0 <= stride < 2**39 and stride % multiple == 0, rule

    def _of_units(self) -> Iterator[Rule]:
        fits = isfinite(self.scale) and 2.0**-100 < self.scale < 2.0**100
        yield "scale", self.scale, fits, "from 2^-100 to 2^100"
        yield "dead_lse", self.dead_lse, abs(self.dead_lse) == float("inf"), "inf or -inf"


def is_native(row: RowFormat, per_row: int) -> bool:
    """Whether rows are e4m3 of one scale or none, which are multiplied as they are."""
    return row.dtype is DType.E4M3 and per_row <= 1 and not row.inline_scales


def bits(value: float) -> int:
    """The bits of a number as fp32, which is how manifests pass it."""
    return int(np.float32(value).view(np.uint32))
