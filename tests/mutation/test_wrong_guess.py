"""LoRA shrink on Hopper guesses its first tile: a wrong guess costs time, and no number."""

import pytest

from tests.kept import Compile
from tests.mutation.fault import Fault
from tests.mutation.subjects import SUBJECTS
from tests.mutation.trial import make

pytestmark = [pytest.mark.toolchain, pytest.mark.xdist_group("mutation")]

GUESSED = "if (prefetches && leader) prefetch_guess(position, guess, b_map);"
WRONG = {
    "rows further down": "guess.row += 8;",
    "a row fewer": "guess.rows -= 1;",
    "another adapter": "guess.expert ^= 1;",
    "columns of the next tile": "guess.flat += TILE_FLAT;",
    "a place that is not there": "guess.row = 0x7fffffff;",
    "none": "guess.expert = -1;",
}


@pytest.mark.parametrize("schedule", ["lazy", pytest.param("eager", marks=pytest.mark.mutation)])
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_guess_is_dropped(compile_source: Compile, wrong: str, schedule: str) -> None:
    """The stages of a tile that was only guessed are read by nobody; the right ones follow."""
    fault = Fault(
        subject="lora_sm90_prefill",
        name=wrong,
        file="lora_shrink_qkv/sm_90.cu.j2",
        old=GUESSED,
        new=WRONG[wrong] + GUESSED,
        caught="",
    )
    trial = make(SUBJECTS[fault.subject], fault, compile_source)
    assert frozenset() == trial.broken(schedule)
