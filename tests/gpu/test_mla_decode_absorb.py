"""The op before decode attention on the real device: garbage, graphs, repeats.

`test_variants` runs every case on every variant.
"""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.formats.dtype import DType
from kernelpack.kernels.definition import UNTOUCHED
from kernelpack.kernels.kv_operand.rows import LATENT
from kernelpack.kernels.mla_decode_absorb.cases import Case
from kernelpack.kernels.mla_decode_absorb.definition import MLA_DECODE_ABSORB
from kernelpack.runtime.streams import Graph, new_stream, synchronize
from tests.gpu.arrays import DEVICE, upload

pytestmark = pytest.mark.gpu

CASE = Case(
    name="op", t=50, h=16, sequences=60, blocks=120, page=2, garbage="padded", values="edges"
)
PLACES = ("row_offsets", "lengths", "batch", "table")


class OnDevice:
    """The inputs of CASE on the device, and a launch over them."""

    def __init__(self, library, case=CASE):
        self.library, self.case, problem = library, case, case.problem
        self.given = MLA_DECODE_ABSORB.inputs(case)
        self.memory, views = {}, {}
        for name, array in self.given.items():
            if array.size:
                self.memory[name], views[name] = upload(library, array)
        self.rows = library.memory(problem.kv_rows * problem.row.bytes, DEVICE)
        self.out = library.memory(2 * case.t * case.h * problem.width, DEVICE)
        self.clear()
        heads = (problem.q_token_stride, problem.q_head_stride, 1)
        blocks = (case.blocks, case.page, problem.row.bytes)
        table = replace(views["table"], shape=(case.sequences, problem.lookup.pages))
        self.launch = ops.mla_decode_absorb.prepare(
            replace(views["q"], shape=(case.t, case.h, 192), strides=heads),
            replace(views["w_uk"], dtype=DType.E4M3),
            replace(views["w_uk_scale"], shape=(case.h, LATENT // 128, 1)),
            freqs=views["freqs"],
            new_kv=replace(views["new_kv"], shape=(case.t, 576), strides=(problem.new_stride, 1)),
            gamma=replace(views["gamma"], shape=(LATENT,), dtype=case.gamma),
            kv=kv.Paged(
                self._view(self.rows, blocks, DType.U8), table=table, lengths=views["lengths"]
            ),
            row_offsets=views["row_offsets"],
            batch=views["batch"],
            epsilon=problem.epsilon,
            out=self._view(self.out, (case.t, case.h, problem.width), DType.BF16),
            library=library,
        )

    def _view(self, memory, shape, dtype):
        return ops.DeviceArray(pointer=memory.address, shape=shape, dtype=dtype)

    def clear(self):
        """What is written is as before a kernel ran."""
        problem = self.case.problem
        self.rows.write(np.full(problem.kv_rows * problem.row.bytes, UNTOUCHED, np.uint8))

    def read(self, stream=0):
        """The outputs, bit by bit."""
        problem, case = self.case.problem, self.case
        out = np.empty((case.t, case.h, problem.width), DType.BF16.numpy)
        rows = np.empty((problem.kv_rows, problem.row.bytes), np.uint8)
        self.library.read(self.out.address, out, DEVICE, stream)
        self.library.read(self.rows.address, rows, DEVICE, stream)
        return {"out": out, "kv": rows}

    def wrong(self, given, stream=0):
        """The outputs' worst errors over their bounds, for inputs by name."""
        expected = MLA_DECODE_ABSORB.expected(self.case, self.given | given)
        found = self.read(stream)
        ratios = {name: expected[name].ratio(found[name]).max() for name in found}
        return {name: ratio for name, ratio in ratios.items() if not ratio <= 1}


def test_op(library):
    """The op on raw pointers gives the oracle's numbers."""
    on = OnDevice(library)
    on.launch()
    assert on.wrong({}) == {}


def test_repeats(library):
    """The same bits, launch after launch."""
    on, runs = OnDevice(library), set()
    for _ in range(5):
        on.launch()
        runs.add(b"".join(values.tobytes() for values in on.read().values()))
    assert len(runs) == 1


@pytest.mark.parametrize("seed", range(3))
def test_garbage(library, seed):
    """Any bits in offsets, lengths and table: nothing is written but rows of the cache."""
    on, random = OnDevice(library), np.random.default_rng(seed)
    given = {}
    for name in PLACES:
        given[name] = random.integers(0, 2**32, on.given[name].size).astype(np.uint32)
        on.memory[name].write(given[name])
    on.launch()
    expected = MLA_DECODE_ABSORB.expected(on.case, on.given | given)["out"]
    assert expected.ratio(on.read()["out"]).max() <= 1


def test_graph(library):
    """A captured launch reads other sequences, lengths and tables each time the graph runs."""
    on, graph = OnDevice(library), Graph(library.driver, DEVICE)
    with new_stream(library.driver, DEVICE) as stream:
        with graph.capture(stream):
            on.launch(stream)
        for seed in range(3):
            fresh = MLA_DECODE_ABSORB.inputs(replace(CASE, seed=seed))
            given = {name: fresh[name] for name in PLACES}
            for name, array in given.items():
                on.memory[name].write(array)
            on.clear()
            graph.launch(stream)
            synchronize(library.driver, stream, DEVICE)
            assert on.wrong(given, stream) == {}
        graph.destroy()
