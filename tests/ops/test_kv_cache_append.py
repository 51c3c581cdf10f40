"""The cache append on a GPU that is pretended: what is launched, what is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.manifest.expand import expand
from kernelpack.manifest.schema import load
from kernelpack.ops.arrays import DeviceArray
from tests.fakes.pretended import Pretended

ROOT = Path(__file__).parents[2]
T, PAGE, BLOCKS, LAYERS = 5, 16, 6, 3


@pytest.fixture(scope="module")
def variants():
    return expand(load(ROOT / "manifests/kv_cache_append.yaml"))


class Bench(Pretended):
    """Inputs on a pretended GPU, and the manifest's kernels."""

    def __init__(self, folder, variants):
        super().__init__(folder, variants)
        self.latent = self.array((T, 512), DType.BF16)
        self.rope = self.array((T, 64), DType.BF16)
        self.slots = self.upload(np.arange(T, dtype=np.int32), DType.I32)
        self.cache = self.array((BLOCKS, 1, LAYERS, PAGE, 1, 576), DType.BF16)
        self.table = self.upload(np.zeros((2, 3), np.int32), DType.I32)
        self.lengths = self.upload(np.array([3, 9], np.int32), DType.I32)
        self.offsets = self.upload(np.array([0, 2, T], np.int32), DType.I32)

    def known(self, **options):
        """The arguments of a call by slots."""
        cache = kv.Paged(self.cache, layer=1)
        given = {"latent": self.latent, "rope": self.rope, "kv": cache, "slots": self.slots}
        return {**given, **options}

    def run(self, **options):
        return ops.kv_cache_append(**self.known(**options), library=self.library)

    @property
    def layer(self):
        """A cache of one layer."""
        return self.array((BLOCKS, PAGE, 576), DType.BF16)

    def debug_sequences(self, offsets, lengths, table):
        """A call of three numbers a sequence, whose values are looked at first."""
        rows, counts, pages = (
            self.upload(np.array(values, np.int32), DType.I32)
            for values in (offsets, lengths, table)
        )
        cache = kv.Paged(self.cache, layer=1, table=pages, lengths=counts)
        self.run(kv=cache, slots=None, row_offsets=rows, debug=True)

    def follow(self, operand, **options):
        """A call whose tokens follow their sequences."""
        return self.run(kv=operand, slots=None, row_offsets=self.offsets, **options)


@pytest.fixture
def bench(tmp_path, variants):
    return Bench(tmp_path, variants)


def test_a_layer_of_a_cache(bench):
    """Rows begin at the layer; what follows sequences is null."""
    assert bench.run() is None
    names = ("kv_rows", "page", "blocks", "block_stride", "slots", "slot_words", "sequences")
    cache = bench.cache.pointer + PAGE * 1152
    wanted = [cache, PAGE, BLOCKS, PAGE * LAYERS, bench.slots.pointer, 1, 0]
    assert wanted == [bench.parameter(name) for name in names]
    absent = ("kv_scales", "row_offsets", "lengths", "table", "scales_per_row", "power_of_two")
    assert [bench.parameter(name) for name in absent] == [0] * 6


def test_slots_of_64_bits(bench):
    """They are two words each."""
    bench.run(slots=bench.array((T,), DType.I64))
    assert bench.parameter("slot_words") == 2


def test_values_cut_from_one_array(bench):
    """Tokens of latent and rope lie as far apart as in the array that holds both."""
    x = bench.array((T, 576), DType.BF16)
    rope = replace(x, pointer=x.pointer + 1024, shape=(T, 64), strides=(576, 1))
    bench.run(latent=replace(x, shape=(T, 512), strides=(576, 1)), rope=rope)
    found = [bench.parameter(name) for name in ("latent", "latent_stride", "rope", "rope_stride")]
    assert [x.pointer, 576, x.pointer + 1024, 576] == found


@pytest.mark.parametrize(
    ("row", "scales", "per_row", "block"),
    [(640, (1,), 1, 576), (576, (5,), 5, 128), (576, (18,), 18, 32), (512, (), 1, 512)],
)
def test_scales(bench, row, scales, per_row, block):
    """Scales of the layer, as many a row as the array has."""
    cache = bench.array((BLOCKS, PAGE, row), DType.U8)
    beside = bench.array((BLOCKS, PAGE, *scales), DType.FP32)
    rope = bench.rope if row > 512 else None
    bench.run(kv=kv.Paged(cache, scales=beside), rope=rope, power_of_two=True)
    names = ("kv_scales", "scales_per_row", "scale_block", "power_of_two")
    assert [beside.pointer, per_row, block, 1] == [bench.parameter(name) for name in names]


def test_tokens_follow_a_paged_cache(bench):
    """Offsets, lengths and table go where the kernel reads them."""
    bench.follow(kv.Paged(bench.cache, layer=1, table=bench.table, lengths=bench.lengths))
    names = ("row_offsets", "lengths", "table", "sequences", "pages", "table_stride", "slots")
    arrays = [bench.offsets.pointer, bench.lengths.pointer, bench.table.pointer]
    assert [*arrays, 2, 3, 3, 0] == [bench.parameter(name) for name in names]


def test_a_table_that_is_part_of_one(bench):
    """Rows of a table may be wider than the pages that count."""
    part = replace(bench.table, shape=(2, 2), strides=(3, 1))
    bench.follow(kv.Paged(bench.cache, layer=0, table=part, lengths=bench.lengths))
    assert [bench.parameter(name) for name in ("pages", "table_stride")] == [2, 3]


def test_tokens_follow_slots_of_their_own(bench):
    """Without a table sequence b has slot b."""
    cache = bench.array((4, 50, 576), DType.BF16)
    bench.follow(kv.Continuous(cache, lengths=bench.lengths))
    assert [bench.parameter(name) for name in ("table", "sequences", "pages")] == [0, 2, 1]


def test_no_tokens(bench):
    """Without tokens nothing is launched."""
    bench.run(
        latent=bench.array((0, 512), DType.BF16),
        rope=bench.array((0, 64), DType.BF16),
        slots=bench.array((0,), DType.I32),
    )
    assert bench.cuda.launches == []


def test_rebind(bench):
    """A prepared launch follows tokens, and a cache of the same sides to the same layer."""
    prepared = ops.kv_cache_append.prepare(**bench.known(), library=bench.library)
    latent, cache = bench.array((T, 512), DType.BF16), bench.array(bench.cache.shape, DType.BF16)
    prepared.rebind(latent=latent)
    prepared.rebind(kv=cache)
    prepared()
    found = [bench.parameter(name) for name in ("latent", "kv_rows")]
    assert [latent.pointer, cache.pointer + PAGE * 1152] == found


BAD = {
    "latent of another type": ({"latent": ((T, 512), DType.FP16)}, "`latent` must be bf16"),
    "latent of another width": ({"latent": ((T, 576), DType.BF16)}, "`latent` must have 512 elem"),
    "rope of another width": ({"rope": ((T, 32), DType.BF16)}, "`rope` must have 64 elements"),
    "other tokens": ({"rope": ((T + 1, 64), DType.BF16)}, "`rope` must have latent's 5 tokens"),
    "slots of 16 bits": ({"slots": ((T,), DType.I16)}, "`slots` must be i32 or u32 or i64"),
    "few slots": ({"slots": ((T - 1,), DType.I32)}, "`slots` must have 5 elements, not 4"),
    "many slots": ({"slots": ((2 * T,), DType.I32)}, "`slots` must have 5 elements, not 10"),
    "rows of no format": ({"kv": ((9, 520), DType.BF16)}, "a row must be bf16 576 or 512"),
    "scales that are missing": ({"kv": ((9, 640), DType.U8)}, "kv.Ragged: `scales` must be given"),
    "rope of rows without": ({"kv": ((9, 512), DType.BF16)}, "`rope` must be None: bf16_512 rows"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(bench, name):
    """What is wrong is named, with what would be right."""
    given, message = BAD[name]
    with pytest.raises(ProblemError, match=message):
        bench.run(**{word: bench.array(*array) for word, array in given.items()})


def test_rope_that_is_missing(bench):
    """Rows with rope need it."""
    with pytest.raises(ProblemError, match="`rope` must be given: bf16_576 rows have it"):
        bench.run(rope=None)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda b: kv.Ragged(b.array((99, 576), DType.BF16)),
            "kv.Ragged: `row_offsets`: a storage",
        ),
        (lambda b: kv.Paged(b.layer, table=b.table), "kv.Paged: `lengths` must be given"),
        (
            lambda b: kv.Paged(b.layer, lengths=b.lengths),
            "kv.Paged: `table` must be given",
        ),
        (
            lambda b: kv.Paged(b.layer, table=b.lengths, lengths=b.lengths),
            r"kv.Paged: `table` must have the shape \[sequences, pages\]",
        ),
        (
            lambda b: kv.Paged(
                b.cache, layer=0, table=b.array((3, 3), DType.I32), lengths=b.lengths
            ),
            "`table` must have the 2 sequences of `row_offsets`, not 3",
        ),
        (
            lambda b: kv.Continuous(b.array((1, 50, 576), DType.BF16), lengths=b.lengths),
            "`table` must have the 2 sequences of `row_offsets`, not 1",
        ),
    ],
)
def test_sequences_refused(bench, make, message):
    """A storage that cannot say where a sequence's next token goes is named, and why."""
    with pytest.raises(ProblemError, match=message):
        bench.follow(make(bench))


def test_nowhere_to_go(bench):
    """Without slots and offsets nothing says where tokens go."""
    with pytest.raises(ProblemError, match="`slots` or `row_offsets` must be given"):
        bench.run(slots=None)


@pytest.mark.parametrize("name", ["latent", "slots"])
def test_a_cache_over_its_inputs(bench, name):
    """A cache in the memory of what is read is refused."""
    rows = DeviceArray(pointer=getattr(bench, name).pointer, shape=(9, 576), dtype=DType.BF16)
    with pytest.raises(ProblemError, match=f"`kv` overlaps `{name}`"):
        bench.run(kv=rows)


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        ([0, 1, 2, 3, PAGE * BLOCKS], r"`slots\[4\]` must be -1 to 95, not 96"),
        ([0, -2, 2, 3, 4], r"`slots\[1\]` must be -1 to 95, not -2"),
        ([7, -1, 2, -1, 7], "`slots` must give each token a row of its own: 0 and 4 have the same"),
    ],
)
def test_debug_reads_slots(bench, slots, message):
    """Slots that name no row are reported to those who debug."""
    given = bench.upload(np.array(slots, np.int32), DType.I32)
    with pytest.raises(ProblemError, match=message):
        bench.run(slots=given, debug=True)


@pytest.mark.parametrize(
    ("offsets", "lengths", "message"),
    [
        ([0, 4, 3], [0, 0], "`row_offsets` must rise from 0 to at most t = 5"),
        ([1, 2, 5], [0, 0], "`row_offsets` must rise from 0"),
        ([0, 2, 6], [0, 0], "`row_offsets` must rise from 0"),
        ([0, 2, 5], [47, 0], "sequence 0 has room for 48 tokens, not 47 and 2"),
    ],
)
def test_debug_reads_offsets(bench, offsets, lengths, message):
    """Offsets and lengths that leave tokens out are reported to those who debug."""
    with pytest.raises(ProblemError, match=message):
        bench.debug_sequences(offsets, lengths, [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize(
    ("lengths", "table", "message"),
    [
        ([30, 0], [[0, 1, 2], [6, 4, 5]], r"`table\[1, 0\]` must name one of 6 blocks: token 2"),
        ([31, 0], [[0, 1, -1], [3, 4, 5]], r"`table\[0, 2\]` must name one of 6 blocks: token 1"),
        ([5, 5], [[0, 1, 2], [0, 4, 5]], "`table` must give each token a row of its own: 0 and 2"),
    ],
)
def test_debug_reads_the_table(bench, lengths, table, message):
    """Pages that new tokens go to are there, and no two tokens go to one row."""
    with pytest.raises(ProblemError, match=message):
        bench.debug_sequences([0, 2, 5], lengths, table)


def test_debug_passes_pages_that_nothing_goes_to(bench):
    """What a table holds for other pages is nobody's."""
    bench.debug_sequences([0, 2, 5], [5, 16], [[0, -1, 99], [0, 4, 99]])
    assert len(bench.cuda.launches) == 1


def test_slots_and_sequences(bench):
    """Tokens with two places are refused; before, one of the two went unread."""
    with pytest.raises(ProblemError, match="`row_offsets` must be left out with `slots`"):
        bench.run(row_offsets=bench.offsets)
