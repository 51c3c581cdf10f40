"""A variant called on numpy arrays."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack.emulator.call import call
from kernelpack.emulator.ptx.parser import parse
from kernelpack.errors import ProblemError
from kernelpack.spec.expr import parse as expr
from kernelpack.spec.launch import Pointer
from kernelpack.spec.params import Access
from tests.verify import small

X = np.arange(40, dtype=np.float32)
PROGRAM = parse(small.ptx().text)


def run(variant=None, program=PROGRAM, **arrays):
    return call(program, variant or small.variant(), {"n": 40}, arrays or {"x": X})


def test_outputs():
    """What the kernel wrote comes back in the argument's type and shape."""
    found = run().outputs["y"]
    assert (found.dtype, found.tolist()) == (np.float32, (2 * X).tolist())


def test_inputs_stay():
    """The caller's arrays are not written."""
    x = X.copy()
    run(x=x)
    assert x.tolist() == X.tolist()


def test_an_input_is_written():
    """Inputs that a kernel wrote and may only read are reported; one also written is not."""
    program = parse(small.ptx("st.global.f32 [%rd3], %f2;").text)
    assert run().disturbed == ()
    assert run(program=program).disturbed == ("x",)
    made = small.variant()
    y, x = made.arguments
    both = replace(made, arguments=(y, replace(x, access=Access.READ_WRITE)))
    assert run(both, program).disturbed == ()


def test_plan():
    """The launch is the variant's, with every number known."""
    plan = run().plan
    assert (plan.entry, tuple(plan.grid), tuple(plan.block)) == ("twice_32", (2, 1, 1), (32, 1, 1))


def test_never_written():
    """An element that the kernel does not write is NaN."""
    first = parse(small.ptx(guard="setp.ge.u32 %p1, %r1, 39;").text)
    assert np.isnan(run(program=first).outputs["y"]).tolist() == [False] * 39 + [True]


def test_left_as_it_was():
    """Where an output is given, an element that the kernel does not write keeps its value."""
    first = parse(small.ptx(guard="setp.ge.u32 %p1, %r1, 39;").text)
    y = np.full(40, 7, np.float32)
    assert run(program=first, y=y, x=X).outputs["y"].tolist() == [*(2 * X[:39]).tolist(), 7]


def test_absent():
    """An argument of no elements needs no array, is a null pointer, and gives no output."""
    made = small.variant()
    y, x = made.arguments
    few = replace(made, arguments=(replace(y, shape=(expr("n - 40"),)), x))
    found = run(few)
    assert (found.plan.arguments[0], found.outputs) == (Pointer(0), {})


def test_what_was_there_is_not_read():
    """A kernel that reads what it is only to write is found."""
    made = small.variant()
    y, x = made.arguments
    written = replace(made, arguments=(y, replace(x, access=Access.WRITE)))
    findings = run(written, x=X).result.findings
    assert {finding.rule.name for finding in findings} == {"uninitialised"}


def test_out_of_bounds():
    """A kernel that writes past its output is found, and the memory around stays."""
    over = parse(small.ptx(guard="setp.ge.u32 %p1, %r1, 41;").text)
    assert "bounds" in {finding.rule.name for finding in run(program=over).result.findings}


def test_read_and_written():
    """An argument that is read and written starts as the caller's and comes back."""
    made = small.variant()
    y, x = made.arguments
    both = replace(made, arguments=(replace(y, access=Access.READ_WRITE), x))
    found = run(both, y=np.zeros(40, np.float32), x=X)
    assert found.outputs["y"].tolist() == (2 * X).tolist()


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"z": X}, "no array for argument `x`"),
        ({"x": X[:39]}, "`x` has 156 bytes; the kernel may touch 160"),
        ({"x": X.astype(np.float64)}, "`x` is float64; the kernel takes fp32"),
        ({"x": np.zeros(80, np.float16)}, "`x` is float16; the kernel takes fp32"),
        ({"x": X, "y": X.astype(np.int64)}, "`y` is int64; the kernel takes fp32"),
    ],
)
def test_refused(arrays, says):
    """An array that is missing, too small or of another type is refused before anything runs."""
    with pytest.raises(ProblemError, match=says):
        run(**arrays)


def test_bits():
    """Integers of an element's size are its bits."""
    assert run(x=X.view(np.uint32)).outputs["y"].tolist() == (2 * X).tolist()
