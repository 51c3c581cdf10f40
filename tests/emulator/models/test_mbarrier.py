"""The mbarrier state machine, PTX ISA 9.1, 9.7.13.15."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelpack.emulator.models import mbarrier
from kernelpack.emulator.models.fault import UnitFault
from kernelpack.emulator.models.mbarrier import State


def test_init():
    """A fresh barrier is in phase 0 with everything pending."""
    assert mbarrier.init(3) == State(expected=3, pending=3, tx=0, phase=0)


def test_last_arrival_completes():
    """The phase ends with the last arrival, and the count starts again."""
    assert mbarrier.arrive(State(2, 1)) == State(2, 2, phase=1)


def test_transactions_hold_the_phase():
    """With bytes still expected the last arrival does not end the phase."""
    assert mbarrier.arrive(State(1, 1, tx=16)) == State(1, 0, tx=16)


def test_last_byte_completes():
    """The last transaction ends a phase whose arrivals are all in."""
    assert mbarrier.complete_tx(State(1, 0, tx=16), 16) == State(1, 1, phase=1)


def test_bytes_may_come_first():
    """complete_tx before expect_tx makes the count negative, and the phase waits."""
    early = mbarrier.complete_tx(mbarrier.init(1), 64)
    assert early.tx == -64
    assert mbarrier.arrive_expect_tx(early, 64) == State(1, 1, phase=1)


def test_expect_alone_does_not_arrive():
    """expect_tx leaves the arrivals pending."""
    assert mbarrier.expect_tx(mbarrier.init(2), 8) == State(2, 2, tx=8)


def test_arrive_drop_lowers_later_phases():
    """A dropped thread is not expected again."""
    assert mbarrier.arrive_drop(State(2, 1)) == State(1, 1, phase=1)


def test_arrive_drop_expect_tx():
    """The dropping arrival may expect bytes for its last phase."""
    assert mbarrier.arrive_drop_expect_tx(State(2, 1), 4) == State(1, 0, tx=4)


def test_async_arrival_without_noinc_is_neutral():
    """cp.async.mbarrier.arrive adds the arrival that its copies later make."""
    state = mbarrier.init(1)
    assert mbarrier.arrive(mbarrier.begin_async(state)) == state


@pytest.mark.parametrize(("phase", "parity", "passed"), [(0, 0, False), (0, 1, True), (1, 0, True)])
def test_parity(phase, parity, passed):
    """A wait on the parity of the running phase waits; on the other parity it passes."""
    assert passed == mbarrier.parity_passed(State(1, 1, phase=phase), parity)


def test_lapped_waiter_waits_again():
    """Two phases later the parity is the same as before: the waiter hangs."""
    assert not mbarrier.parity_passed(State(1, 1, phase=2), 0)


@pytest.mark.parametrize(("phase", "passed"), [(4, False), (5, True)])
def test_token(phase, passed):
    """A token stands for the phase in which it was made."""
    made = mbarrier.token(State(7, 3, phase=4))
    assert passed == mbarrier.token_passed(State(7, 7, phase=phase), made)


def test_pending_count_of_a_token():
    """A token remembers how many arrivals were pending before its own."""
    assert mbarrier.pending_count(mbarrier.token(State(7, 3, phase=4))) == 3


@pytest.mark.parametrize("count", [0, 1 << 20])
def test_init_range(count):
    """Counts are 1 to 2^20 - 1."""
    with pytest.raises(UnitFault, match="count of"):
        mbarrier.init(count)


@pytest.mark.parametrize("operation", [mbarrier.arrive, mbarrier.arrive_drop])
def test_too_many_arrivals(operation):
    """More arrivals than are pending are a fault."""
    with pytest.raises(UnitFault, match="2 arrivals"):
        operation(State(2, 1), 2)


def test_no_complete_must_not_complete():
    """arrive.noComplete that ends the phase is a fault."""
    with pytest.raises(UnitFault, match="noComplete"):
        mbarrier.arrive(State(1, 1), no_complete=True)


def test_no_complete_that_keeps_its_word():
    """arrive.noComplete is an arrive."""
    assert mbarrier.arrive(State(2, 2), no_complete=True) == State(2, 1)


def test_transaction_range():
    """The tx-count has 20 bits and a sign."""
    with pytest.raises(UnitFault, match="tx-count"):
        mbarrier.expect_tx(State(1, 1, tx=mbarrier.LIMIT), 1)


def test_pending_range():
    """cp.async.mbarrier.arrive cannot raise the count beyond its range."""
    with pytest.raises(UnitFault, match="beyond its range"):
        mbarrier.begin_async(State(mbarrier.LIMIT, mbarrier.LIMIT))


@given(st.integers(1, 8), st.lists(st.integers(1, 100), max_size=8), st.randoms())
def test_any_order_completes_exactly_one_phase(count, sizes, random):
    """Whatever the order of arrivals, expectations and bytes, one round is one phase."""
    steps = [mbarrier.arrive] * (count - 1)
    steps += [lambda s, n=n: mbarrier.complete_tx(s, n) for n in sizes]
    random.shuffle(steps)
    # The expectation comes with one arrival, as kernels do it: before that no phase can end.
    steps.insert(random.randint(0, len(steps)), lambda s: mbarrier.arrive_expect_tx(s, sum(sizes)))
    assert reduce(lambda s, step: step(s), steps, mbarrier.init(count)) == State(
        count, count, phase=1
    )
