"""The decode attention and its combine on a pretended GPU: what is launched, and refused."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.load.load import load as load_bundle
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.ops.arrays import DeviceArray
from kernelpack.runtime.driver import Driver
from tests.fakes.bundles import write_bundle
from tests.fakes.driver import FakeCuda, FakeDevice

ROOT = Path(__file__).parents[2]
T, H, TOPK, B, PAGES = 6, 20, 40, 3, 4
PAGE, BLOCKS = 16, 5
BOTH = ("mla_decode_attention", "mla_decode_combine")


@pytest.fixture(scope="module")
def variants():
    return [v for stem in BOTH for v in expand(load(ROOT / f"manifests/{stem}.yaml"))]


class Bench:
    """Inputs on a pretended GPU, by name, and the manifests' kernels."""

    def __init__(self, folder, variants):
        self.cuda = FakeCuda(devices=(FakeDevice(capability=(9, 0)),))
        ours = [v for v in variants if str(v.arch) == "sm_90a"]
        self.cuda.signatures.update({v.entry: v.slots for v in ours})
        path = write_bundle(folder / "x.kpk", ours)
        self.library = load_bundle(path, driver=Driver(self.cuda))
        self.parameters = [[p.name for p in v.params] for v in (ours[0], ours[-1])]
        self.q = self.array((T, H, 576), DType.BF16)
        self.cache = self.array((BLOCKS, PAGE, 656), DType.U8)
        self.bf16 = self.array((BLOCKS, PAGE, 576), DType.BF16)
        self.indices = self.array((T, TOPK), DType.I32)
        self.numbers = {n: self.array((n,), DType.I32) for n in (T, B, B + 1)}
        self.table = self.array((B, PAGES), DType.I32)
        self.sink = self.array((H,), DType.FP32)

    def array(self, shape, dtype):
        """Memory of zeros."""
        return self.upload(np.zeros(shape, dtype.numpy), dtype)

    def upload(self, data, dtype):
        """A copy of an array."""
        address = self.cuda.new_memory(data.nbytes, 0)
        self.cuda.on_cuMemcpyHtoD(address, data.ctypes.data, data.nbytes)
        return DeviceArray(pointer=address, shape=data.shape, dtype=dtype)

    def parameter(self, *names, kernel=0):
        """Parameters of the last launch as unsigned integers."""
        launch, known = self.cuda.launches[-1], self.parameters[kernel]
        return [launch.number(known.index(name)) for name in names]

    def run(self, **options):
        known = {"q": self.q, "kv": kv.Paged(self.cache), "scale": 0.5, "indices": self.indices}
        return ops.mla_decode_attention(**{**known, **options}, library=self.library)

    def dense(self, **options):
        """Keys are pages."""
        paged = kv.Paged(self.cache, table=self.table, lengths=self.numbers[B])
        return self.run(**{"kv": paged, "indices": None, **options})


@pytest.fixture
def bench(tmp_path, variants):
    return Bench(tmp_path, variants)


def test_listed(bench):
    """Tokens, heads, entries, rows; one split and no sequence."""
    bench.run()
    names = ("tokens", "heads", "partitions", "topk", "indices_stride", "page", "blocks")
    assert bench.parameter(*names) == [T, H, 1, TOPK, TOPK, PAGE, BLOCKS]
    assert bench.parameter("sequences", "pages", "causal", "split_units") == [0, 0, 0, 1]


ABSENT = [
    *("lse", "partial_out", "partial_lse", "kv_scales", "extra_kv", "extra_indices"),
    *("topk_lengths", "extra_topk_lengths", "table", "row_offsets", "cache_lengths", "sink"),
]


@pytest.mark.parametrize("name", ABSENT)
def test_absent_arrays_are_null(bench, name):
    """What a call has not is a null pointer to the kernel."""
    bench.run()
    assert bench.parameter(name) == [0]


def test_dense(bench):
    """Tokens of sequences: the operand's table and lengths."""
    bench.dense(mask="causal")
    arrays = [bench.table.pointer, bench.numbers[B].pointer, 0]
    assert bench.parameter("table", "cache_lengths", "indices") == arrays
    assert bench.parameter("sequences", "pages", "table_stride", "causal") == [B, PAGES, PAGES, 1]


def test_a_second_source(bench):
    """A cache, lists and lengths of its own."""
    there = bench.array((7, 3, 656), DType.U8)
    lists = replace(bench.indices, shape=(T, 30), strides=(TOPK, 1))
    given = {"extra_kv": kv.Paged(there), "extra_indices": lists}
    bench.run(**given, extra_topk_lengths=bench.numbers[T])
    arrays = [there.pointer, lists.pointer, bench.numbers[T].pointer]
    assert bench.parameter("extra_kv", "extra_indices", "extra_topk_lengths") == arrays
    names = ("extra_topk", "extra_indices_stride", "extra_page", "extra_blocks")
    assert bench.parameter(*names) == [30, TOPK, 3, 7]


def test_lengths_of_sequences(bench):
    """One length for all tokens of a sequence."""
    given = {"topk_lengths": bench.numbers[B], "row_offsets": bench.numbers[B + 1]}
    bench.run(**given, lengths_of_sequences=True)
    assert bench.parameter("lengths_of_sequences", "sequences") == [1, B]


@pytest.mark.parametrize("splits", [2, 256])
def test_partial_outputs(bench, splits):
    """Each split has outputs; they may be given, which then say how many there are."""
    out, lse = bench.run(num_partitions=splits, partition_keys=256)
    assert (out.shape, lse.shape) == ((splits, T, H, 512), (splits, T, H))
    assert bench.parameter("partial_out", "out", "split_units") == [out.view.pointer, 0, 2]
    bench.run(partial_out=out, partial_lse=lse)
    assert bench.parameter("partitions") == [splits]


def test_combine(bench):
    """Parts become one, with sinks."""
    parts = bench.run(num_partitions=5)
    out, lse = ops.mla_decode_combine(
        *parts, sink=bench.sink, return_lse=True, library=bench.library
    )
    assert (out.shape, lse.shape) == ((T, H, 512), (T, H))
    found = bench.parameter("partitions", "sink", "dead_lse", kernel=1)
    assert found == [5, bench.sink.pointer, 0x7F800000]


REFUSED = [
    ({"mask": "sliding"}, "`mask` must be null or causal, not 'sliding'"),
    ({"mask": "causal"}, "`mask` must be null with `indices`, which say what is seen, not causal"),
    ({"num_partitions": 0}, "`num_partitions` must be at least 1, not 0"),
    ({"partition_keys": 100}, "`partition_keys` must be a multiple of 128, not 100"),
    ({"indices": None}, "`kv` must be a Paged operand with a table and lengths, or `indices`"),
    ({"lengths_of_sequences": True}, "`lengths_of_sequences` must be left out where no sequences"),
    ({"num_partitions": 2, "sink": "sink"}, "`sink` must be left out with partitions"),
    ({"num_partitions": 2, "out": "out"}, "`out` must be left out with 2 partitions"),
    ({"extra_kv": "cache"}, "`extra_kv` and `extra_indices` go together"),
    ({"extra_kv": "bf16", "extra_indices": "indices"}, "`extra_kv` must have kv's rows, fp8_656"),
    ({"topk_lengths": "sink"}, "`topk_lengths` must be i32 or u32, not fp32"),
    ({"scale": True}, "`scale` must be a number, not True of type bool"),
    ({"partition_keys": 2**31}, "`partition_keys` must be below 2^31, not 2147483648"),
    ({"indices": "overlapped"}, "`indices_stride` must be from topk = 40 to below 2^31, not 0"),
    ({"row_offsets": "nothing"}, "`row_offsets` must have sequences + 1 elements, at least 1"),
]


@pytest.mark.parametrize(("options", "says"), REFUSED)
def test_refused(bench, options, says):
    """What is not as the op says is named before anything is launched."""
    bench.out = bench.array((T, H, 512), DType.BF16)
    bench.overlapped = replace(bench.indices, strides=(0, 1))
    bench.nothing = bench.array((0,), DType.I32)
    given = {name: getattr(bench, str(value), value) for name, value in options.items()}
    if "extra_kv" in given:
        given["extra_kv"] = kv.Paged(given["extra_kv"])
    with pytest.raises(ProblemError, match=re.escape(says)):
        bench.run(**given)
    assert not bench.cuda.launches


def test_uneven_tokens_are_refused(bench):
    """Without row_offsets all sequences have as many tokens."""
    lengths = bench.array((4,), DType.I32)
    with pytest.raises(ProblemError, match="`q` must be a multiple of 4 tokens without"):
        bench.run(cache_lengths=lengths)


def test_sides_of_parts_are_checked(bench):
    """The combine's two inputs agree."""
    out, lse = bench.array((2, T, H, 512), DType.FP32), bench.array((3, T, H), DType.FP32)
    with pytest.raises(ProblemError, match="`partial_lse` must have partial_out's partitions, 2"):
        ops.mla_decode_combine(out, lse, library=bench.library)


def test_overlapping_rows_of_a_table_are_refused(bench):
    """A table of one row for all sequences, as `expand` makes it, is not read as if it had more."""
    table = replace(bench.table, strides=(0, 1))
    message = "`table_stride` must be from 4, the pages, to below 2\\^32, not 0"
    with pytest.raises(ProblemError, match=message):
        bench.dense(kv=kv.Paged(bench.cache, table=table, lengths=bench.numbers[B]))


def test_a_scale_of_numpy(bench):
    """A number of numpy's is a number, as in the prefill."""
    bench.run(scale=np.float32(0.5))
    assert bench.parameter("scale_log2e") == [0x3F38AA3B]


@pytest.mark.parametrize("value", [None, "inf", True])
def test_the_dead_lse_of_a_combine(bench, value):
    """What is no number is named."""
    out, lse = bench.array((2, T, H, 512), DType.FP32), bench.array((2, T, H), DType.FP32)
    with pytest.raises(ProblemError, match="`dead_lse` must be a number, not"):
        ops.mla_decode_combine(out, lse, dead_lse=value, library=bench.library)


def numbers(bench, *values):
    return bench.upload(np.array(values, np.int32), DType.I32)


def listed(bench, at, value):
    """Entries of all tokens, one of them this one."""
    found = np.zeros((T, TOPK), np.int32)
    found[at] = value
    return bench.upload(found, DType.I32)


ENTRIES = PAGE * BLOCKS
DEBUGGED = {
    "an entry": (
        lambda b: {"indices": listed(b, (2, 7), ENTRIES)},
        "`indices[2, 7]` must be -1 to 79, not 80",
    ),
    "one below -1": (
        lambda b: {"indices": listed(b, (5, 39), -2)},
        "`indices[5, 39]` must be -1 to 79, not -2",
    ),
    "one of the second source": (
        lambda b: {"extra_kv": kv.Paged(b.cache), "extra_indices": listed(b, (1, 0), ENTRIES)},
        "`extra_indices[1, 0]` must be -1 to 79, not 80",
    ),
    "a length": (
        lambda b: {"topk_lengths": numbers(b, 0, 1, TOPK, TOPK + 1, 0, 0)},
        "`topk_lengths[3]` must be 0 to 40, not 41",
    ),
    "a length below 0": (
        lambda b: {"topk_lengths": numbers(b, 0, -1, 0, 0, 0, 0)},
        "`topk_lengths[1]` must be 0 to 40, not -1",
    ),
    "a length of a sequence": (
        lambda b: {"row_offsets": numbers(b, 0, 2, 4, T), "cache_lengths": numbers(b, 1, -7, 1)},
        "`cache_lengths[1]` must be 0 to 2147483647, not -7",
    ),
    "offsets": (
        lambda b: {"row_offsets": numbers(b, 0, 4, 2, T)},
        "`row_offsets` must rise from 0 to at most t = 6, not [0, 4, 2, 6]",
    ),
}


@pytest.mark.parametrize("name", DEBUGGED)
def test_debug(bench, name):
    """What names no key is reported to those who debug, by place."""
    make, says = DEBUGGED[name]
    with pytest.raises(ProblemError, match=re.escape(says)):
        bench.run(**make(bench), debug=True)
    bench.run(**make(bench))


def test_debug_passes(bench):
    """-1 is not a mistake, nor is what follows a length or is in a token of no sequence."""
    bench.run(indices=listed(bench, (0, 0), -1), debug=True)
    given = {"indices": listed(bench, (2, 7), ENTRIES)}
    bench.run(**given, topk_lengths=numbers(bench, 0, 0, 7, 0, 0, 0), debug=True)
    bench.run(**given, row_offsets=numbers(bench, 0, 1, 2, 2), debug=True)
    assert len(bench.cuda.launches) == 3


@pytest.mark.parametrize(
    ("lengths", "page", "says"),
    [
        ([0, 16 * PAGES - 1, 0], 0, "sequence 1 has 65 keys, and `table` has pages for 64"),
        ([0, 16, 0], BLOCKS, "`table[1, 1]` must be 0 to 4, not 5"),
        ([0, 16, 0], -1, "`table[1, 1]` must be 0 to 4, not -1"),
    ],
)
def test_debug_of_pages(bench, lengths, page, says):
    """So are keys without a page; a page that no key is in may be anything."""
    table = np.zeros((B, PAGES), np.int32)
    table[1, 1], table[0, 3] = page, 99
    there = {"table": bench.upload(table, DType.I32), "lengths": numbers(bench, *lengths)}
    with pytest.raises(ProblemError, match=re.escape(says)):
        bench.dense(kv=kv.Paged(bench.cache, **there), debug=True)
    few = {**there, "lengths": numbers(bench, 0, 3, 0)}
    bench.dense(kv=kv.Paged(bench.cache, **few), mask="causal", debug=True)
