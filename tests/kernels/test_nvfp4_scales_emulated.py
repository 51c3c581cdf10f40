"""NVFP4 GEMMs on the emulator, and a scale that is NaN: all that it scales is NaN, nothing else."""

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.kernels.nvfp4.problem import Case
from kernelpack.kernels.nvfp4_grouped_gemm.definition import NVFP4_GROUPED_GEMM
from kernelpack.kernels.nvfp4_grouped_gemm.problem import Case as PackedCase
from kernelpack.kernels.nvfp4_w4a16_grouped_gemm.definition import NVFP4_W4A16_GROUPED_GEMM
from tests.kernels.emulated import KeptLibrary
from tests.kernels.nan_scales import expected_nan, with_nan

pytestmark = [pytest.mark.toolchain, pytest.mark.slow]

SIZES = {"name": "nan", "e": 1, "n": 72, "k": 96, "ids": (0,)}


@pytest.mark.parametrize("tokens", [5, 80], ids=["multiplied by warps", "by warpgroups"])
def test_bf16_tokens(bundle, tokens):
    """A weight's NaN is its column."""
    arrays = NVFP4_W4A16_GROUPED_GEMM.inputs(Case(**SIZES, tokens=(tokens,)))
    library = KeptLibrary(bundle.path, sm_count=4)
    arrays = with_nan(arrays, "b_scales")
    c = ops.nvfp4_w4a16_grouped_gemm(**arrays, library=library)
    assert (np.isnan(c.astype(float)) == expected_nan(c.shape, "b_scales")).all()


@pytest.mark.parametrize("name", ["a_scales", "b_scales"])
@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
def test_nvfp4_tokens(bundle, arch, name):
    """A weight's NaN is its column, a token's its row."""
    arrays = NVFP4_GROUPED_GEMM.inputs(PackedCase(**SIZES, tokens=(80,)))
    library = KeptLibrary(bundle.path, arch=arch, sm_count=4)
    c = ops.nvfp4_grouped_gemm(**with_nan(arrays, name), library=library)
    assert (np.isnan(c.astype(float)) == expected_nan(c.shape, name)).all()
