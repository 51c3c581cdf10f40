"""Sparse MLA prefill as it is built, on the emulator: variants on their telling cases, and mistakes
of a manifest, which must not go unnoticed.

`kernelpack verify` runs the rest.
"""

from itertools import cycle, groupby

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.bundle.reader import Bundle
from kernelpack.kernels.sparse_mla_prefill.definition import SPARSE_MLA_PREFILL
from kernelpack.kernels.sparse_mla_prefill.inputs import Case
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.tensormap import Swizzle
from kernelpack.verify.plan import Planner, Scope
from tests.kernels.emulated import KeptLibrary, complaints, prove_one
from tests.kernels.mistakes import ONE, launch, parameter, swap, tensor_map
from tests.machine_code.build import built, kind_of

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "sparse_mla_prefill"
GARBAGE = "bf16_576_telling_garbage"
OURS = built(KERNEL)
MOST_HEADS = {"sm_100a": 128, "sm_90a": 64}
BEGIN = {
    arch: f"{KERNEL}[arch={arch},row=bf16_576,scale_block=0,heads={MOST_HEADS[arch]}"
    for arch in sorted({v.arch.name for v in OURS})
}
HOPPER = [arch for arch in BEGIN if arch == "sm_90a"]


def in_turn(ours):
    """Of Blackwell all that are built but half of those for queries of e4m3; of Hopper one tile
    of each kind of rows, in turn.
    """
    hopper = [v for v in ours if v.arch.name == "sm_90a"]
    kinds = groupby(sorted(hopper, key=rows_of), key=rows_of)
    tiles = (list(group) for _, group in kinds)
    some = [each[number % len(each)] for number, each in enumerate(tiles)]
    queries = [v for v in ours if v.arch.name != "sm_90a" and dict(v.axes)["QUERY"] == "e4m3"]
    left_out = {v.id for v in (*hopper, *queries[1::2])} - {v.id for v in some}
    return [v.id for v in ours if v.id not in left_out]


def rows_of(variant):
    row, block, _, query = kind_of(variant)
    return row, block, query


@pytest.fixture(scope="module")
def planner(bundle: Bundle) -> Planner:
    return Planner(
        definition=SPARSE_MLA_PREFILL,
        variants=bundle.variants(KERNEL),
        scope=Scope(schedule="lazy"),
    )


def test_every_kind_of_rows_has_a_turn():
    """On Hopper each kind of rows is run with at least one tile."""
    hopper = [v for v in OURS if v.arch.name == "sm_90a"]
    assert set(map(rows_of, hopper)) == {rows_of(v) for v in hopper if v.id in in_turn(OURS)}


@pytest.mark.parametrize(("turn", "variant_id"), [*enumerate(in_turn(OURS), 2)])
def test_variant_is_right(bundle, planner, turn, variant_id):
    """Right and without a finding on garbage, and on one of the other telling cases in turn.

    A case of nine tiles shows no more than one of two or three: tiles do not know of each other.
    """
    few = 4 * dict(bundle.variant(variant_id).axes)["HEADS"]
    assert complaints(bundle, planner, variant_id, turn, lambda case: case.h <= few) == []


# -- mistakes of a manifest ----------------------------------------------------------------------

MISTAKES = {
    "lengths and sinks swapped": swap("topk_lengths", "sink"),
    "lengths and indices swapped": swap("topk_lengths", "indices"),
    "lse and the largest scores swapped": swap("lse", "max_logits"),
    "out instead of lse": parameter("lse", argument="out"),
    "tokens and heads swapped": swap("tokens", "heads"),
    "topk and its stride swapped": swap("topk", "indices_stride"),
    "page and blocks swapped": swap("page", "blocks"),
    "a head too few": parameter("heads", value=parse("h - 1")),
    "a head too many": parameter("heads", value=parse("h + 1")),
    "an entry too few": parameter("topk", value=parse("topk - 1")),
    "an entry too many": parameter("topk", value=parse("topk + 1")),
    "entries without their gap": parameter("indices_stride", value=parse("topk")),
    "a row of a page too few": parameter("page", value=parse("page - 1")),
    "a block too few": parameter("blocks", value=parse("blocks - 1")),
    "a block too many": parameter("blocks", value=parse("blocks + 1")),
    "blocks without the other layers": parameter("block_stride", value=parse("page")),
    "the scale twice as large": parameter("scale_log2e", value=parse("scale_log2e + 8388608")),
    "dead lse of the other sign": parameter("dead_lse", value=parse("2139095040")),
    "heads of q without their gap": tensor_map("q_map", strides_bytes={0: constant(1152)}),
    "tokens of q too near": tensor_map("q_map", strides_bytes={1: parse("2 * h * 576")}),
    "a head of q too few": tensor_map("q_map", dims={1: parse("h - 1")}),
    "columns of q too few": tensor_map("q_map", dims={0: constant(568)}),
    "half a box of q": tensor_map("q_map", box={1: constant(32)}),
    "half the columns of a box": tensor_map("q_map", box={0: constant(32)}),
    "a warp too few": launch(block=(parse("352"), ONE, ONE)),
    "little shared memory": launch(shared_bytes=constant(65_536)),
}
OF_BLACKWELL = {
    "half of the CTAs": launch(grid=(parse("max(1, t // 2) * 2"), ONE, ONE)),
    "rows without the other layers": tensor_map("kv_map", dims={1: parse("blocks * page")}),
    "rows too near": tensor_map("kv_map", strides_bytes={0: constant(1136)}),
    "rows of the latent alone": tensor_map("kv_map", dims={0: constant(512)}),
    "no swizzle of rows": tensor_map("kv_map", swizzle=Swizzle.NONE),
    "half a box of a row": tensor_map("kv_map", box={0: constant(32)}),
    "q for rows": tensor_map("kv_map", argument="q"),
}


@pytest.mark.parametrize(("arch", "mistake"), [*zip(cycle(BEGIN), MISTAKES, strict=False)])
def test_mistake_in_a_manifest(bundle, planner, arch, mistake):
    """A wrong argument, size, map or launch is caught, on one target and the other in turn."""
    assert not prove_one(bundle, planner, BEGIN[arch], GARBAGE, MISTAKES[mistake]).is_right


@pytest.mark.parametrize("mistake", OF_BLACKWELL)
def test_mistake_on_blackwell(bundle, planner, mistake):
    """Blackwell gathers by a map and has CTAs for each token; a wrong map or grid is caught."""
    assert not prove_one(bundle, planner, BEGIN["sm_100a"], GARBAGE, OF_BLACKWELL[mistake]).is_right


@pytest.mark.parametrize("arch", HOPPER)
def test_any_grid_on_hopper(bundle, planner, arch):
    """Hopper's CTAs take tokens in turn: one does them all."""
    change = launch(grid=(ONE, ONE, ONE))
    assert prove_one(bundle, planner, BEGIN[arch], GARBAGE, change).is_right


@pytest.mark.parametrize("argument", ["q", "indices"])
@pytest.mark.parametrize("arch", HOPPER)
def test_other_rows_on_hopper(bundle, planner, arch, argument):
    """Hopper gathers by a pointer; a wrong one is caught."""
    change = parameter("kv", argument=argument)
    assert not prove_one(bundle, planner, BEGIN[arch], GARBAGE, change).is_right


# -- the op on numpy arrays ----------------------------------------------------------------------


@pytest.mark.parametrize("arch", BEGIN)
@pytest.mark.parametrize("layer", [0, 2])
def test_op_on_numpy_arrays(bundle, layer, arch):
    """The op on a cache of three layers, with no GPU, gives the oracle's numbers."""
    case = Case(
        name="t", t=2, h=9, topk=70, page=16, blocks=6, layers=3, layer=layer, lengths="uneven"
    )
    arrays, problem = SPARSE_MLA_PREFILL.inputs(case), case.problem
    cache = np.full((6, 1, 3, 16, 1, 576), np.nan).astype(arrays["q"].dtype)
    rows = np.full((6 * 3 * 16, 1152), 0xFF, np.uint8)
    rows[: problem.kv_rows] = arrays["kv"]
    cache[:, :, layer] = rows.view(cache.dtype).reshape(cache.shape)[:, :, 0]
    out, lse, largest = ops.sparse_mla_prefill(
        arrays["q"].reshape(2, 9, 576),
        kv.Paged(cache, layer=layer),
        arrays["indices"].reshape(2, 70),
        case.scale,
        topk_lengths=arrays["topk_lengths"],
        return_lse=True,
        return_max_logits=True,
        library=KeptLibrary(bundle.path, arch=arch),
    )
    expected = SPARSE_MLA_PREFILL.expected(case, arrays)
    assert (expected["out"].ratio(out).max() <= 1, expected["out"].drift(out) <= 1) == (True, True)
    assert expected["lse"].ratio(lse).max() <= 1
    assert expected["max_logits"].ratio(largest).max() <= 1
