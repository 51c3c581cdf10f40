"""The mbarrier object: phase, pending arrivals and pending transactions, as a value.

Every operation takes a State and returns the next one. A phase completes when pending arrivals and
tx-count are both zero; then pending becomes the expected count again and the phase number grows.
Source: PTX ISA 9.1, 9.7.13.15.
"""

from dataclasses import dataclass, replace

from kernelpack.emulator import rules
from kernelpack.emulator.models.fault import require

LIMIT = (1 << 20) - 1
"""The largest arrival count, and the largest magnitude of the tx-count (9.7.13.15.2)."""
BYTES = 8


@dataclass(frozen=True, slots=True)
class State:
    """An mbarrier between two operations; `phase` counts the phases that completed."""

    expected: int
    pending: int
    tx: int = 0
    phase: int = 0

    @property
    def parity(self) -> int:
        """Parity of the phase that is not complete yet."""
        return self.phase & 1

    @property
    def begun(self) -> bool:
        """Whether anything of the phase has come: arrivals, bytes, or what says how many."""
        return self.tx != 0 or self.pending != self.expected

    def __str__(self) -> str:
        return (
            f"phase {self.phase}, {self.pending} of {self.expected} arrivals pending, tx {self.tx}"
        )


def init(count: int) -> State:
    """`mbarrier.init`: phase 0, `count` arrivals expected and pending."""
    require(
        1 <= count <= LIMIT,
        rules.MBARRIER_COUNT,
        f"mbarrier initialised with a count of {count}; it must be 1 to {LIMIT}",
    )
    return State(count, count)


def arrive(state: State, count: int = 1, *, no_complete: bool = False) -> State:
    """`mbarrier.arrive`; with `no_complete` it is a fault that the arrival ends the phase."""
    _check_count(state, count)
    arrived = _settle(State(state.expected, state.pending - count, state.tx, state.phase))
    require(
        not (no_complete and arrived.phase != state.phase),
        rules.MBARRIER_NO_COMPLETE,
        "mbarrier.arrive.noComplete completed the phase",
    )
    return arrived


def arrive_drop(state: State, count: int = 1) -> State:
    """`mbarrier.arrive_drop`: arrive, and expect `count` fewer in every later phase."""
    _check_count(state, count)
    expected = state.expected - count
    return _settle(State(expected, state.pending - count, state.tx, state.phase))


def expect_tx(state: State, units: int) -> State:
    """`mbarrier.expect_tx`: the current phase waits for `units` more transactions."""
    return _with_tx(state, state.tx + units)


def complete_tx(state: State, units: int) -> State:
    """`mbarrier.complete_tx`, and what TMA does at its end; may come before its expect_tx."""
    return _settle(_with_tx(state, state.tx - units))


def arrive_expect_tx(state: State, units: int, count: int = 1) -> State:
    """`mbarrier.arrive.expect_tx`: expect, then arrive."""
    return arrive(expect_tx(state, units), count)


def arrive_drop_expect_tx(state: State, units: int, count: int = 1) -> State:
    """`mbarrier.arrive_drop.expect_tx`: expect, then arrive and drop."""
    return arrive_drop(expect_tx(state, units), count)


def begin_async(state: State) -> State:
    """`cp.async.mbarrier.arrive` without `.noinc`: one arrival more is pending now.

    The arrival itself comes when the copies end, so the pair leaves the count as it was.
    """
    require(
        state.pending < LIMIT,
        rules.MBARRIER_COUNT_RAISED,
        "cp.async.mbarrier.arrive raised the pending count beyond its range",
    )
    return replace(state, pending=state.pending + 1)


def token(state: State) -> int:
    """The opaque 64-bit state that an arrive returns, taken before that arrive."""
    return state.phase << 20 | state.pending


def pending_count(state_token: int) -> int:
    """`mbarrier.pending_count`: arrivals that were pending when the token was made."""
    return state_token & LIMIT


def token_passed(state: State, state_token: int) -> bool:
    """`test_wait`/`try_wait` with a token: whether the token's phase is complete."""
    return state.phase > state_token >> 20


def parity_passed(state: State, parity: int) -> bool:
    """`test_wait.parity`/`try_wait.parity`: whether the phase of that parity is complete.

    The barrier knows only the current phase and the one before, so a waiter that is two phases
    late has to wait again.
    """
    return state.parity != parity & 1


def _settle(state: State) -> State:
    """Complete the phase if nothing is pending."""
    if state.pending == 0 and state.tx == 0:
        return State(state.expected, state.expected, 0, state.phase + 1)
    return state


def _check_count(state: State, count: int) -> None:
    require(
        1 <= count <= state.pending,
        rules.MBARRIER_COUNT,
        f"{count} arrivals at an mbarrier that has {state.pending} of {state.expected} pending",
    )


def _with_tx(state: State, tx: int) -> State:
    require(
        abs(tx) <= LIMIT,
        rules.MBARRIER_TX_COUNT,
        f"the tx-count became {tx}; it must stay within +-{LIMIT}",
    )
    return State(state.expected, state.pending, tx, state.phase)
