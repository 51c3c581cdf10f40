"""Tuning on a GPU that is pretended: what is measured, kept, and chosen afterwards."""

import json
from functools import partial

import pytest

from kernelpack.device.timing import Effort
from kernelpack.device.tune import Tuner
from kernelpack.errors import BundleError, ProblemError, SelectionError
from kernelpack.load.load import load
from kernelpack.load.overlay import read_overlay
from kernelpack.runtime.driver import Driver
from tests.device.clocked import Clocked
from tests.verify import small

FAST, SLOW = (small.variant(tile).id for tile in (64, 32))


def cost(entry, n):
    """Tile 64, which selection never takes, is the faster one for many elements."""
    return 8.0 if entry == "twice_32" else (4.0 if n > 100 else 10.0)


@pytest.fixture
def tuner(bundle, tmp_path):
    """Tune the small kernel; `made` are changes of the GPU."""

    def make(**made):
        return Tuner(
            library=load(bundle, driver=Driver(Clocked(cost, **made))),
            definition=small.DEFINITION,
            device=0,
            output=tmp_path / "tuned.json",
            effort=Effort(rounds=1, replays=1),
        )

    return make


@pytest.fixture
def tuned(tuner):
    return lambda *ns, **made: list(tuner(**made).tune(list(map(small.case_of, ns))))


def test_measured(tuned):
    """Every variant that may serve is timed; the fastest and the manifest's choice are reported."""
    few, many = tuned(40, 500)
    assert (few.usual, few.variant_id, few.gain) == (SLOW, SLOW, pytest.approx(1))
    assert (many.usual, many.variant_id, many.gain) == (SLOW, FAST, pytest.approx(2))
    assert many.times == pytest.approx({SLOW: 8.0, FAST: 4.0})


def test_chosen_afterwards(tuned, tuner, bundle):
    """With the overlay, what was fastest is chosen: there, between, and nowhere else."""
    tuned(40, 50, 300, 400)
    library = load(bundle, driver=Driver(Clocked(cost)), tuned=tuner().output)
    chosen = partial(library.select, "twice", device=0, abis=range(1, 2))
    found = {n: chosen(sizes={"n": n}).id for n in (40, 45, 50, 200, 300, 350, 400, 500)}
    assert found == {
        **dict.fromkeys((40, 45, 50, 200), SLOW),
        **dict.fromkeys((300, 350, 400), FAST),
        500: SLOW,
    }


def test_not_measured_again(tuned):
    """A second tuning measures what is new, and reports the known times."""
    tuned(500)
    known, new = tuned(500, 64)
    assert (known.is_new, new.is_new) == (False, True)
    assert known.times == pytest.approx({SLOW: 8.0, FAST: 4.0})


def test_written_after_each(tuner):
    """What was measured before an interruption is in the overlay."""
    work = tuner()
    running = work.tune([small.case_of(n) for n in (40, 64, 500)])
    next(running)
    running.close()
    (kernel,) = read_overlay(work.output).kernels
    assert [problem.sizes for problem in kernel.problems] == [{"n": 40}]


def test_of_another_driver(tuned):
    """An overlay of another driver is not added to."""
    tuned(40)
    with pytest.raises(BundleError, match=r"was measured on NVIDIA B200 .*, driver of CUDA 13.0"):
        tuned(500, version=13_010)


def test_of_other_machine_code(tuned, tuner):
    """Nor one of other machine code."""
    tuned(40)
    path = tuner().output
    whole = json.loads(path.read_text())
    whole["kernels"][0]["variants"][0]["image"] = "00"
    path.write_text(json.dumps(whole))
    with pytest.raises(BundleError, match="is stale"):
        tuned(500)


def test_served_by_none(tuned, tuner):
    """A problem that nobody serves is refused before anything is measured."""
    with pytest.raises(SelectionError, match="n is too large"):
        tuned(40, 2000)
    assert not tuner().output.exists()


def test_a_fixed_choice(tuner):
    """`choose_for` asks for one choice whatever the batch is; times are those of a batch."""

    class Fixed(small.Case):
        sizes = property(lambda self: {"n": self.n, "choose_for": 7})

    with pytest.raises(ProblemError, match="`choose_for` asks for one choice"):
        list(tuner().tune([Fixed(name="f", n=40)]))


def test_the_luckiest_is_measured_again(tuner):
    """A variant that looked faster once, and is not, is not chosen."""
    work = tuner()
    cuda = work.library.driver.api
    launch = cuda.on_cuGraphLaunch

    def lucky(graph, stream):
        launch(graph, stream)
        if len(cuda.replays) == 4:  # of tile 64, after a replay of each that warms
            cuda.now -= 0.5 * cuda.recorded[int(graph)]

    cuda.on_cuGraphLaunch = lucky
    (found,) = work.tune([small.case_of(40)])
    assert found.times == pytest.approx({SLOW: 8.0, FAST: 10.0})
