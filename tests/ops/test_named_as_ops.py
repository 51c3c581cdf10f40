"""Our own kernels by the names of their manifests: launched as their ops launch them."""

from math import inf

import pytest

from kernelpack import ops
from kernelpack.formats.dtype import DType
from kernelpack.kernels.sparse_mla_prefill.problem import bits
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.spec.arch import Arch
from tests.fakes.grouped import GroupedBench
from tests.kept import ROOT
from tests.ops.bench import Bench, M, N

GEMMS = {
    "nvfp4_grouped_gemm": {"k": 96},
    "nvfp4_w4a16_grouped_gemm": {},
}


def bench_of(folder, kernel):
    """A GPU that is pretended, with every variant of a kernel for it."""
    manifest = load(ROOT / "manifests" / f"{kernel}.yaml")
    return Bench(folder, *expand(manifest, [Arch("sm_90a")]))


def alike(bench):
    """Whether the last two launches gave the driver the same."""
    first, second = bench.cuda.launches
    return first == second


@pytest.mark.parametrize("out", [DType.BF16, DType.FP32])
def test_lora_shrink_qkv(tmp_path, out):
    """Sizes follow from the arrays, but for what the tile is chosen for; so does the type of c."""
    bench = bench_of(tmp_path, "lora_shrink_qkv")
    c = bench.array((3, M, N), out)
    ops.lora_shrink_qkv(*bench.inputs, m=M, out=c, library=bench.library)
    named = dict(zip(("a", "b", "a_offsets", "expert_ids"), bench.inputs, strict=True))
    bench.library.call("lora_shrink_qkv", **named, m=M, choose_for=0, out=c)
    assert alike(bench)


@pytest.mark.parametrize("kernel", GEMMS)
def test_grouped_gemms(tmp_path, kernel):
    """The GEMMs of experts; k of 4-bit tokens follows from no side alone."""
    bench = GroupedBench(tmp_path, kernel)
    out = getattr(ops, kernel)(**bench.arrays, library=bench.library)
    given = {**bench.arrays, **GEMMS[kernel]}
    bench.library.call(kernel, **given, out=out)
    assert alike(bench)


@pytest.mark.parametrize("has_lse", [False, True])
def test_mla_decode_combine(tmp_path, has_lse):
    """What an op says by the presence of an array, and floats by their bits, a call says."""
    bench = bench_of(tmp_path, "mla_decode_combine")
    arrays = {
        "partial_out": bench.array((3, 5, 16, 512), DType.FP32),
        "partial_lse": bench.array((3, 5, 16), DType.FP32),
        "out": bench.array((5, 16, 512), DType.BF16),
        "lse": bench.array((5, 16), DType.FP32) if has_lse else None,
    }
    ops.mla_decode_combine(**arrays, library=bench.library)
    said = {"has_lse": has_lse, "has_sink": False, "dead_lse": bits(inf)}
    bench.library.call("mla_decode_combine", **arrays, **said)
    assert alike(bench)
