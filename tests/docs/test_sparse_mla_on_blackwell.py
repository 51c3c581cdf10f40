"""The page about sparse MLA on Blackwell is what its script writes, and its model is calibrated."""

from dataclasses import replace

import pytest

from benchmarks.model import sparse_mla_on_blackwell as script
from benchmarks.model.sparse_mla import (
    FLASHMLA,
    FORMS,
    Machine,
    calibrated,
    cycles,
    measured_cycles,
    mma,
)


def test_page_is_written_by_its_script():
    """Nobody edits the page by hand."""
    assert script.page() == script.PAGE.read_text()


@pytest.mark.parametrize("rate", script.RATES)
def test_model_is_calibrated(rate):
    """FlashMLA's form takes its measured time at each of the page's rates."""
    machine = calibrated(rate)
    assert machine
    assert measured_cycles(machine) == pytest.approx(cycles(FLASHMLA, machine), rel=2e-3)


def test_slow_gathers_are_ruled_out():
    """Rows that come at 40 bytes a cycle would have taken longer than what was measured."""
    assert calibrated(40) is None


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_no_engine_is_overtaken(form):
    """A block takes at least as long as its longest engine."""
    machine = Machine(gather=56, latency=1000)
    least = max(form.tensor, form.gathered / machine.gather)
    assert cycles(form, machine) >= least * (1 - 1e-9)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_later_bytes_are_no_gain(form):
    """Twice the latency takes no less time."""
    assert cycles(form, Machine(gather=56, latency=2000)) >= cycles(
        form, Machine(gather=56, latency=1000)
    )


def test_two_threads_that_multiply_are_a_gain():
    """64 heads of bf16_576 take a quarter longer where one thread has a fixed order."""
    machine, form = Machine(gather=56, latency=1200), FORMS[2]
    assert cycles(replace(form, in_order=True), machine) > 1.25 * cycles(form, machine)


@pytest.mark.parametrize(
    ("of_a", "of_b", "expected"), [(0, 2048, 32), (2048, 2048, 32), (2048, 6144, 64)]
)
def test_mma_multiplies_or_reads(of_a, of_b, expected):
    """The longer of the two counts."""
    assert expected == mma(rows=128, columns=64, of_a=of_a, of_b=of_b, k=16)
