"""Sparse MLA prefill on a GPU that is pretended: what is launched, what is refused."""

from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.sparse_mla_prefill.inputs import Case
from kernelpack.load.load import load as load_bundle
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.ops.arrays import DeviceArray
from kernelpack.runtime.driver import Driver
from kernelpack.spec.select import select
from tests.fakes.bundles import write_bundle
from tests.fakes.driver import FakeCuda, FakeDevice

ROOT = Path(__file__).parents[2]
T, H, TOPK = 3, 20, 40
PAGE, BLOCKS, LAYERS = 16, 5, 3
CAPABILITY = {"sm_90a": (9, 0), "sm_100a": (10, 0)}


@pytest.fixture(scope="module")
def variants():
    return expand(load(ROOT / "manifests/sparse_mla_prefill.yaml"))


class Bench:
    """Inputs on a pretended GPU, by name, and the manifest's kernels."""

    def __init__(self, folder, variants, arch="sm_100a"):
        self.cuda = FakeCuda(devices=(FakeDevice(capability=CAPABILITY[arch]),))
        ours = [v for v in variants if str(v.arch) == arch]
        self.cuda.signatures.update({v.entry: v.slots for v in ours})
        path = write_bundle(folder / "x.kpk", ours)
        self.library = load_bundle(path, driver=Driver(self.cuda))
        self.parameters = [p.name for p in ours[0].params]
        self.q = self.array((T, H, 576), DType.BF16)
        self.cache = self.array((BLOCKS, 1, LAYERS, PAGE, 1, 576), DType.BF16)
        self.indices = self.upload(np.zeros((T, TOPK), np.int32), DType.I32)
        self.lengths = self.upload(np.full(T, TOPK, np.int32), DType.I32)
        self.sink = self.array((H,), DType.FP32)

    def array(self, shape, dtype):
        """Memory of zeros."""
        return self.upload(np.zeros(shape, dtype.numpy), dtype)

    def upload(self, data, dtype):
        address = self.cuda.new_memory(data.nbytes, 0)
        self.cuda.on_cuMemcpyHtoD(address, data.ctypes.data, data.nbytes)
        return DeviceArray(pointer=address, shape=data.shape, dtype=dtype)

    def parameter(self, name):
        """A parameter of the last launch as an unsigned integer."""
        return self.cuda.launches[-1].number(self.parameters.index(name))

    def run(self, **options):
        known = {"q": self.q, "kv": kv.Paged(self.cache, layer=1), "indices": self.indices}
        return ops.sparse_mla_prefill(**{**known, "scale": 0.5, **options}, library=self.library)


@pytest.fixture
def bench(tmp_path, variants):
    return Bench(tmp_path, variants)


def apart(array, *strides):
    return replace(array, strides=strides)


def test_a_layer_of_a_cache(bench):
    """Rows begin at the layer; blocks are all layers apart."""
    bench.run()
    found = [bench.parameter(name) for name in ("kv", "page", "blocks", "block_stride")]
    assert [bench.cache.pointer + PAGE * 1152, PAGE, BLOCKS, PAGE * LAYERS] == found


def test_rows_alone(bench):
    """An array of rows is one block of them."""
    rows = bench.array((70, 576), DType.BF16)
    bench.run(kv=rows)
    found = [bench.parameter(name) for name in ("kv", "page", "blocks")]
    assert [rows.pointer, 70, 1] == found


def test_numbers(bench):
    """Tokens, heads, entries; fp32 numbers by their bits."""
    bench.run()
    names = ("tokens", "heads", "topk", "indices_stride", "scale_log2e", "dead_lse")
    assert [bench.parameter(n) for n in names] == [T, H, TOPK, TOPK, 0x3F38AA3B, 0x7F800000]


def test_dead_lse(bench):
    """The lse of a token without keys is as the call says."""
    bench.run(dead_lse=-inf)
    assert bench.parameter("dead_lse") == 0xFF800000


ABSENT = ["lse", "max_logits", "topk_lengths", "sink", "kv_scales", "q_scales"]


@pytest.mark.parametrize("name", ABSENT)
def test_absent_arrays_are_null(bench, name):
    """What a call has not is a null pointer to the kernel."""
    bench.run()
    assert bench.parameter(name) == 0


@pytest.mark.parametrize(("name", "array"), [("topk_lengths", "lengths"), ("sink", "sink")])
def test_optional_inputs(bench, name, array):
    """Lengths and sinks go where the kernel reads them."""
    given = getattr(bench, array)
    bench.run(**{name: given})
    assert bench.parameter(name) == given.pointer


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({}, ["out"]),
        ({"return_lse": True}, ["out", "lse"]),
        ({"return_max_logits": True}, ["out", "max_logits"]),
        ({"return_max_logits": True, "return_lse": True}, ["out", "lse", "max_logits"]),
    ],
)
def test_outputs(bench, options, names):
    """The output alone, or a tuple with what was asked for; each is what the kernel writes."""
    found = bench.run(**options)
    outputs = found if isinstance(found, tuple) else (found,)
    shapes = {"out": (T, H, 512), "lse": (T, H), "max_logits": (T, H)}
    assert [shapes[name] for name in names] == [out.shape for out in outputs]
    assert [bench.parameter(name) for name in names] == [out.view.pointer for out in outputs]


def test_given_outputs(bench):
    """An output that is given is asked for, filled and returned."""
    out, lse = bench.array((T, H, 512), DType.BF16), bench.array((T, H), DType.FP32)
    found = bench.run(out=out, lse=lse)
    assert (found[0] is out, found[1] is lse, len(found)) == (True, True, 2)


def test_q_may_lie_apart(bench):
    """Tokens and heads of q may be a part of wider rows; its map has their strides."""
    wide = bench.array((T, H, 640), DType.BF16)
    bench.run(q=replace(wide, shape=(T, H, 576), strides=(H * 640, 640, 1)))
    encoded = bench.cuda.launches[-1].parameters[bench.parameters.index("q_map")]
    assert f"[{576}, {H}, {T}], [{1280}, {H * 1280}]".encode() in encoded


@pytest.mark.parametrize("width", [512, 576, 640])
def test_queries_of_e4m3(bench, width):
    """Heads are rows of bytes, of which a column of the map has two; their scales go along."""
    scales = bench.array((T, H), DType.FP32)
    rows = kv.Ragged(
        bench.array((70, width), DType.U8),
        scales=bench.array((70, 1), DType.FP32),
    )
    bench.run(q=bench.array((T, H, width), DType.E4M3), q_scales=scales, kv=rows)
    encoded = bench.cuda.launches[-1].parameters[bench.parameters.index("q_map")]
    assert bench.parameter("q_scales") == scales.pointer
    assert f"[{width // 2}, {H}, {T}], [{width}, {H * width}]".encode() in encoded


def test_indices_may_lie_apart(bench):
    """Fewer entries of each token than there are in memory."""
    bench.run(indices=replace(bench.indices, shape=(T, 7), strides=(TOPK, 1)))
    assert [bench.parameter(name) for name in ("topk", "indices_stride")] == [7, TOPK]


@pytest.mark.parametrize(("h", "grid", "cluster"), [(20, T, 1), (64, T, 1), (65, 2 * T, 2)])
def test_grid(bench, h, grid, cluster):
    """A CTA for each token; a pair of them where it has more than 64 heads."""
    bench.run(q=bench.array((T, h, 576), DType.BF16))
    launch = bench.cuda.launches[-1]
    assert (launch.grid[0], launch.cluster[0]) == (grid, cluster)


def test_no_tokens(bench):
    """Without tokens nothing is launched, and outputs have their shapes."""
    empty = {
        "q": bench.array((0, H, 576), DType.BF16),
        "indices": bench.array((0, 9), DType.I32),
    }
    assert bench.run(**empty).shape == (0, H, 512)
    assert bench.cuda.launches == []


def test_rebind(bench):
    """A prepared launch follows indices, and a cache of the same sides to the same layer."""
    known = {"q": bench.q, "kv": kv.Paged(bench.cache, layer=1), "indices": bench.indices}
    prepared = ops.sparse_mla_prefill.prepare(**known, scale=0.5, library=bench.library)
    indices, cache = bench.array((T, TOPK), DType.I32), bench.array(bench.cache.shape, DType.BF16)
    prepared.rebind(indices=indices, kv=cache)
    prepared()
    found = [bench.parameter(name) for name in ("indices", "kv")]
    assert [indices.pointer, cache.pointer + PAGE * 1152] == found


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("indices", {"strides": (2 * TOPK, 1)}, "`indices` was prepared with"),
        ("q", {"strides": (H * 640, 640, 1)}, "`q` was prepared with"),
        ("kv", {"shape": (BLOCKS, 1, 2, PAGE, 1, 576)}, "`kv` was prepared with"),
    ],
)
def test_rebind_of_another_layout(bench, name, change, message):
    """What lies otherwise in memory is refused, for the launch has the steps of the first."""
    known = {"q": bench.q, "kv": kv.Paged(bench.cache, layer=1), "indices": bench.indices}
    prepared = ops.sparse_mla_prefill.prepare(**known, scale=0.5, library=bench.library)
    array = {"q": bench.q, "kv": bench.cache, "indices": bench.indices}[name]
    with pytest.raises(ProblemError, match=message):
        prepared.rebind(**{name: replace(array, **change)})


BAD = {
    "q of another type": ({"q": ((T, H, 576), DType.FP16)}, "`q` must be bf16 or e4m3, not fp16"),
    "q of e4m3": ({"q": ((T, H, 576), DType.E4M3)}, "`q` must be bf16 with rows of bf16_576"),
    "scales of q of bf16": ({"q_scales": ((T, H), DType.FP32)}, "`q_scales` must be left out"),
    "no scales of q": (
        {"q": ((T, H, 576), DType.E4M3), "kv": ((9, 576), DType.E4M3)},
        r"`q_scales` must be of shape \[3, 20\]",
    ),
    "a scale too few": (
        {
            "q": ((T, H, 576), DType.E4M3),
            "kv": ((9, 576), DType.E4M3),
            "q_scales": ((T, H - 1), DType.FP32),
        },
        r"`q_scales` must be of shape \[3, 20\]",
    ),
    "q of e4m3 for rows that become bf16": (
        {"q": ((T, H, 656), DType.E4M3), "kv": ((9, 656), DType.U8)},
        "`q` must be bf16 with rows of fp8_656: e4m3 goes with rows of e4m3 that have one scale",
    ),
    "q of two dimensions": ({"q": ((T, 576), DType.BF16)}, r"`q` must have the shape \[t, h, d\]"),
    "q of another depth": (
        {"q": ((T, H, 512), DType.BF16)},
        "`q` must have d = 576 with rows of bf16_576, not 512",
    ),
    "no head": ({"q": ((T, 0, 576), DType.BF16)}, "`h` must be 1 to 128"),
    "many heads": ({"q": ((T, 129, 576), DType.BF16)}, "`h` must be 1 to 128, not 129"),
    "64-bit indices": ({"indices": ((T, 4), DType.I64)}, "`indices` must be i32 or u32"),
    "flat indices": ({"indices": ((T * 4,), DType.I32)}, "`indices` must have the shape"),
    "other tokens": ({"indices": ((T + 1, 4), DType.I32)}, "`indices` must have q's 3 tokens"),
    "no entries": ({"indices": ((T, 0), DType.I32)}, "`topk` must be from 1"),
    "lengths": ({"topk_lengths": ((T + 1,), DType.I32)}, "`topk_lengths` must have 3 elements"),
    "sinks": ({"sink": ((H - 1,), DType.FP32)}, "`sink` must have 20 elements, not 19"),
    "sinks of bf16": ({"sink": ((H,), DType.BF16)}, "`sink` must be fp32"),
    "lse": ({"lse": ((T, H + 1), DType.FP32)}, r"`lse` must have the shape \[3, 20\]"),
    "out": ({"out": ((T, H, 576), DType.BF16)}, r"`out` must have the shape \[3, 20, 512\]"),
    "rows of no format": ({"kv": ((9, 520), DType.BF16)}, "a row must be bf16 576 or 512"),
    "rows of fp16": ({"kv": ((9, 576), DType.FP16)}, "a row must be bf16 576 or 512"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(bench, name):
    """What is wrong is named, with what would be right."""
    given, message = BAD[name]
    with pytest.raises(ProblemError, match=message):
        bench.run(**{word: bench.array(*array) for word, array in given.items()})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": None}, "`scale` must be a number, not None"),
        ({"scale": True}, "`scale` must be a number, not True"),
        ({"scale": 0}, "`scale` must be from 2\\^-100"),
        ({"scale": inf}, "`scale` must be"),
        ({"dead_lse": 0}, "`dead_lse` must be inf or -inf"),
    ],
)
def test_numbers_refused(bench, options, message):
    """A scale of nothing, of infinity, or below zero is no scale."""
    with pytest.raises(ProblemError, match=message):
        bench.run(**options)


def test_out_over_q(bench):
    """An output in q's memory is refused, in its gaps too."""
    out = replace(bench.q, shape=(T, H, 512))
    with pytest.raises(ProblemError, match="`out` overlaps `q`"):
        bench.run(out=out)


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("indices", (1, 3), PAGE * BLOCKS, r"`indices\[1, 3\]` must be -1 to 79, not 80"),
        ("indices", (0, 0), -2, r"`indices\[0, 0\]` must be -1 to 79, not -2"),
        ("topk_lengths", (2,), TOPK + 1, r"`topk_lengths\[2\]` must be 0 to 40, not 41"),
        ("topk_lengths", (0,), -1, r"`topk_lengths\[0\]` must be 0 to 40, not -1"),
    ],
)
def test_debug_refuses(bench, name, at, value, message):
    """Whoever debugs learns of the first value that the kernel would pass over."""
    values = np.zeros(bench.indices.shape if name == "indices" else (T,), np.int32)
    values[at] = value
    with pytest.raises(ProblemError, match=message):
        bench.run(**{name: bench.upload(values, DType.I32)}, debug=True)


@pytest.mark.parametrize(
    ("name", "shape"), [("indices", (T, TOPK)), ("topk_lengths", (T,))], ids=["indices", "lengths"]
)
def test_debug_refuses_large_numbers(bench, name, shape):
    """Of u32, what a kernel takes for a number below 0 is shown as it is."""
    values = np.full(shape, 2**31 + 3, np.uint32)
    with pytest.raises(ProblemError, match="not 2147483651"):
        bench.run(**{name: bench.upload(values, DType.U32)}, debug=True)


def test_a_layer_must_be_named(bench):
    """Of a cache of several layers none is taken unasked."""
    message = "kv.Paged: `layer` must be 0 to 2, not left out: or give a view of one layer"
    with pytest.raises(ProblemError, match=message):
        bench.run(kv=kv.Paged(bench.cache))


def test_debug_passes(bench):
    """-1 is not a mistake, nor is anything after a token's length or between tokens."""
    entries = np.full((T, TOPK), 10**6, np.int32)
    entries[:, :5] = -1
    given = replace(bench.upload(entries, DType.I32), shape=(T, 7), strides=(TOPK, 1))
    lengths = bench.upload(np.full(T, 5, np.int32), DType.I32)
    assert bench.run(indices=given, topk_lengths=lengths, debug=True)


def test_any_values_without_debug(bench):
    """Without it nothing is read back."""
    entries = bench.upload(np.full((T, TOPK), 10**6, np.int32), DType.I32)
    assert bench.run(indices=entries)


def test_names_of_sizes(variants):
    """Problems have the sizes that the manifest names, all of them and no other."""
    assert set(Case(name="t").sizes) == {size.name for v in variants for size in v.sizes}


@pytest.mark.parametrize(
    ("arch", "h", "heads"),
    [
        *(("sm_90a", h, 8) for h in (1, 8)),
        *(("sm_90a", h, 16) for h in (9, 16)),
        *(("sm_90a", h, 32) for h in (17, 24, 32)),
        *(("sm_90a", h, 64) for h in (33, 40, 64, 65, 72, 96, 128)),
        *(("sm_100a", h, 64) for h in (1, 8, 64)),
        *(("sm_100a", h, 128) for h in (65, 96, 128)),
    ],
)
def test_tile_of_heads(variants, arch, h, heads):
    """A call's rows are gathered as seldom as may be, for no more heads than that takes."""
    ours = [v for v in variants if str(v.arch) == arch]
    sizes = Case(name="t", h=h).sizes | {"sm_count": 132}
    assert dict(select(ours, sizes, CAPABILITY[arch]).axes)["HEADS"] == heads
