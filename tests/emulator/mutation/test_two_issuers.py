"""Two warps issue to one tensor pipe: what one of them waits for, the other does not know."""

import pytest

from kernelpack.emulator.faults import Level
from tests.emulator.kernel import rules
from tests.emulator.mutation.gemm import multiply
from tests.emulator.mutation.two_issuers import SCHEDULES, THREADS, TWO, of_warp

WAIT_FULL = (
    "WAIT_FULL: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], %phase; @!%p3 bra WAIT_FULL;"
)
WAIT_FREE = (
    "WAIT_FREE: mbarrier.try_wait.parity.shared.b64 %p3, [%free], %turn; @!%p3 bra WAIT_FREE;"
)
COMMIT_EMPTY = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r1];"
COMMIT_DONE = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%done];"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_two_warps_may_multiply(schedule: str):
    """Each waits for what it reads and commits what it issued: nothing is found at any level."""
    result, right = multiply(TWO, schedule, threads=THREADS, level=Level.STRICT)
    assert (right, rules(result)) == (True, set())


@pytest.mark.parametrize("warp", [5, 6])
@pytest.mark.parametrize("line", [WAIT_FULL, WAIT_FREE], ids=["for data", "for the accumulator"])
def test_one_of_them_does_not_wait(warp: int, line: str):
    """Held back, it finds all in place and the numbers are right; by luck."""
    text = TWO.replace(line, of_warp(warp, line, "PASSED"))
    result, right = multiply(text, f"starving:0:{warp}", threads=THREADS)
    assert (right, rules(result)) == (True, {"race"})


@pytest.mark.parametrize(
    ("line", "twice"),
    [
        (COMMIT_EMPTY, "mbarrier.arrive.shared.b64 _, [%r1];"),
        (COMMIT_DONE, "mbarrier.arrive.shared.b64 _, [%done];"),
    ],
    ids=["of a stage", "of the accumulator"],
)
def test_one_commits_for_both(line: str, twice: str):
    """A commit counts for what its own thread issued (PTX ISA 9.7.16.12)."""
    text = TWO.replace(line, of_warp(6, line, "MINE") + f" @!%p3 bra COMMITTED; {twice} COMMITTED:")
    result, _ = multiply(text, "eager", threads=THREADS)
    assert "race" in rules(result)
