"""The decode attention's op and the combine on the real device: FlashMLA's grid of decoding,
garbage, splits, graphs.

`test_variants` runs every case on every variant. FlashMLA's own kernel is asked where
`--flash-mla FOLDER` names the folder of an sgl-kernel's `flashmla_ops.abi3.so`.
"""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.kernels.definition import Expected
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.kernels.mla_decode_attention.cases import ROWS as ROWS_OF_CASES
from kernelpack.kernels.mla_decode_attention.cases import cases
from kernelpack.kernels.mla_decode_attention.definition import MLA_DECODE_ATTENTION
from kernelpack.kernels.mla_decode_attention.inputs import Case, Source
from kernelpack.ops.trial import Trial
from tests.gpu.arrays import DEVICE, torch_tensor
from tests.gpu.asked import HOPPER, decode_operands

# Importing frameworks may warn; that is theirs.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

ROWS = ("bf16_576", "fp8_656")
GRID = ((512, 64, 2), (512, 64, 69), (1024, 576, 61), (2046, 2048, 64))
"""FlashMLA's: entries of a token, rows of the cache, rows of a page."""
CASE = Case(
    name="op",
    t=12,
    h=24,
    source=Source(topk=700, spare=4, indices="bad", lengths="uneven", blocks=20),
    extra=Source(topk=130, spare=2, page=7, blocks=40, lengths="uneven"),
)
PAGED = Case(
    name="paged",
    t=12,
    h=16,
    source=Source(topk=0, page=16, blocks=500),
    added=(2, 1, 3, 0, 1, 4),
    cached=(700, 0, 129, 5, 1500, 60),
    pages=100,
    causal=True,
)


def wrong(library, case):
    """What is wrong with the variant that selection takes."""
    trial = Trial(library, MLA_DECODE_ATTENTION, case, DEVICE)
    return [str(c) for c in trial.check(trial.select()) if not c.is_right]


@pytest.mark.parametrize(("topk", "rows", "page"), GRID)
@pytest.mark.parametrize("tokens", [4, 12, 74])
@pytest.mark.parametrize(
    ("row", "h"),
    [("fp8_656", 64), ("fp8_656", 128), ("bf16_576", 128), ("fp8_656", 8), ("fp8_656", 24)],
)
def test_grid(library, row, h, tokens, topk, rows, page):
    """FlashMLA's tests of decoding: lengths that may be 0, bad entries, a second source."""
    case = Case(
        name="grid",
        t=tokens,
        h=h,
        row=FORMATS[row],
        values="shifted",
        sink=True,
        source=Source(
            topk=topk, page=page, blocks=-(-rows // page), indices="bad", lengths="uneven"
        ),
        seed=tokens,
    )
    extra = Source(topk=100 + tokens, page=page + 1, blocks=300 // page + 1, lengths="zero")
    for second, splits in ((None, 1), (extra, 3)):
        given = replace(case, extra=second, partitions=splits, sink=splits == 1)
        assert wrong(library, given) == [], given


@pytest.mark.parametrize("indices", ["invalid", "sparse", "last", "duplicates"])
@pytest.mark.parametrize("row", ROWS)
def test_lists(library, row, indices):
    """Tokens without a valid entry, lists of few."""
    source = Source(topk=2048, blocks=40, indices=indices)
    case = Case(name="t", t=20, h=128, row=FORMATS[row], source=source)
    for splits in (1, 5):
        assert wrong(library, replace(case, partitions=splits)) == []


@pytest.mark.parametrize("rows", ROWS_OF_CASES, ids=str)
def test_every_case_is_served(library, rows):
    """The bundle has a variant for every case."""
    for case in cases(rows):
        assert library.select("mla_decode_attention", case.sizes, DEVICE), case.name


class OnDevice:
    """The operands of a case on the device."""

    def __init__(self, library, case, **changes):
        import torch

        self.torch, self.library, self.case = torch, library, case
        self.arrays = MLA_DECODE_ATTENTION.inputs(case) | changes
        present = {word: array for word, array in self.arrays.items() if array.size}
        given = decode_operands(case, present)
        self.given = {
            word: torch_tensor(torch, value) if isinstance(value, np.ndarray) else value
            for word, value in given.items()
        }
        torch.cuda.synchronize()

    def call(self, **options):
        """Outputs as torch's: whole, or joined."""
        known = {**self.given, **options}
        kvs = {word: known.pop(word) for word in ("kv", "extra_kv", "table") if word in known}
        operand = kv.Paged(kvs["kv"], table=kvs.get("table"), lengths=known.get("cache_lengths"))
        mask = "causal" if known.pop("causal") else "null"
        for word in ("kv_scales", "extra_kv_scales"):
            known.pop(word, None)
        sink = known.pop("sink", None)
        splits = known.pop("num_partitions", 1)
        if "extra_kv" in kvs:
            known["extra_kv"] = kv.Paged(kvs["extra_kv"])
        q, scale, dead = known.pop("q"), known.pop("scale"), known.pop("dead_lse")
        stream = self.torch.cuda.current_stream().cuda_stream
        every = {"stream": stream, "library": self.library, "dead_lse": dead}
        call = ops.mla_decode_attention
        if splits == 1:
            found = call(q, operand, scale, **known, mask=mask, sink=sink, return_lse=True, **every)
        else:
            parts = call(q, operand, scale, **known, mask=mask, num_partitions=splits, **every)
            found = ops.mla_decode_combine(*parts, sink=sink, return_lse=True, **every)
        return [self.torch.from_dlpack(one) for one in found]

    def wrong(self, outputs, arrays=None, slack=1.0):
        """The outputs' worst errors over their bounds."""
        self.torch.cuda.synchronize()
        whole = replace(self.case, partitions=1)
        expected = MLA_DECODE_ATTENTION.expected(whole, arrays or self.arrays)
        found = [one.double().cpu().numpy() for one in outputs]
        pairs = zip(expected.values(), found, strict=True)
        ratios = [e.on(HOPPER).ratio(f).max() for e, f in pairs]
        return [ratio for ratio in ratios if not ratio <= slack]


@pytest.mark.parametrize("case", [CASE, PAGED], ids=lambda case: case.name)
@pytest.mark.parametrize("row", ROWS)
def test_splits(library, case, row):
    """1 to 17 splits, and more than there are keys, give the same within 2 bf16 ulp of each number,
    or of what a row's are on average, where columns cancel.
    """
    on = OnDevice(library, replace(case, row=FORMATS[row]))
    whole, lse = on.call()
    assert on.wrong([whole, lse]) == []
    for splits in (*range(2, 18), 256):
        out, joined = on.call(num_partitions=splits)
        on.torch.cuda.synchronize()
        size = whole.float().abs().maximum(whole.float().square().mean(-1, True).sqrt())
        ulp = size.clamp_min(2.0**-100).log2().floor().exp2() * 2.0**-7
        assert ((out.float() - whole.float()).abs() <= 2 * ulp).all(), splits
        near = on.torch.isclose(joined, lse, rtol=1e-5, atol=1e-5)
        assert (near | (joined == lse)).all(), splits


@pytest.mark.parametrize("splits", [1, 4])
def test_repeats(library, splits):
    """The same bits, launch after launch."""
    on = OnDevice(library, CASE)
    first = on.call(num_partitions=splits)
    for _ in range(4):
        again = on.call(num_partitions=splits)
        assert all(on.torch.equal(a, b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("splits", [1, 4])
def test_tokens_in_another_order(library, splits):
    """A token's outputs are the same bits wherever it is in the batch."""
    on = OnDevice(library, CASE)
    first = on.call(num_partitions=splits)
    order = on.torch.randperm(CASE.t, device="cuda")
    words = ("q", "indices", "extra_indices", "topk_lengths", "extra_topk_lengths")
    moved = {word: on.given[word][order].contiguous() for word in words}
    again = on.call(num_partitions=splits, **moved)
    assert all(on.torch.equal(a[order], b) for a, b in zip(first, again, strict=True))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("case", "words"),
    [
        (CASE, ("indices", "extra_indices", "topk_lengths", "extra_topk_lengths")),
        (PAGED, ("table", "cache_lengths")),
        (PAGED, ("row_offsets",)),
    ],
    ids=["lists", "pages", "offsets"],
)
def test_garbage(library, case, words, seed):
    """Any bits: what names a row counts, nothing else is read."""
    random = np.random.default_rng(seed)
    arrays = MLA_DECODE_ATTENTION.inputs(case)
    any_bits = {
        word: random.integers(-(2**31), 2**31, arrays[word].size)
        .astype(np.int32)
        .view(arrays[word].dtype)
        for word in words
    }
    on = OnDevice(library, replace(case, values="normal"), **any_bits)
    on.given["kv"].view(on.torch.uint8).zero_()  # rows that garbage may name are no poison
    outputs = on.call(num_partitions=3)
    on.torch.cuda.synchronize()
    assert not any(one.isnan().any() for one in outputs)


@pytest.mark.parametrize("splits", [1, 3])
def test_graph(library, splits):
    """A captured step reads other lengths and indices each time the graph runs."""
    on = OnDevice(library, CASE)
    torch, words = on.torch, ("kv", "extra_kv", "indices", "extra_indices", "topk_lengths", "q")
    h, t = CASE.h, CASE.t
    outs = {"out": torch.empty(t, h, 512, device="cuda", dtype=torch.bfloat16)}
    outs["lse"] = torch.empty(t, h, device="cuda")
    sides = (splits, t, h)
    parts = [torch.empty(*sides, 512, device="cuda"), torch.empty(*sides, device="cuda")]
    on.call(num_partitions=splits)

    def step():
        stream = {"stream": torch.cuda.current_stream().cuda_stream, "library": library}
        given = {word: on.given[word] for word in on.given if "len" in word or "ind" in word}
        del given["lengths_of_sequences"]
        given["extra_kv"] = kv.Paged(on.given["extra_kv"])
        call, named = ops.mla_decode_attention, dict(zip(PARTS, parts, strict=True))
        first = outs if splits == 1 else named
        call(on.given["q"], kv.Paged(on.given["kv"]), CASE.scale, **given, **first, **stream)
        if splits > 1:
            ops.mla_decode_combine(*parts, **outs, **stream)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    for seed in range(3):
        fresh = OnDevice(library, replace(CASE, seed=seed + 5))
        for word in (*words, "extra_topk_lengths"):
            on.given[word].copy_(fresh.given[word])
        graph.replay()
        assert fresh.wrong([outs["out"], outs["lse"]]) == []


PARTS = ("partial_out", "partial_lse")


@pytest.fixture(scope="module")
def flash_mla(request):
    """FlashMLA's own kernel: out [batch, queries, h, 512], lse."""
    import torch

    folder = request.config.getoption("--flash-mla")
    if folder is None:
        pytest.skip("needs --flash-mla FOLDER")
    torch.ops.load_library(folder / "flashmla_ops.abi3.so")
    return torch.ops.sgl_kernel.sparse_decode_fwd.default


@pytest.mark.parametrize("h", [64, 128])
@pytest.mark.parametrize(("t", "topk"), [(4, 512), (74, 1024), (16, 2048)])
def test_agrees_with_flash_mla(library, flash_mla, t, topk, h):
    """The same numbers as FlashMLA's own kernel, within what both may be off."""
    source = Source(topk=topk, page=64, blocks=64, indices="bad")
    case = Case(name="t", t=t, h=h, row=FORMATS["fp8_656"], values="shifted", source=source)
    on = OnDevice(library, case)
    torch = on.torch
    ours, _lse = on.call()
    cache = on.given["kv"].view(torch.uint8).clone()
    cache[(cache == 255).all(-1)] = 0  # its kernel multiplies what it masks
    listed = on.given["indices"]
    listed = listed.where((listed >= 0) & (listed < 64 * 64), -1)
    theirs = flash_mla(
        on.given["q"][:, None].contiguous(),
        cache.view(torch.float8_e4m3fn)[:, :, None],
        listed[:, None].contiguous(),
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        512,
        case.scale,
    )[0][:, 0]
    torch.cuda.synchronize()
    bound = MLA_DECODE_ATTENTION.expected(case, on.arrays)["out"]
    both = Expected(
        value=theirs.double().cpu().numpy(), bound=2 * bound.bound, cosine=2 * bound.cosine
    )
    mine = ours.double().cpu().numpy()
    assert (both.ratio(mine).max() <= 1, both.drift(mine) <= 1) == (True, True)
