"""From a token's place in its sequence to its encoded index: the model of `kp/kv/lookup.cuh`.

| storage | index of token t of sequence b | there is none where |
|---|---|---|
| paged | table[b, t // page] * page + t % page | the table ends, or its block is past the last |
| continuous | table[b] * page + t, or b * page + t | the slot ends, or is past the last |
| padded | b * page + t | t is past the sequence |
| ragged | offsets[b] + t | t is past the sequence |

A page of a continuous storage is a slot; without a table sequence b has slot b. Where there is no
such token it is -1, as for a sequence that is not there. A place below 0 passes as it is.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.errors import ProblemError

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """How tokens of sequences are found.

    Attributes:
        sequences: how many there are.
        pages: pages of a sequence.
        page: rows of a block.
        blocks: how many there are.
        table_stride: entries of the table from a sequence to the next.
        has_table: whether a table says which block a page is; without one sequence b has block b.
        has_offsets: whether sequences lie one after another.

    """

    sequences: int
    pages: int = 1
    page: int
    blocks: int
    table_stride: int = 1
    has_table: bool = False
    has_offsets: bool = False

    @property
    def sizes(self) -> dict[str, int]:
        """The names that manifests use."""
        return {
            "sequences": self.sequences,
            "pages": self.pages,
            "table_stride": self.table_stride,
            "page": self.page,
            "blocks": self.blocks,
            "has_table": int(self.has_table),
        }

    def check(self, kernel: str) -> None:
        """Check the sizes against what kernels rely on.

        Raises:
            ProblemError: names the size, its value and the rule.

        """
        rows, stride = self.blocks * self.page, self.table_stride
        rules = [
            ("sequences", self.sequences, 0 <= self.sequences < 2**31, "below 2^31"),
            ("pages", self.pages, 0 <= self.pages < 2**31, "below 2^31"),
            ("page", self.page, self.page >= 1, "at least 1 row"),
            ("blocks", self.blocks, self.blocks >= 0, "at least 0"),
            ("blocks * page", rows, rows < 2**31, "below 2^31"),
            ("table_stride", stride, self.pages <= stride < 2**32, f"from {self.pages}, the pages"),
        ]
        for name, value, holds, rule in rules:
            if not holds:
                raise ProblemError(f"`{name}` must be {rule}, not {value}", where=kernel)

    def encode(
        self, b: NDArray[Any], t: NDArray[Any], table: NDArray[Any], offsets: NDArray[Any]
    ) -> Whole:
        """Encoded indices of places t, each in a sequence b; -1 where there is none.

        Args:
            b: sequences, any numbers.
            t: places, of b's shape.
            table: as it lies, flat; not looked at where there is none.
            offsets: [sequences + 1]; likewise.

        """
        sequence, place = b.astype(np.int64), t.astype(np.int64)
        known = (place >= 0) & (sequence >= 0) & (sequence < self.sequences)
        if not known.any():
            return np.where(place < 0, place, -1)
        own = np.where(known, sequence, 0)
        if self.has_offsets:
            first, end = offsets.astype(np.int64)[own], offsets.astype(np.int64)[own + 1]
            there = known & (place < end - first) & (first + place < self.blocks * self.page)
            return np.where(there, first + place, np.where(place < 0, place, -1))
        page = np.where(known, place // self.page, 0)
        there = known & (page < self.pages)
        entry = np.where(there, own * self.table_stride + page, 0)
        block = table.astype(np.uint32).astype(np.int64)[entry] if self.has_table else own
        there &= block < self.blocks
        encoded = block * self.page + place % self.page
        return np.where(there, encoded, np.where(place < 0, place, -1))
