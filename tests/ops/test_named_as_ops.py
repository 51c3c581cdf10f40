"""Our own kernels by the names of their manifests: launched as their ops launch them."""

from dataclasses import replace
from math import inf

import pytest

from kernelpack import ops
from kernelpack.errors import BundleError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.registry import find
from kernelpack.kernels.sparse_mla_prefill.problem import bits
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.ops.named import Named
from kernelpack.spec.arch import Arch
from kernelpack.spec.expr import evaluate, parse
from kernelpack.spec.launch import is_absent
from kernelpack.spec.params import ScalarParam
from kernelpack.spec.variant import Size
from tests.fakes.variants import variant
from tests.kept import ROOT
from tests.ops.bench import Bench, M

NAMED = [name for name, op in ops.OPS.items() if isinstance(op.operation, Named)]
"""The ops whose manifests say what they take."""
STRIDES = {"x_token_stride": "t", "x_head_stride": "h"}
"""Of a side of 1 an op takes none: where there is no second, nothing lies apart."""


def bench_of(folder, kernel):
    """A GPU that is pretended, with every variant of a kernel for it."""
    manifest = load(ROOT / "manifests" / f"{kernel}.yaml")
    return Bench(folder, *expand(manifest, [Arch("sm_90a")]))


def arrays_of(bench, kernel, sizes):
    """Arrays for a problem, by the names of the manifest; none of those that it lacks."""
    chosen = bench.library.select(kernel, sizes, 0)
    there = [a for a in chosen.arguments if not is_absent(a, sizes)]
    return {a.name: bench.array(tuple(evaluate(s, sizes) for s in a.shape), a.dtype) for a in there}


def as_the_op_takes_it(kernel, sizes, arrays):
    """What a caller of the op gives: by its words, and arrays before the kernel's view of them."""
    op = ops.OPS[kernel].operation
    given = {op.word(name): array for name, array in arrays.items()}
    if kernel == "mla_decode_combine":
        dead = next(value for value in (inf, -inf) if bits(value) == sizes["dead_lse"])
        given["dead_lse"] = dead
    if kernel == "mla_decode_project":
        strides = (sizes["x_token_stride"], sizes["x_head_stride"], 1)
        given["x"] = replace(given["x"], shape=(sizes["t"], sizes["h"], 512), strides=strides)
        given["w_uv_scale"] = replace(given["w_uv_scale"], shape=(sizes["h"], 1, 4))
    return given


def has_steps(sizes):
    """Whether each stride of a problem is a step that is taken."""
    return all(sizes[side] > 1 for stride, side in STRIDES.items() if stride in sizes)


@pytest.mark.parametrize("kernel", NAMED)
def test_every_case(tmp_path, kernel):
    """Variant, plan and addresses are the same by the op and by name, for each case there is."""
    bench, op = bench_of(tmp_path, kernel), ops.OPS[kernel]
    for case in (c for c in find(kernel).small() if has_steps(c.sizes)):
        arrays = arrays_of(bench, kernel, case.sizes)
        op(**as_the_op_takes_it(kernel, case.sizes, arrays), library=bench.library)
        bench.library.call(kernel, **arrays, **case.sizes)
        first, second = bench.cuda.launches
        assert first == second, case.name
        bench.cuda.launches.clear()


@pytest.mark.parametrize("name", ["a_offsets", "c"])
def test_a_bundle_of_other_arrays(tmp_path, name):
    """A bundle whose kernel of the same ABI has other arrays than the op gives is refused."""
    known = variant()
    other = tuple(a for a in known.arguments if a.name != name)
    bench = Bench(tmp_path, replace(known, arguments=other, params=known.params[:1]))
    with pytest.raises(BundleError, match="this version gives a, a_offsets, b, c, expert_ids"):
        ops.lora_shrink_qkv(*bench.inputs, library=bench.library)


@pytest.mark.parametrize("is_known", [False, True])
def test_a_size_that_an_older_bundle_lacks(tmp_path, is_known):
    """A size that an op says is asked of a bundle that has a name for it, and of no other."""
    known = variant()
    if is_known:
        asked = ScalarParam(name="choose_for", dtype=DType.U32, value=parse("choose_for"))
        sizes = (*known.sizes, Size(name="choose_for", doc="tokens"))
        known = replace(known, sizes=sizes, params=(*known.params, asked))
    bench = Bench(tmp_path, known)
    ops.lora_shrink_qkv(*bench.inputs, choose_for=7, out=bench.c, library=bench.library)
    assert len(bench.cuda.launches) == 1
    assert not is_known or bench.cuda.launches[0].number(7) == 7


@pytest.mark.parametrize("out", [DType.BF16, DType.FP32])
def test_rows_that_no_output_has(tmp_path, out):
    """An input may have more rows than the output that is given, whose type says the size."""
    bench = bench_of(tmp_path, "lora_shrink_qkv")
    c = bench.array((3, M, 16), out)
    ops.lora_shrink_qkv(*bench.inputs, out=c, library=bench.library)
    named = dict(zip(("a", "b", "a_offsets", "expert_ids"), bench.inputs, strict=True))
    bench.library.call("lora_shrink_qkv", **named, m=M, choose_for=0, out=c)
    assert bench.cuda.launches[0] == bench.cuda.launches[1]
