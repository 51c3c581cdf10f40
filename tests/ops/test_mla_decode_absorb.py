"""The op before decode attention on a GPU that is pretended: what is launched, what is refused."""

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
T, H, PAGE, BLOCKS, POSITIONS = 5, 6, 16, 6, 40
BF16, FP32, I32 = DType.BF16, DType.FP32, DType.I32


@pytest.fixture(scope="module")
def variants():
    return expand(load(ROOT / "manifests/mla_decode_absorb.yaml"))


class Bench(Pretended):
    """Inputs on a pretended GPU, and the manifest's kernel."""

    def __init__(self, folder, variants):
        super().__init__(folder, variants)
        self.blocks = self.array((BLOCKS, PAGE, 656), DType.U8)
        self.table = self.upload(np.zeros((2, 3), np.int32), I32)
        self.lengths = self.upload(np.array([3, 9], np.int32), I32)
        self.offsets = self.upload(np.array([0, 2, T], np.int32), I32)
        self.positions = self.upload(np.arange(T), DType.I64)
        self.slots = self.upload(np.arange(T, dtype=np.int32), I32)

    def cache(self, **changes):
        """A paged cache of two sequences."""
        given = {"table": self.table, "lengths": self.lengths, **changes}
        return kv.Paged(given.pop("blocks", self.blocks), **given)

    def known(self, **options):
        """The arguments of a call that does all, by sequence."""
        given = {
            "q": self.array((T, H, 192), BF16),
            "w_uk": self.array((H, 512, 128), DType.E4M3),
            "w_uk_scale": self.array((H, 4, 1), FP32),
            "freqs": self.array((POSITIONS, 64), FP32),
            "new_kv": self.array((T, 576), BF16),
            "gamma": self.array((512,), BF16),
            "kv": self.cache(),
            "row_offsets": self.offsets,
        }
        return {**given, **options}

    def run(self, **options):
        return ops.mla_decode_absorb(**self.known(**options), library=self.library)

    def numbers(self, *names):
        return [self.parameter(name) for name in names]


@pytest.fixture
def bench(tmp_path, variants):
    return Bench(tmp_path, variants)


def test_all_of_it(bench):
    """One launch; tokens follow the sequences of the cache; queries are returned."""
    out = bench.run()
    assert (out.shape, len(bench.cuda.launches)) == ((T, H, 576), 1)
    assert bench.numbers("t", "h", "rope", "most_positions") == [T, H, 64, POSITIONS]
    arrays = [bench.offsets.pointer, bench.lengths.pointer, bench.table.pointer]
    assert [*arrays, 2, 3] == bench.numbers("row_offsets", "lengths", "table", "sequences", "pages")
    cache = [bench.blocks.pointer, PAGE, BLOCKS, PAGE, 656, 0]
    names = ("kv_rows", "page", "blocks", "block_stride", "row_bytes", "gamma_is_wide")
    assert cache == bench.numbers(*names)
    assert bench.numbers("kv_scales", "batch", "slots", "positions") == [0] * 4


def test_the_grid(bench):
    """A warp of each token rotates, one writes its row; a head's products are four CTAs' work."""
    bench.run()
    row_ctas = -(-T * 2 // 4)
    assert [row_ctas, 2, 1, 1] == bench.numbers("row_ctas", "token_jobs", "rope_jobs", "token_ctas")
    assert bench.cuda.launches[-1].grid == (row_ctas + 4 * H, 1, 1)


def test_by_slots(bench):
    """Positions and slots have their own widths; sequences are left out."""
    bench.run(row_offsets=None, positions=bench.positions, slots=bench.slots)
    found = bench.numbers("positions", "position_words", "slots", "slot_words", "sequences")
    assert [bench.positions.pointer, 2, bench.slots.pointer, 1, 0] == found


LEFT_OUT = {
    "products": ({"w_uk": None, "w_uk_scale": None}, (2, 1, 3)),
    "rows": ({"new_kv": None, "gamma": None}, (1, 1, 2 + 4 * H)),
    "queries": ({"q": None, "w_uk": None, "w_uk_scale": None}, (1, 0, 2)),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_left_out(bench, name):
    """What is not given is not done: jobs of a token, of its rotation, and CTAs."""
    changes, (jobs, rope_jobs, ctas) = LEFT_OUT[name]
    out = bench.run(**changes)
    assert (out is None) == (name == "queries")
    assert [jobs, rope_jobs] == bench.numbers("token_jobs", "rope_jobs")
    assert bench.cuda.launches[-1].grid == (ctas, 1, 1)


def test_products_alone(bench):
    """Without freqs and rows nothing asks where tokens are."""
    changes = dict.fromkeys(("freqs", "new_kv", "gamma", "kv", "row_offsets"))
    bench.run(**changes)
    assert bench.numbers("row_ctas", "sequences", "blocks") == [0, 0, 0]


def test_parts_of_wider_arrays(bench):
    """Heads, tokens and new rows may lie apart."""
    q, new = bench.array((T, H, 256), BF16), bench.array((T, 2112), BF16)
    bench.run(
        q=replace(q, shape=(T, H, 192), strides=(H * 256, 256, 1)),
        new_kv=replace(new, shape=(T, 576), strides=(2112, 1)),
    )
    found = bench.numbers("q_token_stride", "q_head_stride", "new_stride")
    assert found == [H * 256, 256, 2112]


def test_without_rope(bench):
    """Rows and heads without rope values need no freqs; outputs are as wide as the latent."""
    blocks = bench.array((BLOCKS, PAGE, 512), BF16)
    out = bench.run(
        q=bench.array((T, H, 128), BF16),
        new_kv=bench.array((T, 512), BF16),
        freqs=None,
        kv=bench.cache(blocks=blocks),
        gamma=bench.array((512,), FP32),
    )
    assert out.shape == (T, H, 512)
    assert bench.numbers("rope", "rope_jobs", "most_positions", "gamma_is_wide") == [
        0,
        0,
        2**31 - 1,
        1,
    ]


def test_scales_beside_rows(bench):
    """Rows of 640 bytes have a scale each, which is written too."""
    blocks, scales = bench.array((BLOCKS, PAGE, 640), DType.U8), bench.array((BLOCKS, PAGE), FP32)
    bench.run(kv=bench.cache(blocks=blocks, scales=scales), power_of_two=True)
    assert [scales.pointer, 1, 576, 1] == bench.numbers(
        "kv_scales", "scales_per_row", "scale_block", "power_of_two"
    )


def test_a_batch_on_the_device(bench):
    """How many sequences count is read on the device."""
    batch = bench.array((1,), I32)
    bench.run(batch=batch)
    assert bench.parameter("batch") == batch.pointer


def test_no_tokens(bench):
    """Without tokens nothing is launched."""
    bench.run(q=bench.array((0, H, 192), BF16), new_kv=bench.array((0, 576), BF16))
    assert bench.cuda.launches == []


def test_prepared(bench):
    """A prepared launch gives its queries, and takes others of the same sides."""
    prepared = ops.mla_decode_absorb.prepare(**bench.known(), library=bench.library)
    assert prepared.out.shape == (T, H, 576)
    q = bench.array((T, H, 192), BF16)
    prepared.rebind(q=q)
    prepared()
    assert bench.parameter("q") == q.pointer


BAD = {
    "q of another width": ({"q": ((T, H, 200), BF16)}, "`q` must have 192 columns, or 128 without"),
    "q of another type": ({"q": ((T, H, 192), DType.FP16)}, "`q` must be bf16, not fp16"),
    "other tokens": ({"new_kv": ((T + 1, 576), BF16)}, "`new_kv` must have q's 5 tokens"),
    "rope of one alone": ({"new_kv": ((T, 512), BF16)}, "must both have rope values, or none"),
    "weights of other heads": (
        {"w_uk": ((H + 1, 512, 128), DType.E4M3)},
        r"`w_uk` must be \[6, 512, 128\], not \[7, 512, 128\]",
    ),
    "weights the other way": (
        {"w_uk": ((H, 128, 512), DType.E4M3)},
        r"`w_uk` must be \[6, 512, 128\], not \[6, 128, 512\]",
    ),
    "scales the other way": ({"w_uk_scale": ((H, 1, 4), FP32)}, "`w_uk_scale` must have 4 x 1 bl"),
    "scales of other heads": ({"w_uk_scale": ((H - 1, 4, 1), FP32)}, "must have 6 heads, not 5"),
    "freqs of another width": ({"freqs": ((POSITIONS, 32), FP32)}, "`freqs` must have 64 columns"),
    "freqs of no position": ({"freqs": ((0, 64), FP32)}, "`freqs` must have a position or more"),
    "gamma of another width": (
        {"gamma": ((576,), BF16)},
        "`gamma` must have 512 elements, not 576",
    ),
    "gamma of another type": ({"gamma": ((512,), DType.FP16)}, "`gamma` must be bf16 or fp32"),
    "few offsets": ({"row_offsets": ((2,), I32)}, "`lengths` must have the 1 sequences of"),
    "a batch of two": ({"batch": ((2,), I32)}, "`batch` must have one element"),
    "an output of another width": ({"out": ((T, H, 512), BF16)}, "`out` must have the shape"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(bench, name):
    """What is wrong is named, with what would be right."""
    given, message = BAD[name]
    with pytest.raises(ProblemError, match=message):
        bench.run(**{word: bench.array(*array) for word, array in given.items()})


MISSING = {
    "neither": (("q", "new_kv", "w_uk", "w_uk_scale"), "`q` or `new_kv` must be given"),
    "freqs": (("freqs",), "`freqs` must be given, to rotate new rows"),
    "gamma": (("gamma",), "`gamma` must be given, to normalise new rows"),
    "the cache": (("kv",), "`kv` must be given: `row_offsets` follow its lengths"),
    "scales of weights": (("w_uk_scale",), "`w_uk` and `w_uk_scale` go together"),
    "weights of scales": (("w_uk",), "`w_uk` and `w_uk_scale` go together"),
    "places": (("row_offsets",), "`positions`, or `row_offsets` with a cache's `lengths`"),
}


@pytest.mark.parametrize("name", MISSING)
def test_missing(bench, name):
    """What is needed and not there is named."""
    words, message = MISSING[name]
    with pytest.raises(ProblemError, match=message):
        bench.run(**dict.fromkeys(words))


def test_places_that_contradict(bench):
    """Either sequences say where tokens are, or positions do; rows by position need slots."""
    with pytest.raises(ProblemError, match="`positions`, or `row_offsets`"):
        bench.run(positions=bench.positions, slots=bench.slots)
    with pytest.raises(ProblemError, match="`slots` must be given with `positions`"):
        bench.run(row_offsets=None, positions=bench.positions)
    with pytest.raises(ProblemError, match=r"kv.Ragged: a storage whose sequences have no lengths"):
        bench.run(kv=kv.Ragged(bench.array((99, 656), DType.U8)))


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([39, 0], "token 1 must have a position from 0 to 39"),
        ([-5, 0], "token 0 must have a position"),
        ([0, 46], "token 2 must have a position"),
    ],
)
def test_debug_reads_places(bench, lengths, message):
    """Tokens that have no position are reported to those who debug."""
    cache = bench.cache(lengths=bench.upload(np.array(lengths, np.int32), I32))
    with pytest.raises(ProblemError, match=message):
        bench.run(kv=cache, debug=True)


def test_debug_reads_slots(bench):
    """So are tokens that have no row."""
    slots = bench.upload(np.array([0, 1, PAGE * BLOCKS, 3, 4], np.int32), I32)
    with pytest.raises(ProblemError, match="token 2, at position 2, has no row in the cache"):
        bench.run(row_offsets=None, positions=bench.positions, slots=slots, debug=True)


@pytest.mark.parametrize(
    ("offsets", "batch", "message"),
    [
        ([0, T + 1, T], None, "`row_offsets` must rise from 0 to at most t = 5, not"),
        ([1, 2, T], None, "`row_offsets` must rise from 0"),
        ([0, -1, T], None, r"not \[0, -1, 5\]"),
        ([0, 2, T], 3, "`batch` must be 0 to 2, not 3"),
        ([0, 2, T], -1, "`batch` must be 0 to 2, not -1"),
    ],
)
def test_debug_reads_offsets(bench, offsets, batch, message):
    """Offsets that do not rise, and sequences that are not there, are reported too."""
    given = {"row_offsets": bench.upload(np.array(offsets, np.int32), I32)}
    if batch is not None:
        given["batch"] = bench.upload(np.array([batch], np.int32), I32)
    with pytest.raises(ProblemError, match=message):
        bench.run(**given, debug=True)


def test_debug_passes_what_is_behind_the_batch(bench):
    """Offsets of sequences that do not count may be anything."""
    given = {"row_offsets": bench.upload(np.array([0, T, 2], np.int32), I32)}
    bench.run(**given, batch=bench.upload(np.array([1], np.int32), I32), debug=True)
    assert len(bench.cuda.launches) == 1


def test_debug_finds_two_tokens_of_one_row(bench):
    """Which of them the row would hold is not known."""
    slots = bench.upload(np.array([0, 1, 2, 1, 4], np.int32), I32)
    message = "`slots` must give each token a row of its own: 1 and 3 have the same"
    with pytest.raises(ProblemError, match=message):
        bench.run(row_offsets=None, positions=bench.positions, slots=slots, debug=True)
    cache = bench.cache(lengths=bench.upload(np.array([3, 3], np.int32), I32))
    with pytest.raises(ProblemError, match="`table` must give each token a row of its own"):
        bench.run(kv=cache, debug=True)


@pytest.mark.parametrize("epsilon", [1e39, -1, float("nan"), float("inf")])
def test_epsilon(bench, epsilon):
    """What is added is a number that the kernel's fp32 holds."""
    with pytest.raises(ProblemError, match="`epsilon` must be at least 0 and finite as fp32"):
        bench.run(epsilon=epsilon)


def test_an_output_of_no_queries(bench):
    """Where nothing is returned there is nothing to give memory for."""
    out = bench.array((T, H, 576), BF16)
    with pytest.raises(ProblemError, match="`out` must be left out: nothing in this call makes it"):
        bench.run(q=None, w_uk=None, w_uk_scale=None, out=out)
