"""One run of the small kernel: right, and wrong in every way there is."""

from dataclasses import replace

import pytest

from kernelpack.formats.dtype import DType
from kernelpack.spec.expr import constant, parse
from kernelpack.spec.params import PointerParam, ScalarParam
from kernelpack.verify.job import Job
from kernelpack.verify.outcome import State
from kernelpack.verify.prove import INPUT, prove
from tests.verify import small

CASE = small.CASES[1]
ONE = constant(1)


def run(text=None, variant=None, schedule="eager"):
    made = variant or small.variant()
    job = Job(variant_id=made.id, kernel="twice", case=CASE, sm_count=4, schedule=schedule)
    return prove(job, made, (text or small.ptx()).text, small.DEFINITION)


@pytest.mark.parametrize("schedule", ["eager", "fair", "lazy", "starving:0:0"])
def test_right(schedule):
    """Right numbers and no finding, under every schedule."""
    outcome = run(schedule=schedule)
    assert (outcome.state, outcome.words, outcome.ctas) == (State.RIGHT, "", 2)


@pytest.mark.parametrize(
    ("text", "variant", "state", "says"),
    [
        (small.ptx("mul.f32 %f1, %f1, %f1;"), None, State.WRONG, "40 of 40 wrong"),
        (
            small.ptx(guard="setp.ge.u32 %p1, %r1, 41;"),
            None,
            State.FOUND,
            "st.global.f32",
        ),
        (small.ptx("trap;"), None, State.FAULT, "Trap"),
        (small.ptx("bar.sync 0, 64;"), None, State.FAULT, "Deadlock"),
        (small.ptx("foo.f32 %f1, %f1;"), None, State.UNSUPPORTED, "foo"),
        (small.ptx(entry="other"), None, State.FAULT, "twice_32"),
        (None, small.changed({"grid": (ONE, ONE, ONE)}), State.WRONG, "8 of 40 wrong, first [32]"),
        (None, small.changed({"grid": (parse("n - 40"), ONE, ONE)}), State.FAULT, "grid.x"),
        (
            None,
            small.changed({"block": (parse("16"), ONE, ONE)}),
            State.WRONG,
            "wrong, first [16]",
        ),
    ],
)
def test_wrong(text, variant, state, says):
    """A wrong kernel or launch is reported by its kind, with what shows it."""
    outcome = run(text, variant)
    assert outcome.state is state
    assert says in outcome.words


@pytest.mark.parametrize(
    ("extra", "state"), [("", State.FOUND), ("add.f32 %f1, %f1, %f1;", "wrong")]
)
def test_an_input_is_written(extra, state):
    """A kernel that overwrites what it may only read is not right, whatever its numbers are."""
    outcome = run(small.ptx(f"{small.DOUBLE} st.global.f32 [%rd3], %f1; {extra}"))
    assert (outcome.state, [b.rule for b in outcome.broken]) == (state, [INPUT])
    assert "input `x` was written" in outcome.words


def swapped(made):
    """The kernel's pointers, given in the wrong order."""
    y, x, n = made.params
    return replace(made, params=(x, y, n))


@pytest.mark.parametrize(
    "params",
    [
        (PointerParam(name="y", argument="x"), PointerParam(name="x", argument="y")),
        (PointerParam(name="y", argument="y"), PointerParam(name="x", argument="y")),
    ],
)
def test_wrong_arguments(params):
    """A pointer instead of another does not go unnoticed."""
    made = small.variant()
    assert not run(variant=replace(made, params=(*params, made.params[2]))).is_right


def test_wrong_parameter_size():
    """A scalar of another size than the kernel declares is refused."""
    made = small.variant()
    long = ScalarParam(name="n", dtype=DType.U64, value=parse("n"))
    outcome = run(variant=replace(made, params=(*made.params[:2], long)))
    assert (outcome.state, "8 for `p_n`" in outcome.words or "bytes" in outcome.words) == (
        State.FAULT,
        True,
    )
