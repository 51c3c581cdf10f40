"""The NVFP4 grouped GEMM as it is built, on the emulator: every tile on its telling cases, and
mistakes of the manifest, which must not go unnoticed; then the op on numpy arrays.
"""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.bundle.reader import Bundle
from kernelpack.formats.dtype import DType
from kernelpack.kernels.nvfp4_grouped_gemm.definition import NVFP4_GROUPED_GEMM
from kernelpack.kernels.nvfp4_grouped_gemm.problem import Case
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.tensormap import Swizzle
from kernelpack.verify.plan import Planner, Scope
from tests.kernels.emulated import KeptLibrary, complaints, prove_one
from tests.kernels.mistakes import ONE, launch, parameter, swap, tensor_map
from tests.machine_code.build import one_of_each_tile

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "nvfp4_grouped_gemm"
DECODE = f"{KERNEL}[arch=sm_100a,out=bf16,rows=weights,tile_tokens=16"
PAIR = f"{KERNEL}[arch=sm_100a,out=bf16,rows=weights,tile_tokens=256"


@pytest.fixture(scope="module")
def planner(bundle: Bundle) -> Planner:
    return Planner(
        definition=NVFP4_GROUPED_GEMM,
        variants=bundle.variants(KERNEL),
        scope=Scope(schedule="lazy"),
    )


@pytest.mark.parametrize(("turn", "variant_id"), [*enumerate(one_of_each_tile(KERNEL))])
def test_tile_is_right(bundle, planner, turn, variant_id):
    """Right numbers and no finding on the first telling case, and on one of the others in turn."""
    assert complaints(bundle, planner, variant_id, turn) == []


MISTAKES = {
    "scales of a and b swapped": swap("a_scales_map", "b_scales_map"),
    "offsets and scale offsets swapped": swap("group_offsets", "group_scale_offsets"),
    "n and k swapped": swap("n", "k"),
    "a group too few": parameter("n_active", value=parse("n_active - 1")),
    "k too short in the map": tensor_map("a_map", dims={0: parse("k // 2 - 16")}),
    "half a box of b": tensor_map("b_map", box={1: constant(64)}),
    "half the scales of b": tensor_map("b_scales_map", box={1: constant(2)}),
    "atoms of b too few": tensor_map("b_scales_map", dims={1: parse("k_atoms - 1")}),
    "blocks of scales overlap": tensor_map("b_scales_map", strides_bytes={1: parse("512")}),
    "lanes of a_scales overlap": tensor_map("a_scales_map", strides_bytes={0: constant(32)}),
    "experts overlap": tensor_map("b_map", strides_bytes={1: parse("k // 2 * (n - 8)")}),
    "another swizzle of a": tensor_map("a_map", swizzle=Swizzle.B64, box={0: constant(64)}),
    "scales swizzled": tensor_map("b_scales_map", swizzle=Swizzle.B128, box={0: constant(32)}),
    "half a box of c": tensor_map("c_map", box={1: constant(8)}),
    "boxes of c not swizzled": tensor_map("c_map", swizzle=Swizzle.NONE),
    "c narrower than it is": tensor_map("c_map", dims={0: parse("n - 8")}),
    "a warp too few": launch(block=(constant(160), ONE, ONE)),
    "too little shared memory": launch(shared_bytes=constant(65_536)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_in_a_manifest(bundle, planner, mistake):
    """A wrong argument, box, stride or size of shared memory is caught."""
    assert not prove_one(bundle, planner, DECODE, "telling_groups", MISTAKES[mistake]).is_right


PAIR_MISTAKES = {
    "pairs not formed": launch(cluster=(ONE, ONE, ONE)),
    "half of a pair": launch(grid=(ONE, ONE, ONE)),
    "scales of half the tokens": tensor_map("a_scales_map", box={3: ONE}),
    "all tokens for each CTA": tensor_map("a_map", box={1: constant(256)}),
}


@pytest.mark.parametrize("mistake", PAIR_MISTAKES)
def test_mistake_about_pairs(bundle, planner, mistake):
    """A pair that is not one, or that is given another share, is caught."""
    assert not prove_one(bundle, planner, PAIR, "telling_atoms", PAIR_MISTAKES[mistake]).is_right


# -- the op on numpy arrays ----------------------------------------------------------------------

CASE = Case(name="op", e=3, n=72, k=96, tokens=(5, 0, 3, 20), ids=(2, 0, -1, 1), spare_blocks=1)


@pytest.mark.parametrize("out_dtype", [DType.BF16, DType.FP16, DType.FP32])
def test_op_on_numpy_arrays(bundle, out_dtype):
    """The op fills a numpy array with the oracle's values, and leaves rows without an expert."""
    case = replace(CASE, out_dtype=out_dtype)
    arrays = NVFP4_GROUPED_GEMM.inputs(case)
    expected = NVFP4_GROUPED_GEMM.expected(case, arrays)["c"]
    out = np.full((28, 72), 7, out_dtype.numpy)
    library = KeptLibrary(bundle.path, sm_count=4)
    assert ops.nvfp4_grouped_gemm(**arrays, out=out, library=library) is out
    active = np.delete(np.arange(28), range(5, 8))
    error = np.abs(out.astype(np.float64) - expected.value)
    assert (out[5:8].astype(np.float64) == 7).all()
    assert (error[active] <= expected.bound[active]).all()
