"""Work on a GPU that is pretended, in a process of its own that one of its kernels ends."""

from functools import partial

import pytest

from kernelpack.device import bench, timing, tune
from kernelpack.device.apart import apart, nowhere, surviving
from kernelpack.device.timing import Effort
from kernelpack.errors import DriverError, SelectionError
from kernelpack.kernels.registry import KERNELS
from kernelpack.runtime.driver import Driver
from tests.device import twice
from tests.device.clocked import Clocked, by_entry
from tests.verify import small

FAST, SLOW = (small.variant(tile).id for tile in (64, 32))


def here(work, without, _limit_s):
    """The simple runner: in this process."""
    return work(nowhere, without)


class Broken(Clocked):
    """A GPU whose times a test sets, and a kernel that ends the process."""

    def __init__(self, spoil, tile):
        super().__init__(by_entry(twice_32=8.0, twice_64=4.0))
        self.spoil = twice.by_tile(tile, spoil)


def connect(spoil, tile):
    """What a child connects to."""
    KERNELS.setdefault("twice", small.DEFINITION)
    timing.COPIED_BYTES = (1 << 12,)
    return Driver(Broken(spoil, tile))


@pytest.fixture
def tuned(bundle, tmp_path):
    """Tune two problems in a child, whose kernel of a tile is spoilt; what came, what was lost."""

    def run(spoil, tile=32, limit_s=20.0):
        asked = tune.Asked(
            bundle=bundle,
            kernel="twice",
            kernels=(),
            cases=tuple(map(small.case_of, (40, 500))),
            device=0,
            output=tmp_path / "tuned.json",
        )
        lost = []
        work = partial(tune.tune, asked, partial(connect, spoil, tile))
        return list(surviving(work, lost.append, apart, limit_s)), lost

    return run


SPOILT = {
    "fault": (twice.fault, "CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
    "die": (twice.die, "its process was killed by SIGABRT"),
    "hang": (twice.hang, "the GPU was not done with it after 2 seconds"),
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_kernel_is_lost(tuned, how):
    """It is named, and the others are measured on every problem, each once."""
    spoil, words = SPOILT[how]
    found, (lost,) = tuned(spoil, limit_s=2.0 if how == "hang" else 20.0)
    assert (lost.where, words in str(lost)) == (SLOW, True)
    assert [(one.case.n, list(one.times), one.gain) for one in found] == [
        (40, [FAST], 1),
        (500, [FAST], 1),
    ]


def test_none_is_lost(tuned):
    """A child finds what this process finds."""
    found, lost = tuned(twice.right)
    assert lost == []
    assert [one.variant_id for one in found] == [FAST, FAST]


def test_a_bench(bundle):
    """The variants that are left are timed; where none is, it is refused."""

    def timed(keep=""):
        asked = bench.Asked(
            bundle=bundle,
            against=None,
            tuned=None,
            kernel="twice",
            kernels=(),
            case=small.case_of(40),
            keep=keep,
            is_all=True,
            device=0,
            effort=Effort(rounds=1, replays=1),
        )
        work = partial(bench.bench_of, asked, partial(connect, twice.fault, 32))
        return list(surviving(work, lost.append, apart))

    lost = []
    (found,) = timed()
    assert [row.variant_id for row in found.rows] == [FAST]
    with pytest.raises(SelectionError, match="no variant is left to time"):
        timed(keep="tile=32")
    assert {error.where for error in lost} == {f"{bundle}: {SLOW}"}


def never(_at, _without):
    """Work that cannot be begun."""
    raise DriverError("no driver", where="here")
    yield


def test_what_is_no_kernels_fault():
    """It is raised as it is."""
    with pytest.raises(DriverError, match="here: no driver"):
        list(surviving(never, [].append, apart))


def bug(_at, _without):
    yield 1
    raise ZeroDivisionError


def test_a_bug_of_ours():
    """It is reported in full, after what came before."""
    found = surviving(bug, [].append, apart)
    assert next(found) == 1
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        next(found)
