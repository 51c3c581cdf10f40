"""A call that looks like an earlier one costs little, and every check of the whole way still fires.

A GPU is pretended: what its driver was given is what is looked at. Arrays are raw ones;
`test_repeat_tensors` has those of frameworks.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from kernelpack.errors import (
    BundleError,
    CaptureError,
    KernelpackError,
    ProblemError,
)
from kernelpack.formats.dtype import DType
from kernelpack.kv import Paged
from kernelpack.ops import repeat
from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.facts import Facts
from tests.ops.bench import PARAMETERS, K, M, N
from tests.ops.repeating import NAMES, Placed, calls_of


@pytest.fixture
def bench(tmp_path):
    return Placed(tmp_path)


def test_few_python_calls(bench):
    """A call again, with other arrays or the same, enters few functions; the first one hundreds."""
    other = bench.other("a")
    again, moved = calls_of(bench), calls_of(lambda: bench(a=other))
    bench.known.clear()
    assert len(again) <= 40
    assert len(moved) <= 45
    assert len(calls_of(bench)) > 200


def test_the_driver_is_told_the_same(bench):
    """A launch again is the launch of before."""
    assert bench() is bench.c
    assert bench.cuda.launches[1] == bench.cuda.launches[0]


@pytest.mark.parametrize("name", NAMES)
def test_an_array_elsewhere(bench, name):
    """Its parameter alone is another one, a tensor map as well as a pointer; and back again."""
    other = bench.other(name)
    bench(**{"out" if name == "c" else name: other})
    bench()
    first, second, third = bench.cuda.launches
    differ = [
        i for i, pair in enumerate(zip(first.parameters, second.parameters, strict=True))
        if pair[0] != pair[1]
    ]  # fmt: skip
    assert differ == [PARAMETERS.index("a_map" if name == "a" else name)]
    assert third == first
    bench.known.clear()
    bench(**{"out" if name == "c" else name: other})
    assert bench.cuda.launches[3].parameters == second.parameters


def test_nothing_is_encoded_again(bench):
    """A tensor map takes another address without the driver's encoder."""
    before = bench.cuda.count("cuTensorMapEncodeTiled")
    for _ in range(3):
        bench(a=bench.other("a"))
    assert bench.cuda.count("cuTensorMapEncodeTiled") == before


CHANGES = {
    "shape": (lambda b: {"a": replace(b.a, shape=(M + 2, K - 8))}, "`b` must have a's k"),
    "rank": (lambda b: {"a": replace(b.a, shape=(1, M, K))}, "`a` must have the shape"),
    "stride": (lambda b: {"a": replace(b.a, strides=(K + 8, 1))}, "`a` must be row-major"),
    "type": (lambda b: {"b": replace(b.b, dtype=DType.FP16)}, "`b` must be bf16"),
    "device": (lambda b: {"b": replace(b.b, device=1)}, "`b` is on device 1"),
    "alignment": (lambda b: {"b": replace(b.b, pointer=b.b.pointer + 8)}, "`b`: must be aligned"),
    "map": (lambda b: {"a": replace(b.a, pointer=b.a.pointer + 8)}, "`a`: must be aligned"),
    "freed": (lambda b: {"a": replace(b.a, pointer=0)}, "`a` has .* at 0x0, no address"),
    "too far": (lambda b: {"a": replace(b.a, pointer=b.a.pointer + (1 << 64))}, "no address"),
    "below": (lambda b: {"a": replace(b.a, pointer=b.a.pointer - (1 << 64))}, "no address"),
    "read-only": (lambda b: {"out": replace(b.c, is_read_only=True)}, "`out` is read-only"),
    "overlap": (lambda b: {"out": replace(b.c, pointer=b.b.pointer)}, "`out` overlaps `b`"),
    "partly": (lambda b: {"out": replace(b.c, pointer=b.b.pointer + 256)}, "`out` overlaps `b`"),
    "number": (lambda b: {"m": M + 3}, "must have at least m, 13"),
    "type of a number": (lambda b: {"m": True}, "`m` must be an integer"),
    "stream": (lambda b: {"stream": b.cuda.new_stream(1)}, "belongs to device 1"),
    "no stream": (lambda b: {"stream": "s"}, "`stream` is a str"),
    "library": (lambda b: {"library": "x.kpk"}, "`library` is a str"),
    "debug": (lambda b: {"debug": True, "expert_ids": b.wrong}, "`expert_ids` must be -1 to 3"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_every_check_fires(bench, what):
    """One thing changed after a warm call is refused as in a first one; nothing is launched."""
    changes, message = CHANGES[what]
    bench.wrong = replace(bench.values([9, -1, 0], DType.I32), device=0)
    given = changes(bench)
    warm = []
    for again in (True, False):
        if not again:
            bench.known.clear()
        with pytest.raises(KernelpackError, match=message) as caught:
            bench(**given)
        warm.append(str(caught.value))
    assert warm[0] == warm[1]
    assert len(bench.cuda.launches) == 1


def test_a_stream_of_the_device(bench):
    """A launch goes to the stream of its call."""
    stream = bench.cuda.new_stream()
    bench(stream=stream)
    bench()
    assert [launch.stream for launch in bench.cuda.launches] == [0, stream, 0]


def test_a_stream_that_became_anothers(bench):
    """A handle may come back for a stream of another device: whose it is, is asked each time."""
    stream = bench.cuda.new_stream()
    bench(stream=stream)
    bench.cuda.streams[stream].device = 1
    with pytest.raises(ProblemError, match="belongs to device 1"):
        bench(stream=stream)


def test_capture(bench):
    """A launch is captured; a new output is refused while a stream is."""
    bench(out=None)
    stream = bench.cuda.new_stream(capturing=True)
    bench(stream=stream)
    assert bench.cuda.launches[-1].captured
    with pytest.raises(CaptureError):
        bench(out=None, stream=stream)


def test_new_outputs(bench):
    """Each call makes its own, which the driver takes more calls for than for a launch."""
    first, second = bench(out=None), bench(out=None)
    assert first.memory.address != second.memory.address
    assert bench.parameter("c") == second.memory.address
    again = len(calls_of(lambda: bench(out=None)))
    bench.known.clear()
    assert again * 5 < len(calls_of(lambda: bench(out=None)))


def test_another_library(bench, tmp_path):
    """Each library launches its own kernels."""
    (tmp_path / "other").mkdir()
    other = Placed(tmp_path / "other")
    bench(library=other.library)
    assert (len(bench.cuda.launches), len(other.cuda.launches)) == (1, 2)


def test_unloaded(bench):
    """After `unload` a call is refused as before."""
    bench.library.unload()
    with pytest.raises(BundleError, match="the library is closed"):
        bench()


def test_a_call_amid_another(bench, monkeypatch):
    """A finalizer that calls between addresses and launch does not move the launch."""
    start, other = repeat.Repeat.start, bench.other("b")

    def amid(*given):
        monkeypatch.setattr(repeat.Repeat, "start", start)
        bench(b=other)
        return start(*given)

    monkeypatch.setattr(repeat.Repeat, "start", amid)
    for _ in range(2):
        bench()
    assert [bench.parameter("b", i) for i in (1, 2, 3)] == [other.pointer, *[bench.b.pointer] * 2]


def test_one_array_given_twice(bench):
    """Arrays that were one and are two, or were two and are one, are each where they are."""
    one, other = (replace(bench.values([0, M], DType.I32), device=0) for _ in range(2))
    ids = replace(bench.values([0], DType.I32), device=0)
    seen = []
    for offsets, more in ((one, one), (one, other), (other, other)):
        bench(a_offsets=offsets, expert_ids=replace(ids, pointer=more.pointer))
        seen.append((bench.parameter("a_offsets"), bench.parameter("expert_ids")))
    assert seen == [(a.pointer, b.pointer) for a, b in ((one, one), (one, other), (other, other))]


def test_a_failing_driver(bench):
    """Where the driver cannot move a map, the call goes the whole way, then and later."""
    bench.cuda.answers["cuTensorMapReplaceAddress"] = 1
    other = bench.other("a")
    for array in (other, bench.a, other):
        bench(a=array)
    assert bench.cuda.launches[-1].parameters[0] == bench.cuda.launches[1].parameters[0]
    assert bench.cuda.launches[2] == bench.cuda.launches[0]


def test_bounded(bench, monkeypatch):
    """The oldest goes first."""
    monkeypatch.setattr(repeat, "KEPT", 2)
    for m in (1, 2, 3):
        bench(m=m, out=None)
    assert len(bench.known) == 2


def test_no_name_of_a_kernel(bench):
    with pytest.raises(ProblemError, match="kernel"):
        bench.library.call(["lora_shrink_qkv"])


def test_threads(bench):
    """Threads with calls of mixed sizes each get what they asked for."""
    sizes = [1 + i % M for i in range(8)]
    outs = [replace(bench.array((3, m, N), DType.BF16), device=0) for m in sizes]

    def work(i):
        for _ in range(50):
            bench(m=sizes[i], out=outs[i])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    place = {name: PARAMETERS.index(name) for name in ("c", "m")}
    seen = {(x.number(place["c"]), x.number(place["m"])) for x in bench.cuda.launches[1:]}
    assert seen == {(out.pointer, m) for out, m in zip(outs, sizes, strict=True)}
    assert len(bench.cuda.launches) == 401


def test_operands_are_read_through():
    """An operand's arrays are the caller's, and its numbers count."""
    blocks, lengths = (
        DeviceArray(pointer=p, shape=(2,), dtype=DType.I32, device=0) for p in (256, 512)
    )
    keys = []
    for layer in (None, 1):
        facts = Facts([])
        assert facts.read([Paged(blocks, lengths=lengths, layer=layer)])
        assert facts.pointers == [512, 256]
        keys.append(facts.key)
    assert keys[0] != keys[1]


@pytest.mark.parametrize(("first", "second"), [(0.0, -0.0), (1, 1.0), (1, True), (None, False)])
def test_numbers_are_told_apart(first, second):
    """Equal numbers are not the same call."""
    keys = []
    for value in (first, second):
        facts = Facts([])
        assert facts.read([value])
        keys.append(tuple(facts.key))
    assert keys[0] != keys[1]
