"""Write docs/nvfp4_on_blackwell.md: `python -m benchmarks.model.nvfp4_on_blackwell BUNDLE`.

The page puts each Blackwell tile of a bundle beside each model's shape: what nvfp4.py beside this
file predicts. A test checks the page against this file, the manifest and the machine code.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.model.nvfp4 import (
    AROUND_SECONDS,
    FULL_IN_FLIGHT_KIB,
    GHZ,
    HBM_BYTES_A_SECOND,
    MMAS_A_STAGE,
    MULTIPROCESSORS,
    SHAPES,
    SHARED_BYTES_A_CYCLE,
    SUSTAINED,
    Shape,
    Tile,
    chosen,
    predict,
    routed,
    tiles_of,
)
from kernelpack.bundle.reader import open_bundle

PAGE = Path(__file__).parents[2] / "docs" / Path(__file__).with_suffix(".md").name
COUNTED = PAGE.parents[1] / "benchmarks" / "results" / "nvfp4_emulated.json"
EACH = (1, 8, 16, 64, 256, 512, 2048)  # tokens of an expert, on average
PUBLISHED_MS = {
    512: 0.94,
    16384: 3.74,
}  # DeepSeek V3's experts, tokens of a step; 8 experts a token
EXPERTS_A_TOKEN = 8


def page(tiles: Sequence[Tile]) -> str:
    """docs/nvfp4_on_blackwell.md."""
    shapes = [part for shape in SHAPES for part in _shape(tiles, shape)]
    stores = [_STORES, _stores(tiles)]
    times = [_TIMES, *shapes, _PUBLISHED, _published(tiles)]
    return "\n\n".join([_ABOUT, _tiles(tiles), *stores, *times]) + "\n"


_ABOUT = f"""# The NVFP4 grouped GEMM on Blackwell, on paper

<!-- Written by benchmarks/model/nvfp4_on_blackwell.py from a bundle: edit that, then run it. -->

We have no Blackwell GPU: **every time below is predicted, none is measured.** What is sure is what
the emulator proves (numbers, races, barriers) and what the compiler says (registers, no spills).
The model (benchmarks/model/nvfp4.py), for a B200 of {MULTIPROCESSORS} multiprocessors at {GHZ} GHz:

- An MMA of M x N x 64 takes N / 2 cycles, or as long as shared memory takes to give both operands,
  {SHARED_BYTES_A_CYCLE} bytes a cycle. Dense random data sustain {SUSTAINED} of that rate.
- HBM gives {HBM_BYTES_A_SECOND / 1e12} TB/s. L2 gives 48 bytes a cycle to each of all
  multiprocessors at once, and takes as many beside them: assumptions.
- A tile is stored as fast as L2 takes it; the storing warps' four instructions for 64 bytes are
  fewer cycles. Where tensor memory holds one accumulator, multiplying waits for that; of two, one
  is stored meanwhile.
- Launch, the first bytes and the last stores take {AROUND_SECONDS * 1e6:.0f} us: an assumption.
- CTAs (or pairs) take tiles in turn; the busiest one counts. Tokens fall on experts at random.

## Tiles

Tokens x weights. A stage is 256 of K: four MMAs. Cycles are those of a stage with all columns, also
the 32 that a tile of at most 32 tokens has in front where its scales begin at an odd column: to
multiply at the full rate, to read operands, to load from L2. HBM needs {FULL_IN_FLIGHT_KIB} KiB
on their way to each multiprocessor."""

_STORES = """## Stores

Executed warp instructions, and lines of L2 that stores of C ask for, of bf16 outputs: where each
thread stored what it has, and since C leaves in boxes by TMA. Counted on the emulator
(benchmarks/nvfp4_emulated.py has the problems, its results other types); C has the same bits."""

_TIMES = """## Times

Microseconds and what bounds them, by tokens of an expert on average; **bold** is what selection
takes. `MMA` counts the stores that multiplying waits for."""

_PUBLISHED = """## Against published times

All experts of DeepSeek V3's layer on one GPU, gate and up, then down; the published times may
include more than the two products."""


def _tiles(tiles: Iterable[Tile]) -> str:
    return _table(_FACTS, map(_facts, tiles))


_FACTS = (
    *("tile", "registers", "stages", "KiB in flight", "accumulators", "tensor columns"),
    *("multiply cycles", "read cycles", "load cycles"),
)


def _facts(tile: Tile) -> tuple[object, ...]:
    sums = tile.of("ACCUMULATORS") * tile.of("ACCUMULATOR_COLUMNS")
    used = sums + tile.of("STAGES") * tile.of("STAGE_SCALES_COLUMNS")
    return (
        tile.name,
        tile.registers,
        tile.of("STAGES"),
        f"{tile.in_flight_kib:.0f}",
        tile.of("ACCUMULATORS"),
        used,
        f"{MMAS_A_STAGE * tile.multiply_cycles(tile.most_columns):.0f}",
        f"{MMAS_A_STAGE * tile.read_cycles(tile.most_columns):.0f}",
        tile.of("LOAD_CYCLES"),
    )


def _stores(tiles: Iterable[Tile]) -> str:
    """The emulator's counts before and after, by tile and problem."""
    states = json.loads(COUNTED.read_text())["states"].values()
    rows = []
    for tile in tiles:
        before, after = (state[tile.variant.id] for state in states)
        for problem, then in before.items():
            pairs = [(then[fact], after[problem][fact]) for fact in _COUNTED]
            rows.append((tile.name, problem, *(f"{old} → {new}" for old, new in pairs)))
    return _table(("tile", "problem", "instructions", "lines"), rows)


_COUNTED = ("warp_instructions", "lines_stored")


def _shape(tiles: Sequence[Tile], shape: Shape) -> Iterator[str]:
    yield f"{shape.model}: N {shape.n}, K {shape.k}, {shape.experts} experts."
    rows = []
    for each in EACH:
        tokens, taken = each * shape.experts, chosen(tiles, shape, each * shape.experts)
        times = [predict(tile, shape, routed(tokens, shape.experts)) for tile in tiles]
        rows.append(
            (each, *(f"**{t}**" if x is taken else t for x, t in zip(tiles, times, strict=True)))
        )
    yield _table(("tokens", *(tile.name for tile in tiles)), rows)


def _published(tiles: Sequence[Tile]) -> str:
    rows = []
    for tokens, published in PUBLISHED_MS.items():
        assignments = tokens * EXPERTS_A_TOKEN
        times = [
            predict(chosen(tiles, shape, assignments), shape, routed(assignments, shape.experts))
            for shape in SHAPES[:2]
        ]
        ours = sum(time.seconds for time in times) * 1e3
        rows.append(
            (
                tokens,
                *(f"{t.seconds * 1e6:.0f} us, {t.bound}" for t in times),
                f"{ours:.2f} ms",
                f"{published} ms",
            )
        )
    return _table(("tokens", "gate and up", "down", "predicted", "published"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(tiles_of(open_bundle(Path(sys.argv[1])))))
