"""Row formats of an MLA cache: what the bytes of a token's row are.

A row is 512 latent values, and 64 rope values where it has them. Keys are all of it, values are
the latent ones. Source: sparse MLA caches as DeepSeek-V3.2, FlashMLA and vLLM lay them out.

| name | bytes | latent | scales | rope |
|---|---|---|---|---|
| bf16_576 | 1152 | 512 bf16 | | 64 bf16 at 1024 |
| bf16_512 | 1024 | 512 bf16 | | |
| fp8_576 | 576 | 512 e4m3 | none, or an array: a row's, a block's of 32, 64, 128 | 64 e4m3 at 512 |
| fp8_512 | 512 | 512 e4m3 | likewise | |
| fp8_640 | 640 | 512 e4m3 | an array, a row's | 64 bf16 at 512, divided by the scale |
| fp8_656 | 656 | 512 e4m3 | four fp32 at 512, one of each 128 | 64 bf16 at 528 |
"""

from dataclasses import dataclass

from kernelpack.formats.dtype import DType

LATENT = 512
ROPE = 64
BLOCKS = (32, 64, 128)
"""Elements that share a scale of a block-scaled row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """The bytes of one row.

    Attributes:
        name: the word of the manifests' axis ROW.
        dtype: of the latent values.
        rope_dtype: of the rope values; None without rope.
        rope_offset: bytes from the row's start to the rope values.
        inline_scales: fp32 scales in the row itself, from byte 512 on.
        array_scales: whether scales lie in an array of their own: `never`, `maybe` or `always`.

    """

    name: str
    dtype: DType
    rope_dtype: DType | None = None
    rope_offset: int = 0
    inline_scales: int = 0
    array_scales: str = "never"

    @property
    def rope(self) -> int:
        """Rope values of a row."""
        return ROPE if self.rope_dtype else 0

    @property
    def width(self) -> int:
        """Values of a row: the depth of keys."""
        return LATENT + self.rope

    @property
    def bytes(self) -> int:
        """Bytes of a row."""
        if self.rope_dtype is None:
            return self.dtype.bytes_of(LATENT)
        return self.rope_offset + self.rope_dtype.bytes_of(ROPE)

    @property
    def elements(self) -> int:
        """Elements of the latent's type that a row takes: an array of rows has this last side."""
        return self.bytes * 8 // self.dtype.bits

    @property
    def scale_blocks(self) -> tuple[int, ...]:
        """Values that may share a scale of an array: the whole row, or a block of it."""
        by_array = {"never": (), "always": (self.width,), "maybe": (self.width, *BLOCKS[::-1])}
        return by_array[self.array_scales]

    def block_of(self, scales: int) -> int:
        """Values that share a scale, of a row with so many in an array; 0 where that cannot be."""
        fitting = (block for block in self.scale_blocks if -(-self.width // block) == scales)
        return next(fitting, 0)


_FP8 = DType.E4M3
FORMATS = {
    row.name: row
    for row in (
        RowFormat(name="bf16_576", dtype=DType.BF16, rope_dtype=DType.BF16, rope_offset=1024),
        RowFormat(name="bf16_512", dtype=DType.BF16),
        RowFormat(
            name="fp8_576", dtype=_FP8, rope_dtype=_FP8, rope_offset=512, array_scales="maybe"
        ),
        RowFormat(name="fp8_512", dtype=_FP8, array_scales="maybe"),
        RowFormat(
            name="fp8_640",
            dtype=_FP8,
            rope_dtype=DType.BF16,
            rope_offset=512,
            array_scales="always",
        ),
        RowFormat(
            name="fp8_656",
            dtype=_FP8,
            rope_dtype=DType.BF16,
            rope_offset=528,
            inline_scales=4,
        ),
    )
}
"""By name. No two agree in type and elements, so that an array says which one it holds."""


def format_of(dtype: DType, elements: int) -> RowFormat | None:
    """The format of rows of so many elements; bytes are taken for e4m3. None without one."""
    kind = _FP8 if dtype is DType.U8 else dtype
    known = (row for row in FORMATS.values() if (row.dtype, row.elements) == (kind, elements))
    return next(known, None)


def described() -> str:
    """The rows there are, for messages: `bf16 576 or 512, e4m3 or u8 576, 512, 640 or 656`."""
    wide = [str(row.elements) for row in FORMATS.values() if row.dtype is DType.BF16]
    narrow = [str(row.elements) for row in FORMATS.values() if row.dtype is _FP8]
    return f"bf16 {_either(wide)}, e4m3 or u8 {_either(narrow)}"


def _either(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
