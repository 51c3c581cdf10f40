"""The predicted cost of the NVFP4 grouped GEMM on a B200: cycles and bytes.

A model applied to the variants of a bundle; nothing in it is measured. Constants that selection
uses too come from the manifest.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelpack.bundle.reader import Bundle
from kernelpack.formats.dtype import DType
from kernelpack.spec.select import select
from kernelpack.spec.variant import Variant

KERNEL = "nvfp4_grouped_gemm"
Counts = NDArray[np.int64]

# --- the machine, and what is assumed of it ---

MULTIPROCESSORS = 148
GHZ = 1.9
SHARED_BYTES_A_CYCLE = 128
HBM_BYTES_A_SECOND = 7.26e12
SUSTAINED = 0.66  # of the tensor cores' rate, for dense random data: power
AROUND_SECONDS = 5e-6  # launch, the first stage's way, the last tile's stores; an assumption
FULL_IN_FLIGHT_KIB = 64  # bytes in flight a multiprocessor that HBM needs

MMA_K_BYTES = 32
MMAS_A_STAGE = 4
BYTES_AN_ELEMENT = 0.5 + 1 / 16  # half a byte, and a sixteenth of a scale
OUT_BYTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """What a variant is but for the type of its output."""

    variant: Variant
    registers: int  # most of any output type

    def of(self, name: str) -> int:
        """A constant of the manifest."""
        return int(dict(self.variant.constants)[name])

    @property
    def name(self) -> str:
        """How the page calls it: tokens x weights."""
        words = ", tokens on rows" if self.rows_are_tokens else ", pair" if self.ctas == 2 else ""
        return f"{self.of('TILE_TOKENS')} x {self.of('TILE_WEIGHTS')}{words}"

    @property
    def rows_are_tokens(self) -> bool:
        """Whether tokens are the rows of the MMA; else its columns."""
        return dict(self.variant.constants)["ROWS"] == "tokens"

    @property
    def in_flight_kib(self) -> float:
        """Bytes on their way to a multiprocessor while all its stages are being filled."""
        return self.of("STAGES") * self.of("STAGE_BYTES") / 1024

    @property
    def ctas(self) -> int:
        """CTAs that multiply a tile together."""
        return self.of("CTAS")

    @property
    def columns(self) -> int:
        """Columns of the MMA that are the tile's, at most."""
        return self.of("COLUMNS")

    @property
    def most_columns(self) -> int:
        """Columns of the MMA, at most: those in front of a tile's too."""
        return self.of("MMA_COLUMNS")

    def multiply_cycles(self, columns: int) -> float:
        """Of one MMA."""
        return columns / 2

    def read_cycles(self, columns: int) -> float:
        """Of both operands of an MMA: a CTA's rows, and its share of the columns."""
        return (128 + columns / self.ctas) * MMA_K_BYTES / SHARED_BYTES_A_CYCLE

    def cycles(self, blocks: int, tokens: int, columns: int, lead: int = 0) -> dict[str, float]:
        """What a tile of so many stages, tokens and columns takes, by what it would be bound by.

        Its tokens alone are stored; the MMA has `lead` columns in front of the tile's.
        """
        store = self.of("STORE_CYCLES") * tokens / self.of("TILE_TOKENS")
        one = max(self.multiply_cycles(lead + columns), self.read_cycles(lead + columns))
        multiply = blocks * MMAS_A_STAGE * one / SUSTAINED
        return {
            "L2": blocks * self.of("LOAD_CYCLES"),
            "MMA": multiply + (store if self.of("ACCUMULATORS") == 1 else 0),
            "stores": store,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """An expert's matrix: `n` columns of c, `k` elements of a row."""

    model: str
    n: int
    k: int
    experts: int


SHAPES = (
    Shape(model="DeepSeek V3 gate and up", n=4096, k=7168, experts=256),
    Shape(model="DeepSeek V3 down", n=7168, k=2048, experts=256),
    Shape(model="Kimi K2 gate and up, an eighth", n=512, k=7168, experts=384),
    Shape(model="Kimi K2 down, an eighth", n=7168, k=256, experts=384),
    Shape(model="Inkling Small", n=2048, k=4096, experts=256),
    Shape(model="ragged columns", n=1856, k=2688, experts=128),
)


@dataclass(frozen=True, slots=True)
class Time:
    """A predicted time, and what bounds it: HBM, L2, MMA or stores."""

    seconds: float
    bound: str

    def __str__(self) -> str:
        return f"{self.seconds * 1e6:.0f} {self.bound}"


def routed(assignments: int, experts: int) -> Counts:
    """Tokens of each expert where every assignment falls on any of them, always the same way."""
    return np.random.default_rng(0).multinomial(assignments, np.full(experts, 1 / experts))


def predict(tile: Tile, shape: Shape, tokens: Counts) -> Time:
    """The longest of: all bytes from HBM once, and the tiles of the busiest CTA or pair."""
    blocks = -(-shape.k // 256)
    parts = [part for count in tokens for part in _parts(tile, int(count))]
    known = {part: tile.cycles(blocks, *part) for part in set(parts)}  # few differ
    cycles = [known[part] for part in parts]
    busiest = _busiest(tile, shape, [max(each.values()) for each in cycles]) / (GHZ * 1e9)
    memory = _hbm_bytes(shape, tokens) / HBM_BYTES_A_SECOND
    total = {name: sum(each[name] for each in cycles) for name in ("L2", "MMA", "stores")}
    bound = "HBM" if memory > busiest else max(total, key=lambda name: total[name])
    return Time(max(memory, busiest) + AROUND_SECONDS, bound)


def _busiest(tile: Tile, shape: Shape, cycles: Sequence[float]) -> float:
    """Cycles of the CTA or pair whose tiles take longest: they take tiles in turn."""
    takers = MULTIPROCESSORS // tile.ctas
    each = np.repeat(cycles, -(-shape.n // tile.of("TILE_WEIGHTS")))
    return float(np.pad(each, (0, -len(each) % takers)).reshape(-1, takers).sum(axis=0).max())


def _parts(tile: Tile, count: int) -> Iterator[tuple[int, int, int]]:
    """The tiles of a group: tokens, their columns of the MMA, and how many are in front of these.

    A tile that begins in the second half of 64 rows has its scales at an odd column.
    """
    most = tile.of("TILE_TOKENS")
    for first in range(0, count, most):
        tokens = min(most, count - first)
        yield tokens, _columns(tile, tokens), first & tile.of("LEAD")


def _columns(tile: Tile, tokens: int) -> int:
    """Columns that the MMA has for so many tokens: whole panels of 32, or all."""
    if tile.rows_are_tokens:
        return tile.columns
    panel = min(32, tile.columns)
    return -(-tokens // panel) * panel


def _hbm_bytes(shape: Shape, tokens: Counts) -> float:
    """Weights of the experts that have tokens, the tokens, and c, each once."""
    weights = int(np.count_nonzero(tokens)) * shape.n * shape.k * BYTES_AN_ELEMENT
    return weights + int(tokens.sum()) * (shape.k * BYTES_AN_ELEMENT + shape.n * OUT_BYTES)


def chosen(tiles: Sequence[Tile], shape: Shape, assignments: int) -> Tile:
    """The tile that selection takes on a B200."""
    sizes = {
        "t": assignments,
        "n": shape.n,
        "k": shape.k,
        "e": shape.experts,
        "n_active": shape.experts,
        "choose_for": 0,
        "scale_blocks": assignments // 128 + shape.experts,
        "out_dtype": int(DType.BF16),
        "sm_count": MULTIPROCESSORS,
    }
    taken = select([tile.variant for tile in tiles], sizes, (10, 0))
    return next(tile for tile in tiles if tile.variant is taken)


def tiles_of(bundle: Bundle) -> tuple[Tile, ...]:
    """The Blackwell tiles of a bundle, of the fewest tokens first."""
    listed = [v for v in bundle.variants(KERNEL) if v.arch.name == "sm_100a"]
    registers: dict[object, int] = {}
    for variant in listed:
        key = variant.axes[1:]
        registers[key] = max(registers.get(key, 0), bundle.find(variant.id).registers)
    bf16 = [v for v in listed if ("OUT", "bf16") in v.axes]
    found = [Tile(variant=v, registers=registers[v.axes[1:]]) for v in bf16]
    return tuple(sorted(found, key=lambda tile: (tile.of("TILE_TOKENS"), tile.of("TILE_WEIGHTS"))))
