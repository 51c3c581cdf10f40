"""The grouped GEMM of bf16 tokens and NVFP4 weights on a GPU that is pretended.

What it shares with the GEMM of NVFP4 tokens is tested there.
"""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.ops import nvfp4_w4a16_grouped_gemm as op
from tests.fakes.grouped import GroupedBench

T, N, E = 150, 136, 3


@pytest.fixture
def bench(tmp_path):
    return GroupedBench(tmp_path, "nvfp4_w4a16_grouped_gemm")


def run(bench, **options):
    return op(**bench.arrays, library=bench.library, **options)


NAMES = ("a", "b", "b_scales", "group_offsets", "expert_ids", "expert_scales")


@pytest.mark.parametrize("name", NAMES)
def test_pointers(bench, name):
    """Each array's address goes to its parameter."""
    run(bench)
    assert bench.parameter(name) == bench.arrays[name].pointer


def test_new_output(bench):
    """Without an output one of t rows and n columns of bf16 is made."""
    out = run(bench)
    assert (out.shape, out.dtype, bench.parameter("t")) == ((T, N), DType.BF16, T)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("a", {"dtype": DType.FP16}, "`a` must be bf16, not fp16"),
        ("a", {"shape": (T, 64)}, "`b` must have a's k // 2, 32, along side 2, not 48"),
        ("b", {"dtype": DType.BF16}, "`b` must be u8, not bf16"),
        ("b_scales", {"shape": (E, 2, 1, 32, 4, 4)}, r"a's cdiv\(k, 64\), 2, along side 2"),
        ("expert_scales", {"shape": (4,)}, "`expert_scales` must have b's e, 3, along"),
    ],
)
def test_refused(bench, name, changes, message):
    """The error names the array and its form, and nothing is launched."""
    bench.arrays[name] = replace(bench.arrays[name], **changes)
    with pytest.raises(ProblemError, match=message):
        run(bench)
    assert bench.cuda.launches == []


def test_debug(bench):
    """Debugging reads the groups back."""
    bench.arrays["expert_ids"] = bench.upload(np.array([0, 5, 1], np.int32))
    with pytest.raises(ProblemError, match=r"`expert_ids` must be -1 to 2, not 5 \(group 1\)"):
        run(bench, debug=True)


def test_prepare(bench):
    """A prepared launch is the op's."""
    prepared = op.prepare(**bench.arrays, library=bench.library)
    prepared(bench.cuda.new_stream())
    assert (bench.parameter("c"), prepared.variant.kernel) == (
        prepared.out.view.pointer,
        "nvfp4_w4a16_grouped_gemm",
    )


def test_public_name():
    """The op is found under `kernelpack.ops`."""
    assert ops.nvfp4_w4a16_grouped_gemm is op
