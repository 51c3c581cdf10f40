"""Problems of what comes before decode attention: the numbers of one call, and their rules.

    q [t, h, 128 + rope], w_uk [h, 512, 128] with w_uk_scale [h, 4] → out [t, h, 512 + rope]
    new_kv [t, 512 + rope], gamma [512], freqs [positions, 64]      → rows of a cache

A token's position and row are given (`positions`, `slots`), or it is the next of its sequence:
tokens `row_offsets[b] … row_offsets[b + 1]` follow the `lengths[b]` that sequence b has.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.kv_operand.lookup import Lookup
from kernelpack.kernels.kv_operand.rows import LATENT, ROPE, RowFormat
from kernelpack.kernels.mla_decode_project.problem import MOST_HEADS, MOST_TOKENS, MULTIPLE
from kernelpack.kernels.sparse_mla_prefill.problem import bits

KERNEL = "mla_decode_absorb"
ABIS = range(1, 2)
"""The kernel-ABI numbers this version can call."""

NOPE = 128
"""Values of a head that are absorbed."""
NO_CACHE = Lookup(sequences=0, page=1, blocks=0)
MOST_POSITIONS = 2**31 - 1

Rule = tuple[str, int, bool, str]
"""A number's name, the number, whether its rule holds, and the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """The numbers of one call.

    Attributes:
        t: new tokens.
        h: heads of a token; 0 where there are no queries.
        rope: rope values of a head and of a new row, 64 or 0.
        absorbs: whether queries are multiplied.
        rotates: whether their rope values are rotated.
        row: how a row of the cache is laid out; None where no rows are written.
        q_token_stride: elements from one token of q to the next.
        q_head_stride: elements from one head of q to the next.
        new_stride: elements from one new row to the next.
        gamma: the type of the norm's weights.
        epsilon: added to the mean of squares.
        most_positions: rows of freqs.
        slot_words: words of a token's slot, 1 or 2; 0 where sequences say where tokens go.
        position_words: likewise of its position.
        has_batch: whether a number on the device says how many sequences count.
        lookup: where tokens of sequences are; of slots only the blocks count.
        block_stride: rows from one block's first to the next one's.
        scales_per_row: scales of a row in an array of their own; 0 where there is none.
        power_of_two: whether scales are powers of two.

    """

    t: int
    h: int = 0
    rope: int = ROPE
    absorbs: bool = False
    rotates: bool = False
    row: RowFormat | None = None
    q_token_stride: int = 0
    q_head_stride: int = NOPE + ROPE
    new_stride: int = LATENT + ROPE
    gamma: DType = DType.BF16
    epsilon: float = 1e-6
    most_positions: int = MOST_POSITIONS
    slot_words: int = 0
    position_words: int = 0
    has_batch: bool = False
    lookup: Lookup = NO_CACHE
    block_stride: int = 0
    scales_per_row: int = 0
    power_of_two: bool = False

    @property
    def sizes(self) -> dict[str, int]:
        """The names a manifest's expressions use."""
        return {
            "t": self.t,
            "h": self.h,
            "rope": self.rope,
            "absorbs": int(self.absorbs),
            "rotates": int(self.rotates),
            "appends": int(self.appends),
            "q_token_stride": self.q_token_stride,
            "q_head_stride": self.q_head_stride,
            "new_stride": self.new_stride,
            "gamma_bytes": self.gamma.bytes_of(1),
            "epsilon": bits(self.epsilon),
            "most_positions": self.most_positions,
            "slot_words": self.slot_words,
            "position_words": self.position_words,
            "has_batch": int(self.has_batch),
            **self.lookup.sizes,
            "block_stride": self.block_stride,
            "row_bytes": self.row.bytes if self.row else 0,
            "scales_per_row": self.scales_per_row,
            "scale_block": self.scale_block,
            "power_of_two": int(self.power_of_two),
        }

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write, so that nothing is launched."""
        return self.t == 0 or not (self.absorbs or self.rotates or self.appends)

    @property
    def appends(self) -> bool:
        """Whether rows are written."""
        return self.row is not None

    @property
    def scale_block(self) -> int:
        """Values that share a scale of the array; 0 where there is none."""
        return self.row.block_of(self.scales_per_row) if self.row and self.scales_per_row else 0

    @property
    def kv_rows(self) -> int:
        """Rows from the layer's first to the last one that an index can name, and one."""
        blocks = self.lookup.blocks
        return (blocks - 1) * self.block_stride + self.lookup.page if blocks else 0

    @property
    def width(self) -> int:
        """Columns of a head of the output."""
        return LATENT + self.rope

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
        yield "t", self.t, 0 <= self.t <= MOST_TOKENS, f"from 0 to {MOST_TOKENS}"
        yield "h", self.h, 0 <= self.h <= MOST_HEADS, f"from 0 to {MOST_HEADS}"
        yield "rope", self.rope, self.rope in (0, ROPE), f"0 or {ROPE}"
        rule = f"a multiple of {MULTIPLE} elements, below 2^40"
        for name in ("q_token_stride", "q_head_stride", "new_stride"):
            stride = getattr(self, name)
            yield name, stride, 0 <= stride < 2**40 and stride % MULTIPLE == 0, rule
        most = self.most_positions
        yield "most_positions", most, 1 <= most < 2**31, "from 1 to below 2^31"

    def _of_rows(self) -> Iterator[Rule]:
        if self.row is None:
            return
        lookup, stride = self.lookup, self.block_stride
        yield "blocks", lookup.blocks, lookup.blocks >= 1, "at least 1"
        rule = f"from page = {lookup.page} rows to below 2^32"
        yield "block_stride", stride, lookup.page <= stride < 2**32, rule
        yield "kv_rows", self.kv_rows, self.kv_rows < 2**31, "below 2^31"
        rule = f"the {self.row.rope} of {self.row.name} rows"
        yield "rope", self.rope, self.rope == self.row.rope, rule
