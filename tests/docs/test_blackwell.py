"""The model of Blackwell in benchmarks/model/nvfp4.py, and the page that follows from it."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.model.nvfp4 import (
    FULL_IN_FLIGHT_KIB,
    SHAPES,
    Tile,
    chosen,
    predict,
    routed,
    tiles_of,
)
from benchmarks.model.nvfp4_on_blackwell import PAGE, page
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from tests.machine_code.conftest import bundle  # noqa: F401 - a fixture

MANIFEST = Path(__file__).parents[2] / "manifests" / "nvfp4_grouped_gemm.yaml"
TILES = {
    (tile.of("TILE_TOKENS"), tile.of("TILE_WEIGHTS"), tile.rows_are_tokens): tile
    for tile in (Tile(variant=variant, registers=0) for variant in expand(load(MANIFEST)))
    if tile.variant.arch.name == "sm_100a" and ("OUT", "bf16") in tile.variant.axes
}
SQUARE, PAIR, DECODE = TILES[128, 128, True], TILES[256, 256, False], TILES[8, 128, False]
UP = SHAPES[0]


@pytest.mark.parametrize(
    ("tile", "multiply", "read"),
    [(SQUARE, 64, 64), (PAIR, 128, 64), (DECODE, 4, 34)],
    ids=["square", "pair", "decode"],
)
def test_cycles_of_an_mma(tile, multiply, read):
    """It multiplies two columns a cycle, and reads 128 bytes a cycle; a pair has half of B each."""
    assert (multiply, read) == (
        tile.multiply_cycles(tile.columns),
        tile.read_cycles(tile.columns),
    )


def test_columns_in_front_cost_what_columns_do():
    """Thirty-two in front of eight take as long as forty, and nothing to store."""
    one, more = DECODE.cycles(1, 8, 8), DECODE.cycles(1, 8, 8, 32)
    assert (4 * 42 / 0.66, one["stores"]) == (pytest.approx(more["MMA"]), more["stores"])


@pytest.mark.parametrize("tile", TILES.values(), ids=lambda tile: tile.name)
def test_bytes_in_flight(tile):
    """Every tile has as many bytes on their way as HBM needs."""
    assert tile.in_flight_kib >= FULL_IN_FLIGHT_KIB


def test_only_accumulator_is_waited_for():
    """Multiplying waits for the stores of the only accumulator, and for none of two."""
    whole = [(tile, tile.of("TILE_TOKENS")) for tile in (PAIR, SQUARE)]
    assert [t.cycles(1, n, t.columns)["MMA"] > 1200 for t, n in whole] == [True, False]


def test_tokens_alone_are_stored():
    """A tile of one token stores a part of what it could, whether tokens are rows or columns."""
    one = [tile.cycles(1, 1, 8)["stores"] for tile in (SQUARE, DECODE)]
    assert one == [128 * 128 * 2 // 48 / 128, 128 * 8 * 2 // 48 / 8]


def test_few_tokens_are_bound_by_memory():
    """One token an expert takes as long as the weights of the experts that have one."""
    tokens = np.ones(UP.experts, np.int64)
    weights = UP.experts * UP.n * UP.k * 0.5625 / 7.26e12
    time = predict(DECODE, UP, tokens)
    assert (time.bound, time.seconds) == ("HBM", pytest.approx(weights + 5e-6, rel=0.01))


def test_more_tokens_take_longer():
    """Twice the tokens take about twice as long where nothing but their number matters."""
    some, twice = (predict(PAIR, UP, routed(n, UP.experts)).seconds for n in (2**19, 2**20))
    assert twice == pytest.approx(2 * some, rel=0.1)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.model)
@pytest.mark.parametrize("each", [1, 8, 16, 32, 64, 128, 512, 2048])
def test_selection_takes_the_fastest(shape, each):
    """What the manifest's cost takes is within a tenth of the fastest, by the whole model."""
    tokens = routed(each * shape.experts, shape.experts)
    times = {tile.name: predict(tile, shape, tokens).seconds for tile in TILES.values()}
    taken = chosen(tuple(TILES.values()), shape, each * shape.experts)
    assert times[taken.name] <= 1.1 * min(times.values())


@pytest.mark.toolchain
@pytest.mark.slow
def test_page_is_current(bundle):  # noqa: F811
    """The page is what benchmarks/model/nvfp4_on_blackwell.py writes now: run it after a change."""
    assert PAGE.read_text() == page(tiles_of(bundle))
