"""Problems of the cache append: the numbers of one call, and the rules they obey.

    latent [t, 512], rope [t, 64] → rows of a cache, in its format, with their scales

A token's row is named by an encoded index (`slots`), or it is the next of its sequence: tokens
`row_offsets[b] … row_offsets[b + 1]` follow the `lengths[b]` that sequence b has in the cache.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kernelpack.errors import ProblemError
from kernelpack.kernels.kv_operand.lookup import Lookup
from kernelpack.kernels.kv_operand.rows import FORMATS, LATENT, ROPE, RowFormat

KERNEL = "kv_cache_append"
ABIS = range(1, 2)
"""The kernel-ABI numbers this version can call."""

MULTIPLE = 8  # elements: rows of values are read 16 bytes at a time

Rule = tuple[str, int, bool, str]
"""A number's name, the number, whether its rule holds, and the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The numbers of one call.

    Attributes:
        t: new tokens.
        row: how a row of the cache is laid out.
        latent_stride: elements from one token's latent values to the next one's.
        rope_stride: likewise of rope values.
        slot_words: words of a token's slot, 1 or 2; 0 where sequences say where tokens go.
        lookup: where tokens of sequences are; of slots only the blocks count.
        block_stride: rows from one block's first to the next one's.
        scales_per_row: scales of a row in an array of their own; 0 where there is none.
        power_of_two: whether scales are powers of two.

    """

    t: int
    row: RowFormat = FORMATS["bf16_576"]
    latent_stride: int = LATENT
    rope_stride: int = ROPE
    slot_words: int = 1
    lookup: Lookup
    block_stride: int
    scales_per_row: int = 0
    power_of_two: bool = False

    @property
    def sizes(self) -> dict[str, int]:
        """The names a manifest's expressions use."""
        return {
            "t": self.t,
            "row_bytes": self.row.bytes,
            "has_rope": int(self.row.rope > 0),
            "latent_stride": self.latent_stride,
            "rope_stride": self.rope_stride,
            "slot_words": self.slot_words,
            **self.lookup.sizes,
            "block_stride": self.block_stride,
            "scales_per_row": self.scales_per_row,
            "scale_block": self.scale_block,
            "power_of_two": int(self.power_of_two),
        }

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write, so that nothing is launched."""
        return self.t == 0

    @property
    def scale_block(self) -> int:
        """Values that share a scale of the array; 0 where there is none."""
        return self.row.block_of(self.scales_per_row) if self.scales_per_row else 0

    @property
    def kv_rows(self) -> int:
        """Rows from the layer's first to the last one that an index can name, and one."""
        return (self.lookup.blocks - 1) * self.block_stride + self.lookup.page

    def check(self) -> None:
        """Check the numbers against the kernel's definition.

        Raises:
            ProblemError: names the number, its value and the rule.

        """
        self.lookup.check(KERNEL)
        for name, value, holds, rule in (*self._of_values(), *self._of_rows()):
            if not holds:
                raise ProblemError(f"`{name}` must be {rule}, not {value}", where=KERNEL)

    def _of_values(self) -> Iterator[Rule]:
        yield "t", self.t, 0 <= self.t < 2**31, "from 0 to below 2^31"
        rule = f"a multiple of {MULTIPLE} elements, below 2^40"
        for name in ("latent_stride", "rope_stride"):
            stride = getattr(self, name)
            yield name, stride, 0 <= stride < 2**40 and stride % MULTIPLE == 0, rule

    def _of_rows(self) -> Iterator[Rule]:
        lookup, stride = self.lookup, self.block_stride
        yield "blocks", lookup.blocks, lookup.blocks >= 1, "at least 1"
        rule = f"from page = {lookup.page} rows to below 2^32"
        yield "block_stride", stride, lookup.page <= stride < 2**32, rule
        yield "kv_rows", self.kv_rows, self.kv_rows < 2**31, "below 2^31"
