"""A whole decode step of MLA on the real device: against float64, in splits, captured, padded."""

import numpy as np
import pytest

from kernelpack import kv, ops
from kernelpack.kernels.kv_operand.rows import FORMATS
from kernelpack.runtime.streams import Graph, new_stream, synchronize
from tests.gpu.arrays import DEVICE, upload
from tests.kernels.branch import PAGE, TABLE, Branch

pytestmark = pytest.mark.gpu

OFF = 0.06  # what fp8 costs, as on the emulator
MOST_SPLITS = 17


class OnDevice:
    """A branch's arrays on the device, and prepared launches over them."""

    def __init__(self, library, branch, **settings):
        self.library, self.branch, self.memory, views = library, branch, {}, {}
        for name, array in branch.given.items():
            if name != "scale":
                self.memory[name], views[name] = upload(library, array)
        self.cache = branch.cache()
        for name, array in self._cache().items():
            self.memory[name], views[name] = upload(library, array)
        blocks, table, lengths = (views.pop(name) for name in ("blocks", "table", "lengths"))
        row = FORMATS[branch.row]
        rows = ops.DeviceArray(
            pointer=blocks.pointer, shape=(9, PAGE, row.elements), dtype=row.dtype
        )
        self.launch = ops.mla_decode_fp8.prepare(
            **views,
            scale=branch.given["scale"],
            kv=kv.Paged(rows, table=table, lengths=lengths),
            mask="causal",
            return_lse=True,
            library=library,
            **settings,
        )

    def _cache(self):
        blocks = np.ascontiguousarray(self.cache.blocks).view(np.uint8).reshape(-1)
        return {"blocks": blocks, "table": TABLE, "lengths": self.cache.lengths}

    def reset(self):
        """Lengths and rows as they are before a step."""
        self.cache = self.branch.cache()
        for name, array in self._cache().items():
            self.memory[name].write(array)

    def read(self, stream=0):
        """Outputs and lse; the cache is as the step left it."""
        found = []
        for out in self.launch.out:
            values = np.empty(out.shape, out.dtype.numpy)
            self.library.read(out.view.pointer, values, DEVICE, stream)
            found.append(values)
        blocks = self.cache.blocks
        raw = np.empty(blocks.nbytes, np.uint8)
        self.library.read(self.memory["blocks"].address, raw, DEVICE, stream)
        blocks.view(np.uint8).reshape(-1)[...] = raw
        return found

    def wrong(self, stream=0):
        """How far outputs and lse are from float64's."""
        out, lse = self.read(stream)
        branch = self.branch
        rows = [own[: at + 1] for own, at in map(branch.own_rows, range(branch.tokens))]
        wanted, wanted_lse = branch.answer(self.cache, rows)
        apart = np.linalg.norm(out.astype(np.float64) - wanted) / np.linalg.norm(wanted)
        return float(apart), float(np.abs(lse - wanted_lse).max())


@pytest.mark.parametrize("heads", [1, 8, 16, 128])
@pytest.mark.parametrize("row", ["fp8_656", "bf16_576"])
def test_branch(library, row, heads):
    """Any number of heads, in one split and in three."""
    for splits in (1, 3):
        on = OnDevice(library, Branch(row=row, heads=heads), num_partitions=splits)
        assert len(on.launch.launches) == 3 + (splits > 1)
        on.launch()
        assert max(on.wrong()) < OFF


def test_splits(library):
    """1 to 17 splits, most without keys, agree; and each gives the same bits again."""
    branch, found = Branch(heads=16), []
    for splits in range(1, MOST_SPLITS + 1):
        on = OnDevice(library, branch, num_partitions=splits)
        runs = []
        for _ in range(3):
            on.reset()
            on.launch()
            runs.append(on.read()[0])
        assert len({run.tobytes() for run in runs}) == 1
        found.append(runs[0].astype(np.float64))
    whole = np.abs(found[0]).max()
    assert max(np.abs(one - found[0]).max() for one in found) < 0.03 * whole


def test_graph(library):
    """A captured step serves other lengths, offsets and values each time it runs."""
    branch = Branch(heads=16)
    on, graph = OnDevice(library, branch, num_partitions=2), Graph(library.driver, DEVICE)
    with new_stream(library.driver, DEVICE) as stream:
        with graph.capture(stream):
            on.launch(stream)
        for seed, lengths, offsets in (
            (1, (19, 5, 7), (0, 2, 2, 3)),
            (2, (0, 30, 45), (0, 1, 1, 3)),
            (3, (40, 1, 0), (0, 0, 3, 3)),
        ):
            on.branch = Branch(heads=16, lengths=lengths, offsets=offsets, seed=seed)
            for name, array in on.branch.given.items():
                if name != "scale":
                    on.memory[name].write(array)
            on.reset()
            graph.launch(stream)
            synchronize(library.driver, stream, DEVICE)
            assert max(on.wrong(stream)) < OFF, lengths
        graph.destroy()


def test_alone_and_in_steps(library):
    """The step's four ops, one after another, give its bits: nothing starts too early."""
    branch = Branch(heads=128)
    on = OnDevice(library, branch, num_partitions=2)
    runs = []
    for waits in (False, True):
        on.reset()
        for launch in on.launch.launches:
            launch()
            if waits:
                on.read()
        runs.append(on.read()[0].tobytes())
    assert runs[0] == runs[1]
