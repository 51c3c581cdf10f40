"""The index remap on a GPU that is pretended: what is launched, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from tests.fakes.pretended import Pretended

ROOT = Path(__file__).parents[2]
T, K, PAGE, BLOCKS = 5, 12, 16, 6


@pytest.fixture(scope="module")
def variants():
    return expand(load(ROOT / "manifests/kv_remap_indices.yaml"))


class Bench(Pretended):
    """Inputs on a pretended GPU, and the manifest's kernels."""

    def __init__(self, folder, variants):
        super().__init__(folder, variants)
        self.indices = self.array((T, K), DType.I32)
        self.sequences = self.array((T,), DType.I32)
        self.table = self.array((3, 4), DType.I32)
        self.cache = self.array((BLOCKS, 1, 2, PAGE, 1, 576), DType.BF16)

    def run(self, operand=None, **options):
        given = {"indices": self.indices, "token_sequences": self.sequences, **options}
        cache = operand or kv.Paged(self.cache, layer=1, table=self.table)
        return ops.kv_remap_indices(given.pop("indices"), cache, **given, library=self.library)

    def numbers(self, *names):
        return [self.parameter(name) for name in names]


@pytest.fixture
def bench(tmp_path, variants):
    return Bench(tmp_path, variants)


def test_paged(bench):
    """Pages, table and sequences; a new output is returned."""
    out = bench.run()
    assert (out.shape, out.dtype) == ((T, K), DType.I32)
    arrays = [out.view.pointer, bench.indices.pointer, bench.sequences.pointer, bench.table.pointer]
    assert arrays == bench.numbers("out", "indices", "token_sequences", "table")
    names = ("t", "k", "indices_stride", "sequences", "pages", "table_stride", "page", "blocks")
    assert bench.numbers(*names) == [T, K, K, 3, 4, 4, PAGE, BLOCKS]


def test_token_is_sequence(bench):
    """Without sequences token t is of sequence t."""
    bench.run(token_sequences=None)
    assert bench.parameter("token_sequences") == 0


@pytest.mark.parametrize(
    ("make", "numbers"),
    [
        (lambda b: kv.Continuous(b.array((7, 50, 576), DType.BF16)), [7, 1, 50, 7]),
        (
            lambda b: kv.Continuous(
                b.array((7, 50, 576), DType.BF16), table=b.array((3,), DType.I32)
            ),
            [3, 1, 50, 7],
        ),
        (lambda b: kv.Padded(b.array((3, 50, 576), DType.BF16)), [3, 1, 50, 3]),
        (
            lambda b: kv.Ragged(b.array((70, 576), DType.BF16), offsets=b.array((4,), DType.I32)),
            [3, 1, 70, 1],
        ),
    ],
)
def test_other_storages(bench, make, numbers):
    """Sequences, their pages, and blocks of every storage."""
    bench.run(make(bench))
    assert numbers == bench.numbers("sequences", "pages", "page", "blocks")


def test_given_output(bench):
    """An output that is given is filled and returned."""
    out = bench.array((T, K), DType.I32)
    assert bench.run(out=out) is out


def test_indices_may_lie_apart(bench):
    """Fewer entries of each token than there are in memory."""
    bench.run(indices=replace(bench.indices, shape=(T, 7), strides=(K, 1)))
    assert bench.numbers("k", "indices_stride") == [7, K]


def test_no_tokens(bench):
    """Without tokens nothing is launched."""
    none = {"indices": bench.array((0, K), DType.I32), "token_sequences": None}
    assert bench.run(**none).shape == (0, K)
    assert bench.cuda.launches == []


def test_rebind_of_the_cache(bench):
    """The kernel reads no rows, so that another cache changes nothing of a prepared launch."""
    operand = kv.Paged(bench.cache, table=bench.table)
    prepared = ops.kv_remap_indices.prepare(bench.indices, operand, library=bench.library)
    prepared.rebind(kv=bench.array(bench.cache.shape, DType.BF16))
    prepared()
    assert bench.parameter("table") == bench.table.pointer


BAD = {
    "flat indices": ({"indices": ((T * K,), DType.I32)}, r"`indices` must have the shape \[t, k\]"),
    "64-bit indices": ({"indices": ((T, K), DType.I64)}, "`indices` must be i32 or u32"),
    "sequences": ({"token_sequences": ((T + 1,), DType.I32)}, "`token_sequences` must have 5 elem"),
    "out": ({"out": ((T, K + 1), DType.I32)}, r"`out` must have the shape \[5, 12\]"),
    "out of u32": ({"out": ((T, K), DType.U32)}, "`out` must be i32"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(bench, name):
    """What is wrong is named, with what would be right."""
    given, message = BAD[name]
    with pytest.raises(ProblemError, match=message):
        bench.run(**{word: bench.array(*array) for word, array in given.items()})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda b: b.cache, "`kv` must be an operand of kernelpack.kv, not a DeviceArray"),
        (lambda b: kv.Paged(b.cache), "kv.Paged: `table` must be given, to find tokens by"),
        (
            lambda b: kv.Ragged(b.array((70, 576), DType.BF16)),
            "kv.Ragged: `offsets` must be given, to find tokens by",
        ),
        (
            lambda b: kv.Paged(b.cache, table=b.array((3, 4), DType.I64)),
            "kv.Paged: `table` must be i32 or u32, not i64",
        ),
    ],
)
def test_operands_refused(bench, make, message):
    """An operand that does not say whose rows are whose is named."""
    with pytest.raises(ProblemError, match=message):
        bench.run(make(bench))


@pytest.mark.parametrize(
    ("name", "at", "value", "message"),
    [
        ("token_sequences", 2, 3, r"`token_sequences\[2\]` must be 0 to 2, not 3"),
        ("token_sequences", 0, -1, r"`token_sequences\[0\]` must be 0 to 2, not -1"),
        ("indices", 13, 64, r"`indices\[1, 1\]` must be -1 to 63, not 64"),
        ("indices", 0, -2, r"`indices\[0, 0\]` must be -1 to 63, not -2"),
        ("table", 7, BLOCKS, r"`table\[1, 3\]` must be 0 to 5, not 6"),
    ],
)
def test_debug(bench, name, at, value, message):
    """Sequences, blocks and places that are not there are reported to those who debug."""
    shape = {"token_sequences": (T,), "table": (3, 4), "indices": (T, K)}[name]
    numbers = np.zeros(shape, np.int32)
    numbers.flat[at] = value
    array = bench.upload(numbers, DType.I32)
    if name == "table":
        operand, given = kv.Paged(bench.cache, table=array), {}
    else:
        operand, given = None, {name: array}
    with pytest.raises(ProblemError, match=message):
        bench.run(operand, debug=True, **given)


def test_debug_passes(bench):
    """-1 is not a mistake."""
    given = bench.upload(np.full((T, K), -1, np.int32), DType.I32)
    assert bench.run(indices=given, debug=True)


def test_debug_of_tokens_without_a_sequence(bench):
    """Where token t is of sequence t there are as many sequences."""
    message = "`token_sequences` must be given for 5 tokens of 3 sequences"
    with pytest.raises(ProblemError, match=message):
        bench.run(token_sequences=None, debug=True)


@pytest.mark.parametrize("offsets", [[0, 40, 9, 70], [0, 9, 40, 71], [-1, 9, 40, 70]])
def test_debug_reads_offsets(bench, offsets):
    """Sequences of a ragged storage lie one after another within it."""
    ends = bench.upload(np.array(offsets, np.int32), DType.I32)
    with pytest.raises(ProblemError, match="`offsets` must rise to at most the 70 rows, not"):
        bench.run(kv.Ragged(bench.array((70, 576), DType.BF16), offsets=ends), debug=True)


def test_overlapping_rows_are_refused(bench):
    """Rows of no distance, as `expand` makes them, are not read as if they lay apart."""
    message = r"`indices_stride` must be from k = 12 to below 2\^31, not 0"
    with pytest.raises(ProblemError, match=message):
        bench.run(indices=replace(bench.indices, strides=(0, 1)))
    message = "`table_stride` must be from 4, the pages, not 0"
    with pytest.raises(ProblemError, match=message):
        bench.run(kv.Paged(bench.cache, layer=1, table=replace(bench.table, strides=(0, 1))))


def test_offsets_of_nothing_are_refused(bench):
    """Offsets have the end of the last sequence, even where there is none."""
    operand = kv.Ragged(bench.array((70, 576), DType.BF16), offsets=bench.array((0,), DType.I32))
    message = r"kv.Ragged: `offsets` must have sequences \+ 1 elements, at least 1, not 0"
    with pytest.raises(ProblemError, match=message):
        bench.run(operand)
