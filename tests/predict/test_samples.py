"""Recorded launches in a folder: what is there is not recorded again, and is read as it was."""

from pathlib import Path

import pytest

from benchmarks.predict import kinds, samples

NOWHERE = kinds.Places(bundle=Path("x"), own=Path("y"), programs=Path("z"))


def wanted(*, record, key="lora|m 8, k 16"):
    return kinds.Wanted(key=key, microseconds=2.5, record=record)


def test_saved_and_read(tmp_path):
    """The key and the time come back too."""
    path = samples.save(tmp_path, wanted(record=list))
    assert samples.load(path) == samples.Saved(key="lora|m 8, k 16", microseconds=2.5, samples=[])


def test_not_recorded_twice(tmp_path):
    """Recording takes minutes."""
    path = samples.save(tmp_path, wanted(record=list))
    assert samples.save(tmp_path, wanted(record=lambda: pytest.fail("again"))) == path


@pytest.mark.parametrize(("kind", "least"), [("h200", 150), ("b200", 40)])
def test_keys_are_unique(kind, least):
    """One file a point; nothing is built or opened to list them."""
    keys = [one.key for one in kinds.everything(kind, NOWHERE)]
    assert len(set(keys)) == len(keys) >= least
