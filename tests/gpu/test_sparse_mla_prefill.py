"""Sparse MLA prefill's op on the real device: FlashMLA's grid, garbage, graphs, many tokens.

`test_variants` runs every case on every variant. FlashMLA's own kernel is asked where
`--flash-mla FOLDER` names the folder of an sgl-kernel's `flashmla_ops.abi3.so`.
"""

from dataclasses import replace
from functools import lru_cache
from itertools import product

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.kernels.definition import Expected
from kernelpack.kernels.sparse_mla_prefill.cases import cases
from kernelpack.kernels.sparse_mla_prefill.definition import SPARSE_MLA_PREFILL
from kernelpack.kernels.sparse_mla_prefill.inputs import SINKS, Case
from kernelpack.kernels.sparse_mla_prefill.reference import attend, tolerated, with_sink
from kernelpack.kernels.sparse_mla_prefill.rows import BF16, BF16_LATENT, ROWS
from kernelpack.ops.trial import Trial
from kernelpack.runtime.streams import Graph, new_stream, synchronize
from tests.gpu.arrays import DEVICE, torch_tensor, upload

# Importing frameworks may warn; that is theirs.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

POOLS = (
    *((128, 128), (256, 256), (512, 512), (592, 128), (1840, 256), (1592, 384), (1521, 512)),
    *((95, 128), (153, 256), (114, 384)),
)
"""FlashMLA's: rows of the pool, and entries of a token."""
FLASH_MLA_UNIT = np.log(2)
"""The unit of its lse and largest scores: sglang-kernel 0.4.4 has them to the base 2. Taken for
natural units, all of them are 1.4427 times what the oracle has."""
CASE = Case(name="op", t=40, h=24, topk=200, spare=8, indices="bad", lengths="uneven", sink=True)


def flash_mla_case(d, h, s_q, pool, topk, *, sink, lengths):
    row = (BF16 if d == 576 else BF16_LATENT).row
    return Case(
        name="grid",
        t=s_q,
        h=h,
        topk=topk,
        page=pool,
        blocks=1,
        row=row,
        values="shifted",
        sink=sink,
        lengths="uneven" if lengths else "none",
        seed=pool,
    )


@lru_cache(maxsize=1)
def without_sink(case):
    """The inputs of a case without sinks, and what tokens attend to: the long part of a test."""
    arrays = SPARSE_MLA_PREFILL.inputs(case)
    return arrays, attend(case.problem, arrays)


def shared_inputs(case):
    """The inputs of a case; with and without sinks all else is the same."""
    arrays, _ = without_sink(replace(case, sink=False))
    return arrays | {"sink": np.resize(np.array(SINKS, np.float32), case.h if case.sink else 0)}


def shared_expected(case, arrays):
    """The oracle of a case, by that of the same without sinks."""
    _, found = without_sink(replace(case, sink=False))
    if case.sink:
        found = with_sink(found, arrays["sink"].astype(np.float64))
    return tolerated(case.problem, found)


SHARED = replace(SPARSE_MLA_PREFILL, inputs=shared_inputs, expected=shared_expected)


def wrong(library, case):
    """What is wrong with the variant that selection takes."""
    trial = Trial(library, SHARED, case, DEVICE)
    return [str(c) for c in trial.check(trial.select()) if not c.is_right]


@pytest.mark.parametrize(("pool", "topk"), POOLS)
@pytest.mark.parametrize("s_q", [1, 62, 213])
@pytest.mark.parametrize(("d", "h"), [*product((512, 576), (64, 128)), (576, 8), (576, 24)])
def test_grid(library, d, h, s_q, pool, topk):
    """FlashMLA's tests, with and without lengths and sinks, and few heads besides."""
    for lengths, sink in product((False, True), repeat=2):
        case = flash_mla_case(d, h, s_q, pool, topk, sink=sink, lengths=lengths)
        assert wrong(library, case) == [], case


@pytest.mark.parametrize(("s_q", "pool", "topk"), [(1, 128, 128), (1, 256, 256), (200, 4321, 4096)])
def test_invalid_tokens_in_between(library, s_q, pool, topk):
    """Every second token has no valid entry."""
    case = flash_mla_case(576, 128, s_q, pool, topk, sink=True, lengths=False)
    assert wrong(library, replace(case, indices="invalid")) == []


@pytest.mark.parametrize("s_q", [1, 64])
@pytest.mark.parametrize(("pool", "topk"), [(32, 2048), (64, 8192)])
def test_few_rows(library, s_q, pool, topk):
    """More entries than there are rows, one in forty valid."""
    case = flash_mla_case(576, 128, s_q, pool, topk, sink=False, lengths=False)
    assert wrong(library, replace(case, indices="sparse")) == []


@pytest.mark.parametrize("rows", ROWS, ids=str)
def test_every_case_is_served(library, rows):
    """The bundle has a variant for every case."""
    for case in cases(rows):
        assert library.select("sparse_mla_prefill", case.sizes, DEVICE), case.name


@lru_cache(maxsize=1)
def arrays():
    return SPARSE_MLA_PREFILL.inputs(CASE)


class OnDevice:
    """The inputs of CASE on the device, and a launch over them."""

    def __init__(self, library, **changes):
        self.library = library
        problem, given = CASE.problem, arrays() | changes
        shapes = {
            "q": (problem.t, problem.h, 576),
            "indices": (problem.t, problem.topk),
        }
        steps = {"indices": (problem.indices_stride, 1)}
        self.memory, self.views = {}, {}
        for name in ("q", "kv", "indices", "topk_lengths", "sink"):
            self.memory[name], view = upload(library, given[name])
            shape, strides = shapes.get(name, view.shape), steps.get(name)
            self.views[name] = replace(view, shape=shape, strides=strides)
        rows = replace(self.views.pop("kv"), shape=(CASE.blocks, CASE.page, 1152))
        bf16 = replace(rows, shape=(CASE.blocks, CASE.page, 576), dtype=self.views["q"].dtype)
        self.arguments = {**self.views, "kv": kv.Paged(bf16), "scale": CASE.scale}
        self.launch = ops.sparse_mla_prefill.prepare(
            **self.arguments, return_lse=True, return_max_logits=True, library=library
        )

    def read(self, stream=0):
        """The outputs, bit by bit."""
        found = []
        for out in self.launch.out:
            values = np.empty(out.shape, out.dtype.numpy)
            self.library.read(out.view.pointer, values, DEVICE, stream)
            found.append(values)
        return found

    def wrong(self, given, stream=0):
        """The outputs' worst errors over their bounds, for inputs by name."""
        expected = SPARSE_MLA_PREFILL.expected(CASE, arrays() | given)
        names = ("out", "lse", "max_logits")
        found = dict(zip(names, self.read(stream), strict=True))
        ratios = [expected[n].ratio(found[n]).max() for n in names]
        return [r for r in [*ratios, expected["out"].drift(found["out"])] if not r <= 1]


def test_op(library):
    """The op on raw pointers gives the oracle's numbers."""
    on = OnDevice(library)
    on.launch()
    assert on.wrong({}) == []


def test_repeats(library):
    """The same bits, launch after launch."""
    on = OnDevice(library)
    runs = []
    for _ in range(5):
        on.launch()
        runs.append(b"".join(values.tobytes() for values in on.read()))
    assert set(runs) == {runs[0]}


@pytest.mark.parametrize("seed", range(3))
def test_garbage(library, seed):
    """Any bits in lengths and indices: what is valid counts, nothing else is read."""
    random = np.random.default_rng(seed)
    any_bits = {
        "topk_lengths": random.integers(-(2**31), 2**31, CASE.t).astype(np.int32),
        "indices": random.integers(-(2**31), 2**31, arrays()["indices"].size).astype(np.int32),
    }
    on = OnDevice(library, **any_bits)
    on.launch()
    assert on.wrong(any_bits) == []


def test_graph(library):
    """A captured launch reads other indices and lengths each time the graph runs."""
    on, graph = OnDevice(library), Graph(library.driver, DEVICE)
    with new_stream(library.driver, DEVICE) as stream:
        with graph.capture(stream):
            on.launch(stream)
        for seed in range(3):
            fresh = SPARSE_MLA_PREFILL.inputs(replace(CASE, seed=seed, lengths="garbage"))
            given = {name: fresh[name] for name in ("kv", "indices", "topk_lengths")}
            for name, array in given.items():
                on.memory[name].write(array)
            graph.launch(stream)
            synchronize(library.driver, stream, DEVICE)
            assert on.wrong(given, stream) == []
        graph.destroy()


@pytest.mark.parametrize("h", [8, 128])
def test_many_tokens(library, h):
    """70,000 tokens, more than a grid's second side has; the last are as alone."""
    import torch

    t, topk = 70_000, 128
    cache = torch.randn(512, 576, device="cuda", dtype=torch.bfloat16) / 10
    q = torch.randn(100, h, 576, device="cuda", dtype=torch.bfloat16)[torch.arange(t) % 100]
    indices = torch.randint(0, 512, (100, topk), device="cuda", dtype=torch.int32)
    indices = indices[torch.arange(t) % 100]
    torch.cuda.synchronize()
    many = torch.from_dlpack(ops.sparse_mla_prefill(q, cache, indices, 0.1, library=library))
    few = ops.sparse_mla_prefill(q[:100], cache, indices[:100], 0.1, library=library)
    torch.cuda.synchronize()
    alone = torch.from_dlpack(few)
    assert torch.equal(many.view(700, 100, h, 512), alone.expand(700, -1, -1, -1))


def test_far_rows(library):
    """Rows beyond 4 GiB of a cache are found."""
    import torch

    blocks = 70_000  # of 64 rows of 1152 bytes: 4.8 GiB
    cache = torch.zeros(blocks, 64, 576, device="cuda", dtype=torch.bfloat16)
    cache[-1] = torch.randn(64, 576, device="cuda") / 10
    q = torch.randn(4, 16, 576, device="cuda", dtype=torch.bfloat16)
    near = torch.arange(64, device="cuda", dtype=torch.int32).expand(4, 64).contiguous()
    far = near + 64 * (blocks - 1)
    torch.cuda.synchronize()
    found = ops.sparse_mla_prefill(q, kv.Paged(cache), far, 0.1, library=library)
    expected = ops.sparse_mla_prefill(q, kv.Ragged(cache[-1]), near, 0.1, library=library)
    torch.cuda.synchronize()
    assert torch.equal(torch.from_dlpack(found), torch.from_dlpack(expected))


@pytest.fixture(scope="module")
def flash_mla(request):
    """FlashMLA's own kernel: out, largest scores, lse."""
    import torch

    folder = request.config.getoption("--flash-mla")
    if folder is None:
        pytest.skip("needs --flash-mla FOLDER")
    torch.ops.load_library(folder / "flashmla_ops.abi3.so")
    return torch.ops.sgl_kernel.sparse_prefill_fwd.default


@pytest.mark.parametrize(("d", "h"), [(576, 64), (576, 128), (512, 64), (512, 128)])
@pytest.mark.parametrize(("s_q", "pool", "topk"), [(62, 1840, 256), (100, 8192, 2048)])
def test_agrees_with_flash_mla(library, flash_mla, d, h, s_q, pool, topk):
    """The same numbers as FlashMLA's own kernel, within what both may be off."""
    import torch

    case = flash_mla_case(d, h, s_q, pool, topk, sink=True, lengths=True)
    given = {n: torch_tensor(torch, a) for n, a in SPARSE_MLA_PREFILL.inputs(case).items()}
    q, indices = given["q"].view(s_q, h, d), given["indices"].view(s_q, topk)
    rows = given["kv"].view(torch.bfloat16).nan_to_num(0)
    lengths, sink = given["topk_lengths"], given["sink"]
    torch.cuda.synchronize()
    ours = ops.sparse_mla_prefill(
        q,
        rows,
        indices,
        case.scale,
        topk_lengths=lengths,
        sink=sink,
        return_lse=True,
        return_max_logits=True,
        library=library,
    )
    torch.cuda.synchronize()
    theirs = flash_mla(q, rows[:, None], indices[:, None], case.scale, 512, sink, lengths)
    bounds = SPARSE_MLA_PREFILL.expected(case, SPARSE_MLA_PREFILL.inputs(case))
    out, lse, largest = (torch.from_dlpack(one).double().cpu().numpy() for one in ours)
    their_out, their_largest, their_lse = (one.double().cpu().numpy() for one in theirs)
    for name, mine, other in (
        ("out", out, their_out),
        ("lse", lse, their_lse * FLASH_MLA_UNIT),
        ("max_logits", largest, their_largest * FLASH_MLA_UNIT),
    ):
        bound = bounds[name]
        both = Expected(value=other, bound=2 * bound.bound, cosine=2 * bound.cosine)
        assert both.ratio(mine).max() <= 1, name
        assert both.drift(mine) <= 1, name
