"""Recorded launches in a folder: what is there is not recorded again, and is read as it was."""

import contextlib
from pathlib import Path

import pytest

from benchmarks.predict import kinds, samples
from kernelpack.errors import CompileError

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


def test_a_launch_that_is_not_recorded_is_an_error(monkeypatch):
    """A program whose second launch failed has more than its first launch's time."""

    def show(_command, _libraries, each, **_how):
        each("first")
        with contextlib.suppress(CompileError):
            each("second")

    def sample(launch, _toolchain):
        if launch == "second":
            raise CompileError("refused", where="ptxas")
        return launch

    monkeypatch.setattr(kinds, "show", show)
    monkeypatch.setattr(kinds, "sample", sample)
    monkeypatch.setattr(kinds.standin, "build", lambda *_: Path("libraries"))
    point = next(one for one in kinds.everything("b200", NOWHERE))
    with pytest.raises(CompileError, match="refused"):
        point.record()


@pytest.mark.parametrize(("kind", "least"), [("h200", 150), ("b200", 40)])
def test_keys_are_unique(kind, least):
    """One file a point; nothing is built or opened to list them."""
    keys = [one.key for one in kinds.everything(kind, NOWHERE)]
    assert len(set(keys)) == len(keys) >= least
