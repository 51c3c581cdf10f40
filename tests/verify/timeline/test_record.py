"""One launch: selected, run, recorded."""

import pytest

from kernelpack.bundle.reader import open_bundle
from kernelpack.errors import KernelpackError, SelectionError
from kernelpack.verify.timeline.problem import known
from kernelpack.verify.timeline.record import Wish, record
from tests.verify import small


def wish(**changes):
    return Wish(**{"problem": known(small.DEFINITION, small.CASES[1]), **changes})


def test_the_selected_variant_runs(bundle):
    """40 elements are two blocks of one warp each; every step of the run is in the chart."""
    recording = record(open_bundle(bundle), wish())
    assert recording.result.clean
    assert recording.chart.steps == recording.result.steps
    assert recording.chart.ctas == ((0, 0, 0), (1, 0, 0))


def test_a_choice_narrows_selection(bundle):
    """The variant is one of those that `keep` keeps."""
    ids = sorted(record(open_bundle(bundle), wish(keep=f"tile={t}")).variant.id for t in (32, 64))
    assert ids == ["twice[arch=sm_100a,tile=32]", "twice[arch=sm_100a,tile=64]"]


def test_nothing_kept(bundle):
    """A choice of nothing is refused by its words."""
    with pytest.raises(KernelpackError, match="no id holds `tile=7`"):
        record(open_bundle(bundle), wish(keep="tile=7"))


def test_a_problem_that_no_variant_serves(bundle):
    """Selection says why each one lost."""
    with pytest.raises(SelectionError) as raised:
        record(open_bundle(bundle), wish(problem=known(small.DEFINITION, small.CASES[-1])))
    assert "n is too large" in raised.value.hint
