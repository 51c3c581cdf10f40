"""The GEMM of bf16 tokens and NVFP4 weights as it is built, on the emulator: every tile on its
telling cases, and mistakes of the manifest, which must not go unnoticed.
"""

import pytest

from kernelpack.bundle.reader import Bundle
from kernelpack.kernels.nvfp4_w4a16_grouped_gemm.definition import NVFP4_W4A16_GROUPED_GEMM
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.tensormap import Swizzle
from kernelpack.verify.plan import Planner, Scope
from tests.kernels.emulated import complaints, prove_one
from tests.kernels.mistakes import ONE, launch, parameter, swap, tensor_map
from tests.machine_code.build import one_of_each_tile

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "nvfp4_w4a16_grouped_gemm"
PREFILL = f"{KERNEL}[arch=sm_90a,out=bf16,tile_tokens=64"


@pytest.fixture(scope="module")
def planner(bundle: Bundle) -> Planner:
    return Planner(
        definition=NVFP4_W4A16_GROUPED_GEMM,
        variants=bundle.variants(KERNEL),
        scope=Scope(schedule="lazy"),
    )


@pytest.mark.parametrize(("turn", "variant_id"), [*enumerate(one_of_each_tile(KERNEL))])
def test_tile_is_right(bundle, planner, turn, variant_id):
    """Right numbers and no finding on the first telling case, and on one of the others in turn."""
    assert complaints(bundle, planner, variant_id, turn) == []


MISTAKES = {
    "codes and scales swapped": swap("b_map", "b_scales_map"),
    "n and k swapped": swap("n", "k"),
    "a group too few": parameter("n_active", value=parse("n_active - 1")),
    "k too short in the map": tensor_map("a_map", dims={0: parse("k - 32")}),
    "half a box of b": tensor_map("b_map", box={1: constant(128)}),
    "half the scales of b": tensor_map("b_scales_map", box={1: ONE}),
    "experts overlap": tensor_map("b_map", strides_bytes={1: parse("k // 2 * (n - 8)")}),
    "another swizzle of b": tensor_map("b_map", swizzle=Swizzle.NONE),
    "a warpgroup too few": launch(block=(constant(512), ONE, ONE)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_in_a_manifest(bundle, planner, mistake):
    """A wrong argument, box, stride or number of threads is caught."""
    assert not prove_one(bundle, planner, PREFILL, "telling_groups", MISTAKES[mistake]).is_right
