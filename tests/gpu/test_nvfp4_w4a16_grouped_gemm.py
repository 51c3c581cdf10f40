"""The op of bf16 tokens and NVFP4 weights on the real device: groups, types, torch."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.formats.dtype import DType
from kernelpack.kernels.nvfp4.problem import Case
from kernelpack.kernels.nvfp4_w4a16_grouped_gemm.cases import cases
from kernelpack.kernels.nvfp4_w4a16_grouped_gemm.definition import NVFP4_W4A16_GROUPED_GEMM
from kernelpack.ops.trial import UNTOUCHED, Trial
from tests.gpu.arrays import DEVICE, ratio, run, torch_tensor, upload
from tests.kernels.nan_scales import expected_nan, with_nan

# Importing frameworks may warn; that is theirs.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

CASE = Case(name="op", e=4, n=264, k=544, tokens=(7, 0, 150, 20, 1), ids=(2, 1, 0, -1, 2), seed=5)
SHAPE = (178, 264)


@pytest.fixture(scope="module")
def arrays():
    return NVFP4_W4A16_GROUPED_GEMM.inputs(CASE)


def test_groups(library, arrays):
    """Rows of experts are right, and those of the group without one are as they were."""
    memories = {name: upload(library, array) for name, array in arrays.items()}
    views = {name: view for name, (_, view) in memories.items()}
    prepared = ops.nvfp4_w4a16_grouped_gemm.prepare(**views, library=library)
    prepared.out.memory.fill(UNTOUCHED)
    prepared()
    expected = NVFP4_W4A16_GROUPED_GEMM.expected(CASE, arrays)["c"]
    assert ratio(library, prepared.out, expected) <= 1


@pytest.mark.parametrize("out_dtype", [DType.BF16, DType.FP16, DType.FP32])
def test_chosen_variant(library, out_dtype):
    """The variant that selection takes is right for every type of output."""
    trial = Trial(library, NVFP4_W4A16_GROUPED_GEMM, replace(CASE, out_dtype=out_dtype), DEVICE)
    assert [str(c) for c in trial.check(trial.select()) if not c.is_right] == []


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_case_is_served(library, case):
    """The bundle has a variant for every case."""
    assert library.select("nvfp4_w4a16_grouped_gemm", case.sizes, DEVICE)


def test_torch(library, arrays):
    """torch tensors in, scales as e4m3; rows without an expert are left."""
    import torch

    tensors = {name: torch_tensor(torch, array) for name, array in arrays.items()}
    tensors["b_scales"] = tensors["b_scales"].view(torch.float8_e4m3fn)
    out = torch.full(SHAPE, 7.0, dtype=torch.bfloat16, device="cuda")
    stream = torch.cuda.current_stream()
    ops.nvfp4_w4a16_grouped_gemm(**tensors, out=out, stream=stream, library=library, debug=True)
    stream.synchronize()
    wanted = NVFP4_W4A16_GROUPED_GEMM.expected(CASE, arrays)["c"]
    found, left = out.double().cpu().numpy(), np.isnan(wanted.value)
    assert (found[left] == 7).all()
    assert (np.abs(found - wanted.value)[~left] <= wanted.bound[~left]).all()


@pytest.mark.parametrize("tokens", [5, 12, 20, 50, 100, 300])
def test_nan_scale(library, tokens):
    """A weight's NaN is its column in tiles of every size, and nothing else is NaN."""
    case = Case(name="nan", e=1, n=72, k=96, tokens=(tokens,), ids=(0,))
    arrays = with_nan(NVFP4_W4A16_GROUPED_GEMM.inputs(case), "b_scales")
    found = run(library, ops.nvfp4_w4a16_grouped_gemm, arrays)
    assert (np.isnan(found) == expected_nan(found.shape, "b_scales")).all()
