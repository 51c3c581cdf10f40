"""Every variant of the bundle on the real device, on every case it serves."""

import pytest

pytestmark = pytest.mark.gpu


def test_variant_matches_the_oracle(trial_of, definition, case, variant):
    """Every element is within its bound, every row is written, nothing around the output is."""
    comparisons = trial_of(definition.stem, case).check(variant)
    assert [str(c) for c in comparisons if not c.is_right] == []


def test_repeated_runs_are_bitwise_equal(trial_of, definition, case, variant):
    """A variant gives the same bits each time."""
    trial = trial_of(definition.stem, case)
    runs = [bits(trial.run(variant)) for _ in range(4)]
    assert set(runs) == {runs[0]}


def bits(outputs):
    return b"".join(output.values.tobytes() for output in outputs.values())
