"""LoRA shrink as it is built, on the emulator: every tile on its telling cases, and mistakes of a
manifest, which must not go unnoticed.

Each tile runs with one pair of types; together the tiles have all of them. `kernelpack verify` runs
the rest.
"""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.bundle.reader import Bundle
from kernelpack.cli.counted import count
from kernelpack.emulator.faults import Level
from kernelpack.kernels.lora_shrink_qkv.definition import LORA_SHRINK_QKV
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.tensormap import Swizzle
from kernelpack.verify.plan import Planner, Scope
from tests.kernels.emulated import KeptLibrary, complaints, prove_one
from tests.kernels.mistakes import ONE, launch, parameter, swap, tensor_map
from tests.machine_code.build import one_of_each_tile

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "lora_shrink_qkv"


@pytest.fixture(scope="module")
def planner(bundle: Bundle) -> Planner:
    return Planner(
        definition=LORA_SHRINK_QKV,
        variants=bundle.variants(KERNEL),
        scope=Scope(schedule="lazy"),
    )


@pytest.mark.parametrize(("turn", "variant_id"), [*enumerate(one_of_each_tile(KERNEL))])
def test_tile_is_right(bundle, planner, turn, variant_id):
    """Right numbers and no finding on the first telling case, and on one of the others in turn."""
    assert complaints(bundle, planner, variant_id, turn) == []


# -- mistakes of a manifest ----------------------------------------------------------------------

WIDE = f"{KERNEL}[arch=sm_100a,dtype=bf16,out=bf16,regime=prefill,tile_tokens=64,tile_flat=96"
MISTAKES = {
    "offsets and ids swapped": swap("a_offsets", "expert_ids"),
    "maps swapped": swap("a_map", "b_map"),
    "m and n swapped": swap("m", "n"),
    "n and k swapped": swap("n", "k"),
    "a pointer for a scalar": swap("c", "m"),
    "a instead of c": parameter("c", argument="a"),
    "a group too few": parameter("n_active", value=parse("n_active - 1")),
    "a group too many": parameter("n_active", value=parse("n_active + 1")),
    "k too short": parameter("k", value=parse("k - 64")),
    "half a box of a": tensor_map("a_map", box={1: constant(32)}),
    "half a box of b": tensor_map("b_map", box={1: constant(48)}),
    "a box of b too large": tensor_map("b_map", box={1: constant(192)}),
    "rows of a overlap": tensor_map("a_map", strides_bytes={0: parse("2 * k - 16")}),
    "adapters overlap": tensor_map("b_map", strides_bytes={2: parse("4 * n * k")}),
    "a's map over b": tensor_map("a_map", argument="b"),
    "another swizzle of a": tensor_map("a_map", swizzle=Swizzle.B64, box={0: constant(32)}),
    "no swizzle of b": tensor_map("b_map", swizzle=Swizzle.NONE),
    "k too short in the map": tensor_map("a_map", dims={0: parse("k - 8")}),
    "a warp too few": launch(block=(constant(160), ONE, ONE)),
    "a warp too many": launch(block=(constant(224), ONE, ONE)),
    "too little shared memory": launch(shared_bytes=constant(65_536)),
    "too much shared memory": launch(shared_bytes=constant(232_449)),
    "grid of no clusters": launch(grid=(ONE, ONE, ONE)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_in_a_manifest(bundle, planner, mistake):
    """A wrong argument, box, stride, grid or size of shared memory is caught."""
    assert not prove_one(bundle, planner, WIDE, "telling_slices", MISTAKES[mistake]).is_right


def test_clusters_not_formed(bundle, planner):
    """Each CTA then does all of its tile, and writes what another does: found by the strict."""
    strict = replace(planner, scope=replace(planner.scope, level=Level.STRICT))
    change = launch(cluster=(ONE, ONE, ONE))
    outcomes = [prove_one(bundle, p, WIDE, "telling_slices", change) for p in (planner, strict)]
    assert [outcome.is_right for outcome in outcomes] == [True, False]


def test_idle_clusters_store_nothing(bundle):
    """Groups of unequal length could make more tiles: each there is is stored once, by one CTA."""
    case = LORA_SHRINK_QKV.case({"m": "40", "n": "16", "k": "1024", "g": "4"})
    found = count(KeptLibrary(bundle.path, arch="sm_90a"), LORA_SHRINK_QKV, case)
    assert found["ctas"] == 18 * 4  # of 16 tiles, in four slices of K
    assert found["bytes moved"]["threads write global"] == 3 * 40 * 16 * 2


# -- the op on numpy arrays ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "out_dtype", "arch"),
    [("bf16", None, "sm_100a"), ("fp16", "fp32", "sm_100a"), ("bf16", "fp16", "sm_90a")],
)
def test_op_on_numpy_arrays(bundle, dtype, out_dtype, arch):
    """The op on numpy arrays gives the oracle's values, with no GPU."""
    sizes = {"m": "21", "k": "136", "dtype": dtype, "out_dtype": out_dtype or dtype}
    case = LORA_SHRINK_QKV.case(sizes)
    arrays = LORA_SHRINK_QKV.inputs(case)
    library = KeptLibrary(bundle.path, arch=arch)
    c = ops.lora_shrink_qkv(*arrays.values(), out_dtype=out_dtype, library=library)
    expected = LORA_SHRINK_QKV.expected(case, arrays)["c"]
    assert c.dtype == case.out_dtype.numpy
    assert (np.abs(c.astype(np.float64) - expected.value) <= expected.bound).all()


def rows_of(bundle, case, tokens, **options):
    """The outputs of the first rows of a case, alone, all of its first adapter."""
    arrays = LORA_SHRINK_QKV.inputs(case)
    offsets, ids = np.array([0, tokens], np.uint32), np.zeros(1, np.int32)
    library = KeptLibrary(bundle.path, arch="sm_90a", sm_count=16)
    inputs = arrays["a"][:tokens], arrays["b"], offsets, ids
    return ops.lora_shrink_qkv(*inputs, out_dtype="fp32", library=library, **options)


def test_a_row_has_its_bits_in_every_batch(bundle):
    """Of calls that choose for the same number of tokens; else K is summed as the batch has it."""
    case = LORA_SHRINK_QKV.case({"m": "40", "n": "16", "k": "1024", "g": "1"})
    few, many, few_fixed, many_fixed = (
        rows_of(bundle, case, tokens, **options)
        for options in ({}, {"choose_for": 40})
        for tokens in (1, 40)
    )
    assert (few != many[:, :1]).any()
    np.testing.assert_array_equal(few_fixed, many_fixed[:, :1])
