"""Times on a GPU that is pretended: what a graph holds, turns, medians, the copy rate."""

import pytest

from kernelpack.device import timing
from kernelpack.device.rotate import Sets, sets_of
from kernelpack.device.timing import Effort, copy_rate, take_turns
from kernelpack.errors import DeviceMemoryError
from kernelpack.load.load import load
from kernelpack.runtime.driver import Driver
from tests.device.clocked import COPY_RATE, Clocked, by_entry
from tests.device.twice import floats
from tests.verify import small

CASE = small.CASES[1]


@pytest.fixture
def gpu(bundle):
    """The bundle on a GPU where the variant of tile 32 takes 7 microseconds, the other 3."""
    cuda = Clocked(by_entry(twice_32=7.0, twice_64=3.0))
    return cuda, load(bundle, driver=Driver(cuda))


def rivals(library, count=4):
    """A launch of both variants on each of some sets of arrays."""
    variants = library.bundle.variants()
    sets = Sets(library, CASE, small.inputs(CASE), variants, 0)
    pick = sets.addresses[:count]
    library.held = sets  # as long as launches may write there
    return {v.entry: [library.pack(v, CASE.sizes, each, 0) for each in pick] for v in variants}


def test_times(gpu):
    """The time of a launch is the graph's over its launches; nothing spreads here."""
    _, library = gpu
    found = take_turns(library, 0, rivals(library), Effort(rounds=2, replays=3))
    assert (found["twice_32"].median, found["twice_64"].median) == pytest.approx((7.0, 3.0))
    assert found["twice_32"].spread == pytest.approx(0)


def test_turns(gpu):
    """Rivals are replayed in turns, after one replay of each that warms."""
    cuda, library = gpu
    take_turns(library, 0, rivals(library), Effort(rounds=2, replays=2))
    a, b = dict.fromkeys(cuda.replays)
    assert cuda.replays == [a, b, a, a, b, b, a, a, b, b]


def test_spread(bundle):
    """Low and high are those of a tenth of the replays."""
    cuda = Clocked(by_entry(twice_32=10.0, twice_64=1.0))
    library = load(bundle, driver=Driver(cuda))
    slower = iter([1, *range(10, 21)])
    launch = cuda.on_cuGraphLaunch

    def late(graph, stream):
        launch(graph, stream)
        cuda.now += cuda.recorded[int(graph)] * next(slower) / 10

    cuda.on_cuGraphLaunch = late
    mine = {"twice_32": rivals(library)["twice_32"]}
    time = take_turns(library, 0, mine, Effort(rounds=1, replays=11))["twice_32"]
    assert (time.low, time.median, time.high) == pytest.approx((21.0, 25.0, 29.0))


@pytest.mark.parametrize(("cost", "calls"), [(3.0, 60), (1000.0, 20), (50_000.0, 4)])
def test_calls(bundle, cost, calls):
    """A graph has sixty launches, fewer of a slow kernel, and each set as often as any other."""
    cuda = Clocked(by_entry(twice_32=cost, twice_64=cost))
    library = load(bundle, driver=Driver(cuda))
    found = take_turns(library, 0, rivals(library), Effort(rounds=1, replays=1))
    assert {time.calls for time in found.values()} == {calls}


def test_graphs_are_destroyed(gpu):
    """Nothing is left of a measurement on the device."""
    cuda, library = gpu
    take_turns(library, 0, rivals(library), Effort(rounds=1, replays=1))
    assert cuda.count("cuGraphExecDestroy") == 2
    assert cuda.streams == {}


def test_copy_rate(gpu, monkeypatch):
    """Bytes read and bytes written both count."""
    monkeypatch.setattr(timing, "COPIED_BYTES", (1 << 12, 1 << 14))
    assert copy_rate(gpu[1], 0) == pytest.approx(COPY_RATE)


@pytest.mark.parametrize(
    ("call", "cache", "sets"),
    [(1000, 10_000, 31), (100_000, 50_000, 3), (1 << 40, 50_000, 2), (1, 50_000, 64)],
)
def test_sets_of(call, cache, sets):
    """The others of a set are three times what the cache holds; two at least, 64 at most."""
    assert sets_of(call, cache) == sets


def test_sets(gpu):
    """Every set has the inputs, and room for the outputs, at addresses of its own."""
    _, library = gpu
    sets = Sets(library, CASE, small.inputs(CASE), library.bundle.variants(), 0)
    assert sets.bytes == 2 * 4 * CASE.n
    assert len({each["x"] for each in sets.addresses}) == len(sets.addresses) == 64
    x = small.inputs(CASE)["x"]
    assert all((floats(each["x"], CASE.n) == x).all() for each in sets.addresses)


@pytest.mark.parametrize(("room", "sets"), [(7, 3), (2, 1)])
def test_as_many_sets_as_there_is_room_for(gpu, room, sets):
    """A full device has fewer sets."""
    cuda, library = gpu
    allocate, left = cuda.on_cuMemAlloc, iter(range(room))
    cuda.on_cuMemAlloc = lambda size: (2, None) if next(left, None) is None else allocate(size)
    found = Sets(library, CASE, small.inputs(CASE), library.bundle.variants(), 0)
    assert len(found.addresses) == sets


def test_no_room(gpu):
    """A device with no room for one set is an error."""
    cuda, library = gpu
    cuda.answers["cuMemAlloc"] = 2
    with pytest.raises(DeviceMemoryError):
        Sets(library, CASE, small.inputs(CASE), library.bundle.variants(), 0)
