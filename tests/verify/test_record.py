"""The cache's record of an outcome gives it back whole."""

import math

import pytest

from kernelpack.cache.store import ContentError
from kernelpack.verify.job import Job
from kernelpack.verify.prove import prove
from kernelpack.verify.record import decode, encode
from tests.verify import small

TEXTS = {
    "right": small.ptx(),
    "wrong": small.ptx("mul.f32 %f1, %f1, %f1;"),
    "nan": small.ptx("mov.f32 %f1, 0f7FC00000;"),
    "found": small.ptx(guard="setp.ge.u32 %p1, %r1, 41;"),
    "trap": small.ptx("trap;"),
    "unsupported": small.ptx("foo.f32 %f1, %f1;"),
}


def outcome(name):
    made = small.variant()
    job = Job(variant_id=made.id, kernel="twice", case=small.CASES[1], sm_count=4)
    return prove(job, made, TEXTS[name].text, small.DEFINITION)


@pytest.mark.parametrize("name", sorted(set(TEXTS) - {"nan"}))
def test_round_trip(name):
    """What is read is what was written, the picture of the errors included."""
    found = outcome(name)
    assert decode(encode(found), found.job) == found


@pytest.mark.parametrize("record", [b"", b"{}", b"null", b"[1]", b"\xff", b'{"state": "odd"}'])
def test_something_else(record):
    """What no outcome gave is absent, and the record says so."""
    with pytest.raises(ContentError, match="something else than an outcome"):
        decode(record, outcome("right").job)


def test_nan():
    """NaN and infinity come back as they were."""
    found = decode(encode(outcome("nan")), outcome("nan").job)
    worst = found.comparisons[0].worst
    assert (math.isnan(worst.found), worst.ratio) == (True, math.inf)


def test_cached():
    """An outcome that was read says so."""
    found = outcome("right")
    assert (found.cached, decode(encode(found), found.job).cached) == (False, True)
