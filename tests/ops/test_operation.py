"""What every op does, seen with a small one: y = 2 * x, and z that its kernel leaves alone."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from kernelpack.bundle.writer import write, write_ptx
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.ops.checks import require
from kernelpack.ops.emulated import EmulatedLibrary
from kernelpack.ops.operation import Form, Made, Operation, Request
from kernelpack.spec.expr import parse
from kernelpack.spec.params import Access, Argument
from tests.fakes.bundles import provenance
from tests.verify import small

FLOATS = (DType.FP32,)
X = np.arange(40, dtype=np.float32)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    n: int

    @property
    def sizes(self):
        return {"n": self.n}

    @property
    def is_empty(self):
        return self.n == 0


def made(problem):
    form = Made(shape=(problem.n,), dtype=DType.FP32)
    return {"y": form, "z": form}


def check_values(problem, read):
    require(problem.is_empty or read("x")[0] == 0, "`x` must start with 0", "twice")


OPERATION = Operation(
    kernel="twice",
    abis=range(1, 2),
    inputs={"x": Form(dims="n", dtypes=FLOATS), "w": Form(dims="n", dtypes=FLOATS)},
    outputs={"y": Form(dims="n", dtypes=FLOATS), "z": Form(dims="n", dtypes=FLOATS)},
    keywords={"y": "out"},
    optional=frozenset({"w"}),
    made=made,
    check_values=check_values,
)


FEW = "n if n >= 20 else 0"
"""Elements of a z that small problems lack."""


def with_z(folder, side):
    """A variant of two outputs on the emulator."""
    known, text = small.variant(), small.ptx()
    z = Argument(name="z", dtype=DType.FP32, shape=(parse(side),), access=Access.WRITE)
    variant = replace(known, arguments=(*known.arguments, z))
    write([small.entry(variant, text)], folder / "x.kpk", provenance())
    write_ptx([text], folder / "x.ptx.kpk", provenance())
    return EmulatedLibrary(folder / "x.kpk")


@pytest.fixture
def library(tmp_path):
    return with_z(tmp_path, "n")


def request_of(library, x, w=None, *, y=None, z=None, **asked):
    return Request(
        inputs={"w": w, "x": x},
        outputs={"z": z, "y": y},
        problem=lambda views, _: Problem(n=views["x"].shape[0]),
        library=library,
        **asked,
    )


def run(library, *inputs, **options):
    return OPERATION.run(request_of(library, *inputs, **options))


def test_outputs(library):
    """Several outputs come in order; what a kernel leaves of a new one is zero."""
    y, z = run(library, X, None)
    assert (y.tolist(), z.tolist()) == ((2 * X).tolist(), [0] * 40)


def test_given_outputs(library):
    """Outputs given are filled and returned; what the kernel leaves of one is as it was."""
    given = np.zeros(40, np.float32), np.full(40, 3, np.float32)
    found = run(library, X, None, y=given[0], z=given[1])
    assert (found[0] is given[0], found[1] is given[1]) == (True, True)
    assert (given[0].tolist(), given[1].tolist()) == ((2 * X).tolist(), [3] * 40)


def test_empty(library):
    """Without anything to compute nothing runs, and the outputs have their shapes."""
    y, z = run(library, np.zeros(0, np.float32), None)
    assert (y.shape, z.shape) == ((0,), (0,))


def made_of_few(problem):
    """Of fewer than 20 elements there is no z."""
    return {name: form for name, form in made(problem).items() if name == "y" or problem.n >= 20}


def test_an_output_that_a_problem_lacks(tmp_path):
    """It is not made and not returned; one output comes alone."""
    operation = replace(OPERATION, made=made_of_few)
    y = operation.run(request_of(with_z(tmp_path, FEW), X[:10]))
    assert y.tolist() == (2 * X[:10]).tolist()


def test_an_output_that_a_problem_has(tmp_path):
    """The same op gives both where the problem has both."""
    operation = replace(OPERATION, made=made_of_few)
    found = operation.run(request_of(with_z(tmp_path, FEW), X))
    assert [out.shape for out in found] == [(40,), (40,)]


@pytest.mark.parametrize(("debug", "is_checked"), [(False, False), (True, True)])
def test_any_values(library, debug, is_checked):
    """Where a kernel relies on no value, values are looked at by those who debug alone."""
    looked = []
    operation = replace(
        OPERATION, takes_any_values=True, check_values=lambda *_: looked.append(True)
    )
    operation.run(request_of(library, X, debug=debug))
    assert bool(looked) == is_checked


SHARED = np.zeros(80, np.float32)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ((None, None), {}, "`x` is a NoneType"),
        ((X, X.astype(np.float16)), {}, "`w` must be fp32, not fp16"),
        ((X + 1, None), {}, "`x` must start with 0"),
        ((X, None), {"y": X.copy()[:39]}, r"`out` must have the shape \[40\], not \[39\]"),
        ((X, None), {"z": X.copy()[:39]}, r"`z` must have the shape \[40\], not \[39\]"),
        ((X, None), {"y": SHARED[:40], "z": SHARED[39:79]}, "`out` overlaps `z`"),
        ((X, None), {"stream": 1}, "`stream`: the emulator has none"),
    ],
)
def test_refused(library, inputs, options, message):
    """What is wrong is named by the caller's word."""
    with pytest.raises(ProblemError, match=message):
        run(library, *inputs, **options)
