"""One run on a GPU that is pretended: what is right, and each rule that may be broken."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from kernelpack.device.prove import INPUT, OUTSIDE, REPEATS, prove
from kernelpack.load.load import load
from kernelpack.ops.trial import Trial
from kernelpack.runtime.driver import Driver
from kernelpack.spec.params import Access
from kernelpack.verify.job import Job
from kernelpack.verify.outcome import State
from tests.device import twice
from tests.verify import small

CASE = small.CASES[1]


def outcome(bundle, spoil=None, repeats=3):
    library = load(bundle, driver=Driver(twice.Twice(spoil)))
    trial = Trial(library, small.DEFINITION, CASE)
    variant = small.variant()
    job = Job(variant_id=variant.id, kernel="twice", case=CASE, sm_count=148, schedule="hardware")
    return prove(job, trial, library.bundle.variants()[0], repeats, nullcontext())


def test_right(bundle):
    """Right numbers, nothing else written, the same bits: right; the launch is reported."""
    found = outcome(bundle)
    assert (found.state, found.words, found.ctas) == (State.RIGHT, "", 2)


def test_wrong(bundle):
    """A wrong number is wrong, and is shown with what was expected."""
    found = outcome(bundle, twice.wrong)
    assert found.state is State.WRONG
    assert "y: 1 of 40 wrong, first [39] = 7, expected" in found.words


@pytest.mark.parametrize(
    ("spoil", "rule", "words"),
    [
        (twice.before, OUTSIDE, "memory around `y` was written"),
        (twice.after, OUTSIDE, "memory around `y` was written"),
        (twice.into_input, INPUT, "input `x`, or memory around it, was written"),
        (twice.around_input, INPUT, "input `x`, or memory around it, was written"),
        (
            twice.other_bits,
            REPEATS,
            "run 2 gave other bits of `y` than the first: 38 elements, the first at [2]",
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_broken(bundle, spoil, rule, words):
    """The numbers of the first run are right, and a rule is broken."""
    found = outcome(bundle, spoil)
    assert (found.state, found.broken[0].rule, found.broken[0].text) == (State.FOUND, rule, words)


def test_one_run_says_nothing_of_repeats(bundle):
    """Bits that change from run to run need a second run to be seen."""
    assert outcome(bundle, twice.other_bits, repeats=1).state is State.RIGHT


def test_every_run_begins_unwritten(bundle):
    """A run that writes nothing does not inherit what the one before it wrote."""

    def only_once(cuda, y, _x, n):
        if len(cuda.launches) > 1:
            twice.ctypes.memset(y, 0xFF, 4 * n)

    assert outcome(bundle, only_once).broken[0].rule == REPEATS


def test_an_array_that_is_read_and_written(tmp_path):
    """It holds its input when a run begins, between bands; what is only written does not."""
    made = small.variant()
    y, x = made.arguments
    both = replace(made, arguments=(replace(y, access=Access.READ_WRITE), x))
    path = small.written(tmp_path / "rw.kpk", [(both, small.ptx())])
    given = np.arange(CASE.n, dtype=np.float32)
    definition = replace(
        small.DEFINITION, inputs=lambda case: {**small.inputs(case), "y": given.copy()}
    )
    seen = []
    cuda = twice.Twice()
    launch = cuda._launch

    def read_first(config, handle, parameters, extra):
        addresses = cuda._parameters(both.entry, parameters)
        seen.append(twice.floats(int.from_bytes(addresses[0], "little"), CASE.n).copy())
        return launch(config, handle, parameters, extra)

    cuda._launch = read_first
    cuda.__post_init__()
    trial = Trial(load(path, driver=Driver(cuda)), definition, CASE)
    job = Job(variant_id=both.id, kernel="twice", case=CASE, sm_count=148, schedule="hardware")
    found = prove(job, trial, both, 3, nullcontext())
    assert (found.state, found.words) == (State.RIGHT, "")
    assert all((y == given).all() for y in seen)
