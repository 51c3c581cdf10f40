"""The NVFP4 quantiser as it is built, on the emulator: every variant on its telling cases, Hopper's
rounding by arithmetic, and mistakes of a manifest, which must not go unnoticed.

`kernelpack verify` runs the rest.
"""

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.bundle.reader import Bundle
from kernelpack.emulator import arrays as emulator
from kernelpack.formats.dtype import DType
from kernelpack.formats.narrow import encode
from kernelpack.formats.packing import pack
from kernelpack.kernels.nvfp4_quantize.definition import NVFP4_QUANTIZE
from kernelpack.kernels.nvfp4_quantize.problem import Case
from kernelpack.render.includes import closure
from kernelpack.spec.artifact import Source
from kernelpack.spec.expr import constant, parse
from kernelpack.verify.plan import Planner, Scope
from tests.kept import compiled
from tests.kernels.emulated import KeptLibrary, complaints, prove_one
from tests.kernels.mistakes import ONE, launch, parameter
from tests.machine_code.build import ROOT, variants

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

KERNEL = "nvfp4_quantize"
TEMPLATES = ROOT / "templates"


@pytest.fixture(scope="module")
def planner(bundle: Bundle) -> Planner:
    return Planner(
        definition=NVFP4_QUANTIZE, variants=bundle.variants(KERNEL), scope=Scope(schedule="lazy")
    )


@pytest.mark.parametrize("variant_id", [v.id for v in variants() if v.kernel == KERNEL])
def test_variant_is_right(bundle, planner, variant_id):
    """Every bit right and no finding on every telling case, and where the variant is selected."""
    assert complaints(bundle, planner, variant_id) == []


# -- rounding by arithmetic ----------------------------------------------------------------------

ROUND = """
#include <kp/numbers/e2m1.cuh>
extern "C" __global__ void round_all(uint32_t* codes, const float* values) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
    codes[i] = kp::numbers::to_e2m1(values + 8 * i);
}
"""


def telling_floats() -> np.ndarray:
    """Every code and tie with its neighbours, the ends of fp32, and any bits; of both signs.

    A NaN is the one that arithmetic makes, 0x7FFFFFFF.
    """
    middles = np.arange(0, 6.25, 0.25, np.float32).view(np.uint32)
    beside = middles[:, None] + np.arange(-3, 4)
    ends = [0, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0x7FFFFFFF, 0x7F800001]
    random = np.random.default_rng(0).integers(0, 1 << 31, 4000)
    near = np.random.default_rng(1).uniform(0, 8, 4000).astype(np.float32).view(np.uint32)
    bits = np.concatenate([beside.ravel()[3:], ends, random, near]).astype(np.uint32)
    values = np.concatenate([bits, bits | np.uint32(1 << 31)]).view(np.float32)
    values = np.resize(values, -(-values.size // 256) * 256)
    return np.where(np.isnan(values), np.uint32(0x7FFFFFFF).view(np.float32), values)


def test_arithmetic_rounds_as_the_instruction():
    """Hopper's codes are those of `cvt.rn.satfinite.e2m1x2.f32`, for NaN and infinity too."""
    headers = closure(ROUND, "round.cu", TEMPLATES)
    source = Source(
        variant_id="round", entry="round_all", name="round.cu", text=ROUND, headers=headers
    )
    ptx = compiled(source, "sm_90a")
    values = telling_floats()
    codes = np.zeros(values.size // 8, np.uint32)
    emulator.launch(ptx.text, "round_all", codes.size // 32, 32, codes, values).raise_on_error()
    expected = pack(encode(DType.E2M1, values, satfinite=True), 4)
    assert np.array_equal(expected, codes.view(np.uint8))


# -- mistakes of a manifest ----------------------------------------------------------------------

MISTAKES = {
    "offsets for scale offsets": parameter("scale_offsets", argument="row_offsets"),
    "ids for offsets": parameter("row_offsets", argument="expert_ids"),
    "scale offsets for ids": parameter("expert_ids", argument="scale_offsets"),
    "codes for scales": parameter("scales", argument="codes"),
    "scales for codes": parameter("codes", argument="scales"),
    "codes for x": parameter("x", argument="codes"),
    "a group too few": parameter("n_active", value=parse("n_active - 1")),
    "a group too many": parameter("n_active", value=parse("n_active + 1")),
    "a scale block too few": parameter("scale_blocks", value=parse("scale_blocks - 1")),
    "a scale block too many": parameter("scale_blocks", value=parse("scale_blocks + 1")),
    "k too short": parameter("k", value=parse("k - 32")),
    "k too long": parameter("k", value=parse("k + 32")),
    "a warp too few": launch(block=(constant(224), ONE, ONE)),
    "a warp too many": launch(block=(constant(288), ONE, ONE)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("arch", ["sm_100a", "sm_90a"])
def test_mistake_in_a_manifest(bundle, planner, arch, mistake):
    """A wrong argument, size or block is caught."""
    begin = f"{KERNEL}[arch={arch},form=grouped,in=bf16"
    assert not prove_one(bundle, planner, begin, "telling_groups", MISTAKES[mistake]).is_right


# -- the op on numpy arrays ----------------------------------------------------------------------


@pytest.mark.parametrize("arch", ["sm_100a", "sm_90a"])
@pytest.mark.parametrize("n_active", [0, 4])
@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_op_on_numpy_arrays(bundle, dtype, n_active, arch):
    """The op on numpy arrays gives the oracle's bits, with no GPU; all padding becomes zero."""
    case = NVFP4_QUANTIZE.case({"t": "150", "k": "96", "n_active": str(n_active), "dtype": dtype})
    arrays = NVFP4_QUANTIZE.inputs(case)
    filled = np.full((case.problem.scale_blocks, 2, 32, 4, 4), 0x7F, np.uint8)
    given = {name: array for name, array in arrays.items() if array.size}
    library = KeptLibrary(bundle.path, arch=arch)
    codes, scales = ops.nvfp4_quantize(**given, scales=filled, library=library)
    expected = NVFP4_QUANTIZE.expected(case, arrays)
    assert scales is filled
    assert np.array_equal(expected["codes"].value, codes)
    assert np.array_equal(expected["scales"].value, scales)


@pytest.mark.parametrize("arch", ["sm_100a", "sm_90a"])
def test_bit_7_of_a_scale_is_never_set(bundle, arch):
    """Every pattern of bf16, both NaNs' signs among them, makes scales of at most 0x7F."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = np.concatenate([np.repeat(bits[::64], 16), bits[:: 1 << 6]]).reshape(-1, 64)
    library = KeptLibrary(bundle.path, arch=arch)
    _, scales = ops.nvfp4_quantize(
        x.view(DType.BF16.numpy), np.array([0.1], np.float32), library=library
    )
    assert scales.max() == 0x7F


def test_op_leaves_rows_without_an_expert(bundle):
    """Codes of a group without an expert are as they were; its scales are zero."""
    case = Case(name="t", k=32, tokens=(3, 5, 2), ids=(1, -1, 0), e=2)
    codes = np.full((10, 16), 0x5A, np.uint8)
    scales = np.full((3, 1, 32, 4, 4), 0x7F, np.uint8).view(DType.E4M3.numpy)
    library = KeptLibrary(bundle.path)
    ops.nvfp4_quantize(**NVFP4_QUANTIZE.inputs(case), codes=codes, scales=scales, library=library)
    assert (codes == 0x5A).all(1).tolist() == [False] * 3 + [True] * 5 + [False] * 2
    assert scales.view(np.uint8).any((1, 2, 3, 4)).tolist() == [True, False, True]
