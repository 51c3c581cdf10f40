"""LoRA shrink as it is built, on the emulator: every tile on its telling cases, and mistakes of a
manifest, which must not go unnoticed.

Each tile runs with one pair of types; together the tiles have all of them. `kernelpack verify` runs
the rest.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.bundle.reader import Bundle, open_bundle
from kernelpack.kernels.lora_shrink_qkv.definition import LORA_SHRINK_QKV
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.params import MapParam, Param
from kernelpack.spec.tensormap import Swizzle
from kernelpack.spec.variant import Variant
from kernelpack.verify.outcome import Outcome
from kernelpack.verify.plan import Planner, Scope
from kernelpack.verify.prove import prove
from tests.machine_code.build import build_once, variants

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "lora_shrink_qkv"


def tile(variant: Variant) -> tuple[object, ...]:
    return (variant.arch, *(v for name, v in variant.axes if name not in ("DTYPE", "OUT")))


def one_of_each_tile() -> list[str]:
    """The id of a variant for each tile, the types in turn."""
    built = sorted(
        (v for v in variants() if v.kernel == KERNEL), key=lambda v: (str(tile(v)), v.id)
    )
    tiles = [[v.id for v in group] for _, group in groupby(built, key=tile)]
    return [ids[number % len(ids)] for number, ids in enumerate(tiles)]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    own = tmp_path_factory.getbasetemp()
    return open_bundle(build_once(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own))


@pytest.fixture(scope="module")
def planner(bundle: Bundle) -> Planner:
    return Planner(
        definition=LORA_SHRINK_QKV,
        variants=bundle.variants(KERNEL),
        scope=Scope(schedule="lazy"),
    )


def complaints(outcome: Outcome) -> str:
    return "" if outcome.is_right else f"{outcome.job.words}: {outcome.state}\n{outcome.words}"


@pytest.mark.parametrize("variant_id", one_of_each_tile(), ids=str)
def test_tile_is_right(bundle, planner, variant_id):
    """Right numbers and no finding on every telling case, and where selection takes the variant."""
    variant = bundle.variant(variant_id)
    ptx = bundle.ptx(bundle.find(variant_id).ptx_digest).text
    jobs = planner.jobs(lambda other: other == variant_id)
    outcomes = [prove(job, variant, ptx, LORA_SHRINK_QKV) for job in jobs]
    assert [complaints(o) for o in outcomes if not o.is_right] == []


# -- mistakes of a manifest ----------------------------------------------------------------------

WIDE = f"{KERNEL}[arch=sm_100a,dtype=bf16,out=bf16,regime=prefill,tile_tokens=64,tile_flat=96"
ONE = constant(1)
Mistake = Callable[[Variant], Variant]


def parameter(name: str, **changes: object) -> Mistake:
    """Another value in the place of a parameter's."""

    def make(param: Param) -> Param:
        return replace(param, **changes) if param.name == name else param

    return lambda variant: replace(variant, params=tuple(map(make, variant.params)))


def tensor_map(name: str, **changes: object) -> Mistake:
    """Another tensor map; sides are put at their place, `{1: 32}`."""

    def make(param: Param) -> Param:
        if not (isinstance(param, MapParam) and param.name == name):
            return param
        values = {k: _put(getattr(param.map, k), v) for k, v in changes.items()}
        return replace(param, map=replace(param.map, **values))

    return lambda variant: replace(variant, params=tuple(map(make, variant.params)))


def _put(sides: object, change: object) -> object:
    if not (isinstance(change, dict) and isinstance(sides, tuple)):
        return change
    return tuple(change.get(index, side) for index, side in enumerate(sides))


def launch(**changes: object) -> Mistake:
    """Another grid, block, cluster or size of shared memory."""
    return lambda variant: replace(variant, launch=replace(variant.launch, **changes))


def swap(first: str, second: str) -> Mistake:
    """Two parameters in the place of each other."""

    def make(variant: Variant) -> Variant:
        named = {param.name: param for param in variant.params}
        other = {first: named[second], second: named[first]}
        return replace(variant, params=tuple(other.get(p.name, p) for p in variant.params))

    return make


MISTAKES = {
    "offsets and ids swapped": swap("a_offsets", "expert_ids"),
    "maps swapped": swap("a_map", "b_map"),
    "m and n swapped": swap("m", "n"),
    "n and k swapped": swap("n", "k"),
    "a pointer for a scalar": swap("c", "m"),
    "a in the place of c": parameter("c", argument="a"),
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
    "clusters not formed": launch(cluster=(ONE, ONE, ONE)),
    "a warp too few": launch(block=(constant(160), ONE, ONE)),
    "a warp too many": launch(block=(constant(224), ONE, ONE)),
    "too little shared memory": launch(shared_bytes=constant(65_536)),
    "too much shared memory": launch(shared_bytes=constant(232_449)),
    "grid of no clusters": launch(grid=(ONE, ONE, ONE)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_in_a_manifest(bundle, planner, mistake):
    """A wrong argument, box, stride, grid or size of shared memory is caught."""
    (record,) = (r for r in bundle.records(KERNEL) if r.id.startswith(WIDE))
    ptx = bundle.ptx(record.ptx_digest).text
    wrong = MISTAKES[mistake](bundle.variant(record.id))
    jobs = planner.jobs(lambda other: other == record.id)
    (job,) = (job for job in jobs if job.case.name == "telling_slices")
    assert not prove(job, wrong, ptx, LORA_SHRINK_QKV).is_right


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
    library = ops.EmulatedLibrary(bundle.path, arch=arch)
    c = ops.lora_shrink_qkv(*arrays.values(), out_dtype=out_dtype, library=library)
    expected = LORA_SHRINK_QKV.expected(case, arrays)["c"]
    assert c.dtype == case.out_dtype.numpy
    assert (np.abs(c.astype(np.float64) - expected.value) <= expected.bound).all()
