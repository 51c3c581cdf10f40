"""What tests keep between runs: made once, read back whole, and made again when its key changes."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.bundle.reader import open_bundle, twin_of
from kernelpack.cache.store import Store
from kernelpack.check.check import Report
from kernelpack.emulator.faults import Level
from kernelpack.formats.dtype import DType
from kernelpack.kernels.lora_shrink_qkv.cases import telling
from kernelpack.kernels.lora_shrink_qkv.definition import LORA_SHRINK_QKV
from kernelpack.spec.artifact import Ptx, Source
from kernelpack.verify.job import Job
from kernelpack.verify.outcome import Broken, Outcome, State
from tests import kept
from tests.fakes.bundles import write_bundle
from tests.fakes.variants import variant
from tests.machine_code.build import complaints_once

SOURCE = Source(variant_id="v", entry="e", name="e.cu", text="// 1", headers=())
FIRST, SECOND = telling()[:2]
JOB = Job(variant_id=variant().id, kernel="lora_shrink_qkv", case=FIRST, sm_count=2)


@pytest.fixture
def made(tmp_path, monkeypatch):
    """What was really compiled or emulated, with a store of the test's own."""
    calls = []

    def prove(job, *_):
        calls.append(job)
        broken = (Broken(rule="race", place="x.cu:1", text="a race"),)
        return Outcome(job=job, state=State.FOUND, broken=broken, steps=7)

    monkeypatch.setattr(kept, "STORE", Store(tmp_path))
    monkeypatch.setattr(kept, "prove", prove)
    return calls


def proven(job=JOB, ptx="ptx", **changes):
    return kept.proven(job, replace(variant(), **changes), ptx, LORA_SHRINK_QKV)


def test_an_outcome_is_made_once(made):
    """The second one is the first, read back."""
    assert proven() == proven()
    assert made == [JOB]


@pytest.mark.parametrize(
    "other",
    [
        {"job": replace(JOB, case=SECOND)},
        {"job": replace(JOB, sm_count=3)},
        {"job": replace(JOB, schedule="eager")},
        {"job": replace(JOB, level=Level.STRICT)},
        {"ptx": "another"},
        {"params": ()},
    ],
)
def test_another_run_is_made(made, other):
    """Another case, device, interleaving, level, PTX or launch is another run."""
    proven()
    proven(**other)
    assert len(made) == 2


@pytest.mark.parametrize("version", ["emulator_version", "oracle_version"])
@pytest.mark.parametrize("module", ["tests.kept", "kernelpack.verify.key"])
def test_names_and_outcomes_are_of_one_code(made, monkeypatch, version, module):
    """Another emulator or oracle makes them again."""

    def make():
        made.append("names")
        return {"race"}

    assert kept.names([("ptx", "x")], make) == {"race"}
    proven()
    monkeypatch.setattr(f"{module}.{version}", lambda *_: "other code")
    assert kept.names([("ptx", "x")], make) == {"race"}
    proven()
    assert len(made) == 3


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("source", "arch", "times"),
    [(SOURCE, "sm_90a", 1), (SOURCE, "sm_100a", 2), (replace(SOURCE, text="// 2"), "sm_90a", 2)],
)
def test_ptx_is_compiled_once(made, source, arch, times):
    """For each source and target."""

    def make(source, arch):
        made.append(source)
        return Ptx(text=f"{source.text} {arch}")

    first = kept.compiled(SOURCE, "sm_90a", make)
    again = kept.compiled(source, arch, make)
    assert (f"{SOURCE.text} sm_90a", f"{source.text} {arch}") == (first.text, again.text)
    assert len(made) == times


def test_what_is_computed_is_kept_to_the_bit(made):
    """Numbers of any type and shape come back as they were, and other parts are another run."""
    runs = []

    def run():
        runs.append(None)
        return {"out": np.array([[1.5, np.nan]], DType.BF16.numpy), "lse": np.array([-np.inf])}

    first, second = (kept.computed([("ptx", "a")], run) for _ in range(2))
    kept.computed([("ptx", "b")], run)
    assert len(runs) == 2
    for name, array in run().items():
        for kept_one in (first[name], second[name]):
            assert (kept_one.dtype, kept_one.shape) == (array.dtype, array.shape)
            assert kept_one.tobytes() == array.tobytes()


def test_what_is_wrong_with_a_bundle_is_asked_once(made, monkeypatch, tmp_path):
    """Of a file of these bytes, by one code."""

    def check(path):
        made.append(path)
        return Report(path=path, entries=0, findings=())

    monkeypatch.setattr("tests.machine_code.build.check", check)
    monkeypatch.setattr("tests.machine_code.build.STORE", Store(tmp_path / "store"))
    files = [write_bundle(tmp_path / f"{name}.kpk", []) for name in "ab"]
    for path in files:
        twin_of(path).write_bytes(path.name.encode())
    first, other = map(open_bundle, files)
    assert complaints_once(first) == complaints_once(first) == (0, [])
    complaints_once(other)
    monkeypatch.setattr("tests.machine_code.build.code_digest", lambda *_: "other code")
    complaints_once(first)
    assert made == [first.path, other.path, first.path]
