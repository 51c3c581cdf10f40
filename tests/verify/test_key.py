"""What an outcome depends on is in its key, and nothing else is."""

from dataclasses import replace

import pytest

from kernelpack.emulator.faults import Level
from kernelpack.formats.dtype import DType
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
