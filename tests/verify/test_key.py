"""What an outcome depends on is in its key, and nothing else is."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelpack.emulator.faults import Level
from kernelpack.formats.dtype import DType
from kernelpack.spec.arch import Arch
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.params import ScalarParam
from kernelpack.verify import key
from kernelpack.verify.job import Job
from tests.verify import small

JOB = Job(variant_id="v", kernel="twice", case=small.CASES[0], sm_count=4)
VARIANT = small.variant()


def digest(job=JOB, variant=VARIANT, ptx="abc"):
    return key.job_key(job, variant, ptx).digest


@pytest.mark.parametrize(
    "change",
    [
        {"case": small.CASES[1]},
        {"sm_count": 5},
        {"schedule": "fair"},
        {"seed": 1},
        {"level": Level.STRICT},
    ],
)
def test_job(change):
    """Another case, device, schedule, seed or level is another run."""
    assert digest() != digest(replace(JOB, **change))


@pytest.mark.parametrize(
    "changed",
    [
        small.changed({"grid": (constant(2), constant(1), constant(1))}),
        small.changed({"shared_bytes": constant(16)}),
        small.variant(when="n <= 999"),
        replace(VARIANT, params=VARIANT.params[::-1]),
        replace(
            VARIANT,
            params=(
                *VARIANT.params[:2],
                ScalarParam(name="n", dtype=DType.U32, value=parse("n + 1")),
            ),
        ),
        replace(VARIANT, arguments=VARIANT.arguments[::-1]),
    ],
)
def test_variant(changed):
    """Another launch, guard, signature or argument is another run."""
    assert digest() != digest(variant=changed)


def test_ptx():
    """Other PTX is another run."""
    assert digest() != digest(ptx="abd")


HEAD = ".version 9.1\n.target {}, debug\n.address_size 64\n"


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("sm_100a", "sm_103a", True),
        ("sm_100a", "sm_100f", True),
        ("sm_100a", "sm_100", False),  # has no tcgen05
        ("sm_100a", "sm_90a", False),
        ("sm_90a", "sm_90", False),
    ],
)
def test_target(one, other, alike):
    """PTX for two targets is one code where their rows differ in the devices alone."""
    assert alike == (key.code_of(HEAD.format(one)) == key.code_of(HEAD.format(other)))


def test_a_target_that_is_named_elsewhere():
    """Only the directive stands for a row; other words are as they are."""
    named = ["// for sm_100a", "// for sm_103a"]
    assert len({key.code_of(HEAD.format("sm_100a") + text) for text in named}) == 2


@pytest.mark.parametrize(("arch", "alike"), [("sm_103a", True), ("sm_90a", False)])
def test_launch_on_another_target(arch, alike):
    """A launch is the same on a target with the same limits."""
    assert alike == (digest() == digest(variant=replace(VARIANT, arch=Arch(arch))))


def test_outcomes_know_no_capability():
    """What makes an outcome never asks which devices a target runs on, which no key holds."""
    package = Path(key.__file__).parents[1]
    folders = (package / "emulator", package / "kernels")
    files = [path for folder in folders for path in folder.rglob("*.py")]
    files += [
        package / "spec/launch.py",
        package / "verify/prove.py",
        package / "verify/compare.py",
    ]
    assert [
        str(f) for f in files if "capabilit" in f.read_text() or "runs_on" in f.read_text()
    ] == []


def test_code(monkeypatch):
    """Another emulator or oracle is another run."""
    before = digest()
    monkeypatch.setattr(key, "code_digest", lambda *parts: f"changed {parts}")
    assert digest() != before


@pytest.mark.parametrize(
    ("job", "variant"),
    [
        (replace(JOB, selected=True), VARIANT),
        (JOB, small.variant(cost="2 * n")),
    ],
)
def test_selection(job, variant):
    """How a variant came to run changes nothing: selection is asked anew by every plan."""
    assert digest() == digest(job, variant)
