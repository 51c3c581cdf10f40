"""Every variant of the bundle on the real device, on every case it serves: `verify --on gpu`."""

from contextlib import nullcontext

import pytest

from kernelpack.device.batch import SCHEDULE
from kernelpack.device.prove import prove
from kernelpack.verify.job import Job

pytestmark = pytest.mark.gpu


def outcome(trial, case, variant, repeats):
    sm_count = trial.library.device(trial.device).sm_count
    job = Job(
        variant_id=variant.id,
        kernel=variant.kernel,
        case=case,
        sm_count=sm_count,
        schedule=SCHEDULE,
    )
    return prove(job, trial, variant, repeats, nullcontext())


def test_variant_matches_the_oracle(trial_of, definition, case, variant):
    """Every element is within its bound, every row is written, nothing else is."""
    assert outcome(trial_of(definition.stem, case), case, variant, repeats=1).words == ""


def test_repeated_runs_are_bitwise_equal(trial_of, definition, case, variant):
    """A variant gives the same bits each time."""
    assert outcome(trial_of(definition.stem, case), case, variant, repeats=4).words == ""
