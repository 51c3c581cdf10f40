"""Rules that need the whole of a manifest: who may name what, and what must agree."""

import pytest

from tests.manifest.small import mistake, small


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("targets: [sm_100a", "targets: [sm_90a", "target `sm_90a` is given twice"),
        ("  m: rows", "  if: rows", "`if` is a word of expressions"),
        ("  m: rows", "  min: rows", "`min` is a function"),
        ("  m: rows", "  sm_count: rows", "`sm_count` is given by the target or the device"),
        ("  TILE: ", "  ARCH: ", "`ARCH` is given by the target or the device"),
        ("  TILE: ", "  FAMILY: ", "`FAMILY` is given by the target or the device"),
        ("[16, 64]", "[16, 16]", "`16` is given twice"),
        ("[16, 64]", "[16, wide]", "mixes integers and words"),
        ("TILE_BYTES: 128 * TILE", "TILE: 128", "`TILE` is already defined under `axes`"),
        ("  tiles: cdiv(m, TILE)", "  m: cdiv(m, TILE)", "`m` is already defined under `sizes`"),
        ("PATH == 'direct'", "PATH == 'dircet'", "no axis has the value 'dircet'"),
        ("TILE_BYTES: 128 * TILE", "TILE_BYTES: 128 * TIEL", "unknown name `TIEL`"),
        ("TILE_BYTES: 128 * TILE", "TILE_BYTES: 128 * m", "unknown name `m`"),
        (
            "TILE_BYTES: 128 * TILE",
            "TILE_BYTES: STAGES",
            "`TILE_BYTES` needs itself: TILE_BYTES needs STAGES needs TILE_BYTES",
        ),
        (
            "tiles: cdiv(m, TILE)",
            "tiles: waves",
            "`tiles` needs itself: tiles needs waves needs tiles",
        ),
        ("template: small/", "template: /small/", "`/small/plain.cu.j2` leaves the folder"),
        ("template: small/", "template: a/../../", "`a/../../plain.cu.j2` leaves the folder"),
        ("dtype: fp32", "dtype: fp23", "`fp23` is not a type that fits here"),
        ("dtype: fp32", "dtype: PATH", "`direct` is not a type that fits here"),
        ("element: DTYPE", "element: fp4", "`fp4` is not a type that fits here"),
        ("scalar: u32", "scalar: e4m3", "`e4m3` is not a type that fits here"),
        ("over: x", "over: z", "unknown argument `z`"),
        ("pointer: y", "pointer: z", "unknown argument `z`"),
        ("name: y, ", "name: scales, ", "parameter `scales` is given twice"),
        ("  - {name: y, pointer: y}\n", "", "argument `y` reaches no parameter"),
        ("box: [64, TILE]", "box: [64]", "`box` has 1 entries, but `dims` has 2"),
        ("strides_bytes: [2 * k]", "strides_bytes: [2, k]", "`strides_bytes` has 2 entries"),
        ("      strides_bytes: [2 * k]\n", "", "`strides_bytes` has 0 entries"),
        ("element_strides: [1, 2]", "element_strides: [1]", "`element_strides` has 1 entries"),
        ("registers: 64", "registers: m", "unknown name `m`"),
        ("TILE_BYTES: 128 * TILE", "TILE_BYTES: \"'bf16'\"", "`TILE_BYTES` is a word"),
        ("TILE_BYTES: 128 * TILE", "TILE_BYTES: 1 if TILE == 64 else 'bf16'", "is a word"),
        ("  tiles: ", "  spare: m\n  tiles: ", "`spare` is derived but never used"),
        (
            "cost: waves",
            "cost: fitting_ctas(2) * waves",
            "depends on `fitting_ctas`, which is known once",
        ),
        ("cdiv(tiles, sm", "cdiv(fitting_clusters(2), sm", "`waves * TILE` depends on `fitting_c"),
        ("when: k % 8", "when: fitting_ctas(k) % 8", "depends on `fitting_ctas`"),
        ("block: [128", "block: [fitting_clusters(2)", "depends on `fitting_clusters`"),
        ("shared_bytes: SHARED", "shared_bytes: fitting_ctas(2) * SHARED", "depends on `fitting_"),
        ("box: [64", "box: [fitting_ctas(64)", "depends on `fitting_ctas`"),
        ("workspace_bytes: 4", "workspace_bytes: fitting_ctas(4)", "depends on `fitting_ctas`"),
        ("128 * TILE", "fitting_ctas(128) * TILE", "depends on `fitting_ctas`"),
    ],
)
def test_mistake(old, new, what):
    """A name that is unknown, defined twice or of no use, and ranks that differ, are named."""
    assert what in mistake(old, new).what


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("min(tiles, sm_count)", "fitting_clusters(TILE)"),
        ("cluster: [1, 1, 1]", "cluster: [fitting_ctas(m), 1, 1]"),
        ("value: m", "value: fitting_ctas(m)"),
    ],
)
def test_who_may_ask_the_device(old, new):
    """A grid, a cluster and a scalar may depend on how many clusters fit."""
    assert small(old, new)


def test_an_axis_that_nothing_names():
    """An axis that no expression and no type names would make variants without a difference."""
    error = mistake("  TILE: ", "  SPARE: [1, 2]\n  TILE: ")
    assert error.what == "axis `SPARE` is never used: its 2 values make no difference"


def test_an_axis_of_one_value_may_be_for_the_template_alone():
    """A single value makes no variants, so that the manifest need not name it."""
    assert small("  TILE: ", "  SPARE: [1]\n  TILE: ")
