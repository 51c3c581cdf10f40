"""The four storages of keys and values, as values that hold a caller's arrays.

Each says where its rows lie (`storage`), from the sides and strides of the array that holds them,
and has the arrays that say whose they are: which block a sequence's page is, how long a sequence
is. An op asks; a caller only makes them.
"""

from dataclasses import dataclass
from typing import Any, SupportsIndex

from kernelpack.kernels.kv_operand.sides import joined
from kernelpack.kernels.kv_operand.storage import Scales, Storage
from kernelpack.kv.seen import Seen, cache_sides, row_sides

Array = Any
"""An array of any framework."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Cache:
    """The shared part of the two caches.

    Attributes:
        layer: whose rows, of an array with a side for layers; left out where that has one.
        half: of an array with a side for keys and values: 0 keys, 1 values. MLA has keys alone.
        scales: fp32 scales of the rows; sides as the rows' array, the last one the scales of a row
            (of a head), or left out where that is one. At least 0: rows that are multiplied as
            they are take a scale into the weight of a key.
        lengths: tokens in the cache of each sequence [sequences], i32 or u32, without those that
            a step adds.

    """

    layer: SupportsIndex | None = None
    half: SupportsIndex = 0
    scales: Array = None
    lengths: Array = None


@dataclass(frozen=True, eq=False)
class Paged(_Cache):
    """A cache of blocks of rows, anywhere in memory, found by a table.

    Attributes:
        blocks: [blocks, page, row], [blocks, page, heads, row], or of all layers
            [blocks, halves, layers, page, heads, row]. Rows of a block are adjacent; blocks may be
            any multiple of a row apart, so a view of one layer will do.
        table: [sequences, pages], i32 or u32: the block of each sequence's page. Not needed where
            rows are named by encoded indices.
        lengths: tokens in the cache of each sequence [sequences], i32 or u32, without those that
            a step adds. Needed where tokens are named by their sequences.
        layer: whose rows, of an array of all layers.
        scales: fp32 scales of the rows, with the sides of `blocks`.

    """

    blocks: Array
    table: Array = None

    @property
    def rows(self) -> Array:
        """The array that holds the rows."""
        return self.blocks

    def storage(self, rows: Seen) -> Storage:
        """Where the rows lie; ProblemError names the rule that an array breaks."""
        return cache_sides("Paged", "blocks", rows, self.half, self.layer).storage()

    def scales_of(self, storage: Storage, scales: Seen) -> Scales:
        """Where their scales lie; ProblemError names the rule that an array breaks."""
        return cache_sides("Paged", "scales", scales, self.half, self.layer).scales(storage)


@dataclass(frozen=True, eq=False)
class Continuous(_Cache):
    """A cache of one slot of adjacent rows for each sequence.

    Attributes:
        slots: [slots, length, row], [slots, length, heads, row], or of all layers
            [slots, halves, layers, length, heads, row].
        table: [sequences], i32 or u32: the slot of each sequence; None: sequence b has slot b.

    """

    slots: Array
    table: Array = None

    @property
    def rows(self) -> Array:
        """The array that holds the rows."""
        return self.slots

    def storage(self, rows: Seen) -> Storage:
        """Where the rows lie; ProblemError names the rule that an array breaks."""
        return cache_sides("Continuous", "slots", rows, self.half, self.layer).storage()

    def scales_of(self, storage: Storage, scales: Seen) -> Scales:
        """Where their scales lie; ProblemError names the rule that an array breaks."""
        return cache_sides("Continuous", "scales", scales, self.half, self.layer).scales(storage)


@dataclass(frozen=True, eq=False)
class Padded:
    """Rows of sequences of one length.

    Attributes:
        rows: [sequences, length, row] or [sequences, length, heads, row].
        scales: fp32 scales of the rows, [sequences, length] or with [.., heads, scales of a row].

    """

    rows: Array
    scales: Array = None

    def storage(self, rows: Seen) -> Storage:
        """Where the rows lie: one block where nothing lies between the sequences."""
        return joined(row_sides("Padded", "rows", rows, outer=2)).storage()

    def scales_of(self, storage: Storage, scales: Seen) -> Scales:
        """Where their scales lie; ProblemError names the rule that an array breaks."""
        sides = row_sides("Padded", "scales", scales, outer=2, is_scales=True)
        return (joined(sides) if storage.blocks == 1 else sides).scales(storage)


@dataclass(frozen=True, eq=False)
class Ragged:
    """Rows of sequences one after another.

    Attributes:
        rows: [rows, row] or [rows, heads, row].
        offsets: the first row of each sequence, then the number of rows [sequences + 1], i32 or
            u32. Not needed where rows are named by indices.
        scales: fp32 scales of the rows, [rows], or with [.., heads, scales of a row].

    """

    rows: Array
    offsets: Array = None
    scales: Array = None

    def storage(self, rows: Seen) -> Storage:
        """Where the rows lie; ProblemError names the rule that an array breaks."""
        return row_sides("Ragged", "rows", rows, outer=1).storage()

    def scales_of(self, storage: Storage, scales: Seen) -> Scales:
        """Where their scales lie; ProblemError names the rule that an array breaks."""
        return row_sides("Ragged", "scales", scales, outer=1, is_scales=True).scales(storage)


Operand = Paged | Continuous | Padded | Ragged


def operand(kv: Operand | Array) -> Operand:
    """The given operand: an array of rows is a `Ragged` one."""
    return kv if isinstance(kv, Operand) else Ragged(kv)
