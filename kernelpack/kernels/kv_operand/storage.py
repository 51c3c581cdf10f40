"""Where row t of sequence b lies, in numbers: the model of `kp/kv/storage.cuh`.

All rows of a layer form one space of *virtual rows* from its first row on: row r starts r rows of
bytes after it. Pages (blocks) of a cache are `block_stride` virtual rows apart, for other layers,
and the keys' other half, may lie between them. An *encoded index* names a row without them:

    e   = block * page + offset               what sparse kernels take
    row = e // page * block_stride + e % page

A storage that is not paged is one block. Rows past `num_kv_rows` do not exist: tensor maps read
zeros there.
"""

from dataclasses import dataclass

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.rows import RowFormat, described, format_of

MAX_ROWS = 2**31 - 256
"""Rows are numbers of 31 bits, for TMA's coordinates are int32, and a tile's after the last too."""

_BELOW = "below 2^31 - 256"

ROW_ALIGN = 16
"""Bytes that a row is a multiple of: TMA's strides, and copies of 16 bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """The rows of one layer's keys or values.

    Attributes:
        kind: the word for the storage in messages: `Paged`, `Continuous`, `Padded`, `Ragged`.
        dtype: element type of the array that holds them.
        heads: KV heads of a row; 1 for MLA.
        head_size: elements of a head.
        page: rows of a block.
        blocks: how many there are.
        block_stride: virtual rows from a block to the next.
        offset_bytes: from the array's first element to row 0.

    """

    kind: str
    dtype: DType
    heads: int = 1
    head_size: int
    page: int
    blocks: int = 1
    block_stride: int = 0
    offset_bytes: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes of a row, all its heads."""
        return self.dtype.bytes_of(self.heads * self.head_size)

    @property
    def num_kv_rows(self) -> int:
        """Virtual rows: up to the end of the last block, without what lies after it."""
        return (self.blocks - 1) * self.block_stride + self.page if self.blocks else 0

    @property
    def num_encoded(self) -> int:
        """Encoded indices that name a row are those below."""
        return self.blocks * self.page

    def get_tma_row(self, encoded: int) -> int:
        """The virtual row of an encoded index; a negative one is -1."""
        if encoded < 0:
            return -1
        return encoded // self.page * self.block_stride + encoded % self.page

    @property
    def row(self) -> RowFormat:
        """The format of an MLA cache's rows.

        Raises:
            ProblemError: they have several heads, or no format has this width.

        """
        found = format_of(self.dtype, self.head_size) if self.heads == 1 else None
        if found is None:
            heads = f"{self.heads} heads of " if self.heads > 1 else ""
            what = f"a row must be {described()}, not {heads}{self.dtype.label} {self.head_size}"
            raise ProblemError(what, where=f"kv.{self.kind}")
        return found

    def check(self) -> None:
        """Check the sizes against what every kernel relies on.

        Raises:
            ProblemError: names the storage, the size and the rule.

        """
        rules = [
            ("rows of a block", self.page, self.page >= 1, "at least 1"),
            ("bytes of a row", self.row_bytes, _fits(self.row_bytes), "a multiple of 16"),
            ("blocks * page", self.num_encoded, self.num_encoded < MAX_ROWS, _BELOW),
            ("num_kv_rows", self.num_kv_rows, self.num_kv_rows < MAX_ROWS, _BELOW),
        ]
        for name, value, holds, rule in rules:
            if not holds:
                where = f"kv.{self.kind}"
                raise ProblemError(f"{name} must be {rule}, not {value}", where=where)


def _fits(row_bytes: int) -> bool:
    return row_bytes > 0 and row_bytes % ROW_ALIGN == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """The fp32 scales of a storage's rows: of virtual row r and head h at r * row + h * per_head.

    Attributes:
        heads: as of the rows.
        per_head: scales of a head; each covers `ceil(head_size / per_head)` elements or a format's
            block of them.
        offset_bytes: from the array's first element to row 0's.

    """

    heads: int = 1
    per_head: int
    offset_bytes: int = 0

    @property
    def per_row(self) -> int:
        """Scales of a row, all its heads."""
        return self.heads * self.per_head
