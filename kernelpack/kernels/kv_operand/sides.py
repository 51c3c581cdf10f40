"""From an array's sides and strides to where its rows lie."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.storage import Scales, Storage


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """An array of rows as it lies: [blocks, rows, heads, elements], strides in elements.

    Attributes:
        kind: the storage, for messages.
        member: the storage's member that holds the array, for messages.
        shape: four sides.
        strides: of each side.
        dtype: element type.
        offset: elements from the array's first to the first of these.

    """

    kind: str
    member: str
    shape: tuple[int, int, int, int]
    strides: tuple[int, int, int, int]
    dtype: DType
    offset: int = 0

    def storage(self) -> Storage:
        """The storage of rows.

        Raises:
            ProblemError: rows have gaps, blocks do not start at a multiple of a row, or a size
                is not one that kernels take.

        """
        blocks, page, heads, head_size = self.shape
        found = Storage(
            kind=self.kind,
            dtype=self.dtype,
            heads=heads,
            head_size=head_size,
            page=page,
            blocks=blocks,
            block_stride=self._block_stride(),
            offset_bytes=self.dtype.bytes_of(self.offset),
        )
        found.check()
        return found

    def scales(self, rows: Storage) -> Scales:
        """The scales of a storage's rows.

        Raises:
            ProblemError: they have other sides than the rows, or lie otherwise.

        """
        self._require(self.dtype is DType.FP32, f"must be fp32, not {self.dtype.label}")
        wanted = (rows.blocks, rows.page, rows.heads)
        self._require(
            self.shape[:3] == wanted,
            f"must have the rows' sides {list(wanted)}, not {list(self.shape[:3])}",
        )
        stride = self._block_stride()
        rule = f"blocks must be {rows.block_stride} rows apart as the rows' are, not {stride}"
        self._require(rows.blocks <= 1 or stride == rows.block_stride, rule)
        offset = self.dtype.bytes_of(self.offset)
        return Scales(heads=rows.heads, per_head=self.shape[3], offset_bytes=offset)

    def _block_stride(self) -> int:
        """Rows from a block to the next, after the rules about strides hold."""
        blocks, page, heads, size = self.shape
        row = heads * size
        if 0 in self.shape:
            return page
        self._adjacent(size <= 1 or self.strides[3] == 1, "elements of a row must be adjacent")
        self._adjacent(heads <= 1 or self.strides[2] == size, "heads of a row must be adjacent")
        self._adjacent(page <= 1 or self.strides[1] == row, "rows of a block must be adjacent")
        if blocks <= 1:
            return page
        apart = self.strides[0]
        is_whole = apart >= 0 and apart % row == 0
        self._adjacent(is_whole, f"blocks must be a multiple of a row, {row} elements, apart")
        return apart // row

    def _adjacent(self, holds: bool, rule: str) -> None:
        given = f"the shape {list(self.shape)} has strides {list(self.strides)}"
        self._require(holds, f"{rule}; as [blocks, rows, heads, elements] {given}")

    def _require(self, holds: bool, rule: str) -> None:
        if not holds:
            raise ProblemError(f"`{self.member}`: {rule}", where=f"kv.{self.kind}")


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides of elements without gaps, in elements."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 1, 0, -1):
        strides[axis - 1] = strides[axis] * shape[axis]
    return tuple(strides)


def joined(sides: Sides) -> Sides:
    """Blocks with nothing between them as one block; others as they are."""
    blocks, page, heads, size = sides.shape
    if blocks > 1 and sides.strides[0] != page * heads * size:
        return sides
    step = sides.strides[1] if page > 1 else heads * size
    return replace(
        sides,
        shape=(1, blocks * page, heads, size),
        strides=(blocks * page * step, step, *sides.strides[2:]),
    )
