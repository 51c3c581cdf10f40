"""The lint of a build: in batches, once for each cubin, and a refusal keeps a bundle from disk."""

import json
from pathlib import Path

import pytest

from kernelpack.build.lint import BATCH, Lints, Made
from kernelpack.build.pipeline import build
from kernelpack.cache.store import Store
from kernelpack.errors import CompileError, ToolchainError
from kernelpack.machine_code.disassembler import Disassembler
from kernelpack.machine_code.lint import Finding, rules
from kernelpack.spec.artifact import Cubin
from tests.build.bench import IDS, states

DISASSEMBLER = Disassembler(program=Path("nvdisasm"), version="13.4.92")
REFUSED = Finding(rule=rules()["pair-before-peer"], offsets=(0x430,))
WARNED = Finding(rule=rules()["barrier-in-main-loop"], offsets=(0x10, 0x20))


class Eyes:
    """Finds what a test asks for, by entry, and remembers what it looked at."""

    def __init__(self, **found):
        self.found, self.batches = found, []

    def __call__(self, made, disassembler):
        self.batches.append([one.entry for one in made])
        return [self.found.get(one.entry, ()) for one in made]


def cubin(number):
    image = f"code {number}".encode()
    return Cubin(image=image, target="sm_90a", spill_store_bytes=0, spill_load_bytes=0)


def made(number):
    return Made(variant_id=f"v[{number}]", entry=f"v_{number}", cubin=cubin(number))


def looked_at(store, eyes, count, disassembler=DISASSEMBLER):
    lints = Lints(store, disassembler, eyes)
    for number in range(count):
        lints.add(made(number))
    return {one.variant_id: found for one, found in lints.findings()}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def test_many_at_a_time(store):
    """A batch is looked at as soon as it is full, the rest at the end."""
    eyes = Eyes()
    assert len(looked_at(store, eyes, BATCH + 3)) == BATCH + 3
    assert [len(batch) for batch in eyes.batches] == [BATCH, 3]


def test_once_for_each_cubin(store):
    """What was found is kept, whether or not something was."""
    first = looked_at(store, Eyes(v_1=(REFUSED, WARNED)), 3)
    again = Eyes()
    assert looked_at(store, again, 3) == first
    assert again.batches == []


@pytest.mark.parametrize("version", ["13.4.92", "13.5.37"])
def test_once_for_each_disassembler(store, version):
    """Another nvdisasm may read otherwise, so that it is asked."""
    looked_at(store, Eyes(), 3)
    other = Eyes()
    looked_at(store, other, 3, Disassembler(program=Path("nvdisasm"), version=version))
    assert (other.batches == []) == (version == DISASSEMBLER.version)


def test_nobody_looks_without_a_disassembler(store):
    """Nothing is reported of what was not looked at."""
    eyes = Eyes(v_0=(REFUSED,))
    assert looked_at(store, eyes, 3, None) == {}
    assert eyes.batches == []


def test_an_error_of_the_disassembler_is_told(store):
    """What cannot be read is no clean bill."""

    def blind(made, disassembler):
        raise ToolchainError("cannot read machine code")

    with pytest.raises(ToolchainError, match="cannot read machine code"):
        looked_at(store, blind, 1)


def run(project, eyes, **options):
    steps = project.steps(disassembler=lambda: DISASSEMBLER, look=eyes)
    return build(project.options(**options), steps=steps)


def test_a_refusal_fails_the_variant(project):
    """The variant, the rule and the place are in the error; no bundle is written."""
    report = run(project, Eyes(fill_2=(REFUSED, WARNED)))
    assert states(report) == ["compiled", "failed", "compiled"]
    error = report.failures[0].error
    assert isinstance(error, CompileError)
    assert (error.where, str(REFUSED)) == (IDS[1], error.what)
    assert not project.output.exists()


def test_a_refusal_is_told_again(project):
    """The cache keeps machine code and its fault: the next build fails without a compiler."""
    run(project, Eyes(fill_2=(REFUSED,)))
    project.compiled()
    report = run(project, Eyes())
    assert states(report) == ["cached", "failed", "cached"]
    assert project.compiled() == []


def test_a_warning_is_a_warning(project):
    """What may be meant is built, and reported."""
    report = run(project, Eyes(fill_3=(WARNED,)))
    assert not report.failures
    assert [outcome.warnings for outcome in report.outcomes] == [(), (), (str(WARNED),)]
    assert project.output.exists()


def test_what_was_not_looked_at_is_looked_at(project):
    """A bundle of a build without nvdisasm is no answer once there is one."""
    assert "nvidia-cuda-nvdisasm is not installed" in project.build().unlinted
    eyes = Eyes()
    assert run(project, eyes).unlinted == ""
    assert sorted(entry for batch in eyes.batches for entry in batch) == [
        "fill_1",
        "fill_2",
        "fill_3",
    ]


def test_a_dry_run_looks_at_nothing(project):
    """Nothing is made, so nothing is looked at."""
    eyes = Eyes()
    run(project, eyes, dry_run=True)
    assert eyes.batches == []


def test_findings_are_kept_as_json(store):
    """An object of the cache is the rules' ids and offsets."""
    looked_at(store, Eyes(v_0=(WARNED,)), 1)
    (path,) = (path for path in (store.root / "objects").rglob("*") if path.is_file())
    assert json.dumps([["barrier-in-main-loop", [0x10, 0x20]]]).encode() in path.read_bytes()
