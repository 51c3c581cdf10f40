"""The whole decode step on a GPU that is pretended: launches, memory between them, refusals."""

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
T, H, PAGE, BLOCKS, TOPK = 5, 6, 16, 6, 40
BF16, FP32, I32, U8 = DType.BF16, DType.FP32, DType.I32, DType.U8
STEPS = ("mla_decode_absorb", "mla_decode_attention", "mla_decode_combine", "mla_decode_project")


@pytest.fixture(scope="module")
def variants():
    """The steps' kernels; of attention one alone."""
    listed = [v for stem in STEPS for v in expand(load(ROOT / f"manifests/{stem}.yaml"))]
    one = {"ROW": "fp8_656", "HEADS": 8}
    return [v for v in listed if v.kernel != STEPS[1] or one.items() <= dict(v.axes).items()]


class Bench(Pretended):
    """Inputs on a pretended GPU, and the manifests' kernels."""

    def __init__(self, folder, variants):
        super().__init__(folder, variants)
        self.parameters = {
            v.entry: [p.name for p in v.params] for v in variants if str(v.arch) == "sm_90a"
        }
        self.kernels = {v.entry: v.kernel for v in variants}

    def known(self, **options):
        """The arguments of a call over listed keys."""
        cache = kv.Paged(
            self.array((BLOCKS, PAGE, 656), U8),
            table=self.upload(np.zeros((2, 3), np.int32), I32),
            lengths=self.upload(np.array([3, 9], np.int32), I32),
        )
        given = {
            "q": self.array((T, H, 192), BF16),
            "new_kv": self.array((T, 576), BF16),
            "kv": cache,
            "scale": 0.1,
            "w_uk": self.array((H, 512, 128), DType.E4M3),
            "w_uk_scale": self.array((H, 4, 1), FP32),
            "w_uv": self.array((H, 128, 512), DType.E4M3),
            "w_uv_scale": self.array((H, 1, 4), FP32),
            "gamma": self.array((512,), BF16),
            "freqs": self.array((40, 64), FP32),
            "row_offsets": self.upload(np.array([0, 2, T], np.int32), I32),
            "indices": self.array((T, TOPK), I32),
        }
        return {**given, **options, "library": self.library}

    def run(self, **options):
        return ops.mla_decode_fp8(**self.known(**options))

    def launched(self):
        """The kernels that were launched, in order."""
        return [self.kernels[launch.entry] for launch in self.cuda.launches]

    def told(self, kernel, name):
        """A parameter of the last launch of a kernel."""
        launch = [x for x in self.cuda.launches if self.kernels[x.entry] == kernel][-1]
        return launch.number(self.parameters[launch.entry].index(name))


@pytest.fixture
def bench(tmp_path, variants):
    return Bench(tmp_path, variants)


@pytest.mark.parametrize(
    ("splits", "wanted"), [(1, [*STEPS[:2], STEPS[3]]), (2, [*STEPS]), (256, [*STEPS])]
)
def test_launches(bench, splits, wanted):
    """Three a call, or four with splits; each may start while the one before ends."""
    out = bench.run(num_partitions=splits)
    assert (out.shape, bench.launched()) == ((T, H, 128), wanted)
    assert all(launch.programmatic for launch in bench.cuda.launches)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((1, 1), 1280 + 1024),
        ((5, 6, 1), 34_560 + 30_720),
        ((5, 6, 2), 34_560 + 30_720 + 2 * 61_440 + 256),
        ((0, 6, 2), 0),
    ],
)
def test_workspace_bytes(given, wanted):
    """Absorbed queries, what they attended, and of splits their parts; each in steps of 256."""
    assert ops.mla_decode_fp8.workspace_bytes(*given) == wanted


def test_memory_of_the_callers(bench):
    """What lies between the steps lies in the workspace, and they hand it on."""
    room = bench.array((ops.mla_decode_fp8.workspace_bytes(T, H, 2),), U8)
    bench.run(num_partitions=2, workspace=room)
    absorbed, attended = room.pointer, room.pointer + 34_560
    assert bench.told(STEPS[0], "out") == absorbed
    assert bench.told(STEPS[1], "partial_out") == attended + 30_720
    assert bench.told(STEPS[2], "partial_out") == attended + 30_720
    assert bench.told(STEPS[2], "out") == bench.told(STEPS[3], "x") == attended


def test_sinks_and_lse(bench):
    """Where there are splits, what joins them takes the sink and gives the lse."""
    sink, lse = bench.array((H,), FP32), bench.array((T, H), FP32)
    found = bench.run(num_partitions=2, sink=sink, lse=lse)
    assert found[1] is lse
    assert bench.told(STEPS[1], "sink") == 0
    assert [bench.told(STEPS[2], name) for name in ("sink", "lse")] == [sink.pointer, lse.pointer]


def test_prepared(bench):
    """A prepared call launches its steps; other arrays go to every step that has them."""
    given = bench.known()
    prepared = ops.mla_decode_fp8.prepare(**given)
    assert bench.cuda.launches == []
    cache, out = bench.array((BLOCKS, PAGE, 656), U8), bench.array((T, H, 128), BF16)
    prepared.rebind(kv=cache, out=out)
    prepared()
    assert prepared.out is out
    assert bench.told(STEPS[0], "kv_rows") == bench.told(STEPS[1], "kv") == cache.pointer
    assert bench.told(STEPS[3], "out") == out.pointer
    with pytest.raises(ProblemError, match="no argument `sink`"):
        prepared.rebind(sink=bench.array((H,), FP32))


BAD = {
    "weights of the last step": (
        {"w_uv": ((H, 512, 128), DType.E4M3)},
        r"`w_uv` must be \[6, 128, 512\]",
    ),
    "a small workspace": ({"workspace": ((1000,), U8)}, "`workspace` must have 65280 bytes, not"),
    "a workspace of words": ({"workspace": ((99_999,), I32)}, "`workspace` must be u8, not i32"),
    "queries of two sides": ({"q": ((T, 192), BF16)}, r"`q` must have the shape \[t, h, 192\]"),
    "indices of other tokens": ({"indices": ((T + 1, TOPK), I32)}, "`indices` must have q's 5 tok"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(bench, name):
    """What is wrong is named, and nothing is launched: the cache is as it was."""
    given, message = BAD[name]
    with pytest.raises(ProblemError, match=message):
        bench.run(**{word: bench.array(*array) for word, array in given.items()})
    assert bench.cuda.launches == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indices": None, "row_offsets": None}, "`row_offsets` must be given without `indices`"),
        ({"indices": None, "mask": "sliding"}, "`mask` must be null or causal, not 'sliding'"),
        ({"mask": "causal"}, "`mask` must be null with `indices`"),
        ({"num_partitions": 0}, "`num_partitions` must be at least 1, not 0"),
        ({"num_partitions": 257}, "partitions` must be"),
        ({"partition_keys": 100}, "`partition_keys` must be a multiple of 128, not 100"),
        ({"num_partitions": 10**12}, "`num_partitions` must be 1 to 256, not 1000000000000"),
        ({"freqs": None}, "`freqs` must be given, to rotate new rows"),
        ({"q": None}, "`q` must be given"),
        ({"new_kv": None}, "`new_kv` must be given"),
        ({"w_uk": None, "w_uk_scale": None}, "`w_uk` must be given"),
    ],
)
def test_settings_refused(bench, changes, message):
    """So is what contradicts itself."""
    with pytest.raises(ProblemError, match=message):
        bench.run(**changes)
    assert bench.cuda.launches == []


OVER = {
    "the workspace over weights": ("workspace", "w_uv", "`workspace` overlaps `w_uv`"),
    "the attended over an earlier step's": ("workspace", "freqs", "`workspace` overlaps `freqs`"),
    "lse over out": ("lse", "out", "`(lse` overlaps `out|out` overlaps `lse)`"),
    "lse over a scale of the last step": ("lse", "w_uv_scale", "`lse` overlaps `w_uv_scale`"),
    "out over the norm": ("out", "gamma", "`out` overlaps `gamma`"),
}


def over(bench, name):
    """Two arrays of a call that share memory, by name."""
    first, second, _ = OVER[name]
    memory = bench.array((400_000,), U8)
    given = bench.known(out=bench.array((T, H, 128), BF16), lse=bench.array((T, H), FP32))
    given["workspace"] = memory
    at = memory.pointer + (40_000 if second == "freqs" else 0)  # after what its own step writes
    return {
        first: replace(given[first], pointer=memory.pointer),
        second: replace(given[second], pointer=at),
    }


@pytest.mark.parametrize("name", OVER)
def test_memory_of_two_steps(bench, name):
    """What one step writes is nothing that another one knows by another word."""
    with pytest.raises(ProblemError, match=OVER[name][2]):
        bench.run(**over(bench, name))
    assert bench.cuda.launches == []


def test_a_second_source_in_the_cache(bench):
    """Keys of both sources may lie in one cache, new rows among them."""
    given = bench.known()
    extra = {"extra_kv": given["kv"], "extra_indices": given["indices"]}
    assert ops.mla_decode_fp8(**given, **extra).shape == (T, H, 128)


def test_a_read_only_workspace(bench):
    """It is named as the caller named it."""
    room = replace(bench.array((400_000,), U8), is_read_only=True)
    with pytest.raises(ProblemError, match="`workspace` is read-only"):
        bench.run(workspace=room)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("another table", "`table` was prepared with shape"),
        ("out over weights", "`out` overlaps `w_uk`"),
    ],
)
def test_a_refused_rebind_changes_no_step(bench, name, message):
    """A cache that is good for one step stays out of it where another argument is refused."""
    given = bench.known()
    prepared = ops.mla_decode_fp8.prepare(**given)
    w_uk = given["w_uk"]
    fresh = {
        "another table": {"table": bench.array((3, 3), I32)},
        "out over weights": {
            "out": DeviceArray(pointer=w_uk.pointer, shape=(T, H, 128), dtype=BF16)
        },
    }[name]
    with pytest.raises(ProblemError, match=message):
        prepared.rebind(kv=bench.array((BLOCKS, PAGE, 656), U8), **fresh)
    prepared()
    old = given["kv"].blocks.pointer
    assert bench.told(STEPS[0], "kv_rows") == bench.told(STEPS[1], "kv") == old


def test_debug_of_keys(bench):
    """An entry that names no row is reported; past a `batch` all numbers may be anything."""
    entries = np.zeros((T, TOPK), np.int32)
    entries[3, 4] = PAGE * BLOCKS
    given = bench.known(indices=bench.upload(entries, I32))
    with pytest.raises(ProblemError, match=r"`indices\[3, 4\]` must be -1 to 95, not 96"):
        ops.mla_decode_fp8(**given, debug=True)
    ops.mla_decode_fp8(**given, batch=bench.upload(np.array([2], np.int32), I32), debug=True)
    assert len(bench.cuda.launches) == 3


def test_again(bench):
    """A step that looks like the last one is its launches, over whatever lies elsewhere."""
    given = {name: _placed(value) for name, value in bench.known(num_partitions=2).items()}
    room = bench.array((ops.mla_decode_fp8.workspace_bytes(T, H, 2),), U8)
    given |= {"out": _placed(bench.array((T, H, 128), BF16)), "workspace": _placed(room)}
    other = replace(given["workspace"], pointer=bench.array(room.shape, U8).pointer)
    encoded = []
    for workspace in (given["workspace"], other, given["workspace"]):
        assert ops.mla_decode_fp8(**{**given, "workspace": workspace}) is given["out"]
        encoded.append(bench.cuda.count("cuTensorMapEncodeTiled"))
    first, second, third = (bench.cuda.launches[i : i + 4] for i in (0, 4, 8))
    assert (first, encoded[0]) == (third, encoded[2])
    bench.library.repeats.known.clear()
    ops.mla_decode_fp8(**{**given, "workspace": other})
    assert bench.cuda.launches[12:] == second != first


def test_sides_in_a_list(bench):
    """No key is made of them, and the call goes the whole way."""
    given = {name: _placed(value) for name, value in bench.known().items()}
    given["q"] = replace(given["q"], shape=[*given["q"].shape])
    for _ in range(2):
        ops.mla_decode_fp8(**given)
    assert len(bench.cuda.launches) == 6


def test_a_workspace_that_begins_elsewhere_is_refused_again(bench):
    """The chain's own rule of where it begins is held at every call, not the kernels' alone."""
    given = {name: _placed(value) for name, value in bench.known(num_partitions=2).items()}
    size = ops.mla_decode_fp8.workspace_bytes(T, H, 2)
    room = replace(_placed(bench.array((size + 256,), U8)), shape=(size,))
    for _ in range(2):
        ops.mla_decode_fp8(**given, workspace=room)
    with pytest.raises(ProblemError, match="must begin at a multiple of 256 bytes"):
        ops.mla_decode_fp8(**given, workspace=replace(room, pointer=room.pointer + 128))


def _placed(value):
    """An array, or those of an operand, with the device said."""
    if isinstance(value, DeviceArray):
        return replace(value, device=0)
    if isinstance(value, kv.Paged):
        names = ("blocks", "table", "lengths")
        return replace(value, **{name: _placed(getattr(value, name)) for name in names})
    return value
