"""An oracle of a few lines becomes a definition; each slip of one is reported at its place."""

import re
import sys

import numpy as np
import pytest

from kernelpack.errors import OracleError, ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.registry import known
from tests.kernels.own import ORACLE, own


def test_cases(written):
    """Small cases are the emulator's and telling; large ones come after them."""
    twice = written()
    assert [case.name for case in twice.cases()] == ["n=5", "n=40", "n=64", "n=500"]
    assert twice.small() == twice.telling() == twice.cases()[:3]


def test_words_come_first(written):
    """A case's name begins with its types, so that its end is what it is about."""
    twice = written(CASES="CASES = every(n=(5, 6), dtype=('bf16', 'fp16'))", LARGE="")
    case = twice.cases()[0]
    assert (case.name, twice.kind(case)) == ("dtype=bf16,n=5", "n=5")
    assert case.sizes == {"n": 5, "dtype": int(DType.BF16)}


def test_typed(written):
    """What a person types replaces the first large case's sizes; an emulator's are the first's."""
    twice = written()
    assert twice.case({}).sizes == {"n": 500}
    assert twice.case(twice.emulated).sizes == {"n": 5}
    assert twice.case({"n": "7", "seed": "3"}).name == "n=7,seed=3"


@pytest.mark.parametrize(
    ("typed", "what"),
    [
        ({"m": "7"}, "unknown size `m`"),
        ({"n": "x"}, "`n` must be an integer of at least 0, not `x`"),
        ({"n": "-1"}, "`n` must be an integer of at least 0, not `-1`"),
        ({"seed": "x"}, "`seed` must be an integer of at least 0"),
    ],
)
def test_typed_wrong(written, typed, what):
    """A slip of what is typed is reported as for our own kernels."""
    with pytest.raises(ProblemError, match=what):
        written().case(typed)


def test_floats(written):
    """A size may be no integer."""
    twice = written(CASES="CASES = every(n=5, eps=1e-6)", LARGE="")
    assert twice.case({"eps": "0.5"}).sizes == {"n": 5, "eps": 0.5}
    long = "0." + "0" * 40 + "1"
    assert twice.case({"eps": long}).sizes["eps"] == 1e-41
    assert twice.case({"eps": "-inf"}).sizes["eps"] == -np.inf


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x", "`eps` must be a number: `x` is not a number\nhint: write it as `1e-6`"),
        ("1_0", "`1_0` is not a number"),
        ("nan", "`nan` is not a number"),
        ("\u0661", "is not a number"),
        ("1e400", "`eps` must be a number: `1e400` does not fit in 64 bits"),
        ("9" * 5000, "does not fit in 64 bits"),
    ],
)
def test_no_float(written, text, what):
    """A number is typed as a manifest has it, and is not cut to what a float holds."""
    twice = written(CASES="CASES = every(n=5, eps=1e-6)", LARGE="")
    with pytest.raises(ProblemError) as error:
        twice.case({"eps": text})
    assert what in str(error.value)


def test_inputs_follow_from_the_case(written):
    """The same case has the same inputs, another seed others."""
    twice = written()
    one, again, other = (twice.inputs(twice.case({"seed": s}))["x"] for s in "112")
    assert (one == again).all()
    assert (one != other).any()


def test_inputs_are_contiguous(written):
    """A GPU copies memory as it lies."""
    given = "    return {'x': normal(random, 2 * sizes.n, 'fp32')[::2]}"
    twice = written(**{re.escape('    return {"x": normal'): given})
    assert twice.inputs(twice.case({}))["x"].flags.c_contiguous


def test_version_is_the_files(tmp_path):
    """What is kept of a run depends on the oracle's file."""
    one = known((own(tmp_path / "one"),))["twice"]
    two = known((own(tmp_path / "two", ORACLE + "\n"),))["twice"]
    assert one.version != two.version


@pytest.fixture
def reading(tmp_path, monkeypatch):
    """An oracle that imports a module, which imports another, and reads a file; its version."""
    monkeypatch.syspath_prepend(tmp_path)
    reads = "FACTOR = Path(__file__).with_name('factor.txt').read_text()"
    imports = "from pathlib import Path\nimport helper_of_twice"
    folder = own(tmp_path, f"{imports}\n{reads}\n{ORACLE}")
    (tmp_path / "helper_of_twice.py").write_text("from deeper_of_twice import TWO\n")
    (tmp_path / "deeper_of_twice.py").write_text("TWO = 2\n")
    (folder / "factor.txt").write_text("2")
    (folder / "other.txt").write_text("2")
    yield lambda: known((folder,))["twice"].version
    for name in ("helper_of_twice", "deeper_of_twice"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("file", "is_part"),
    [
        ("helper_of_twice.py", True),
        ("deeper_of_twice.py", True),
        ("twice/factor.txt", True),
        ("twice/other.txt", False),
        ("twice/twice.cu.j2", False),
    ],
)
def test_version_is_of_what_it_reads(tmp_path, reading, file, is_part):
    """What is kept of a run depends on modules of one's own, and on files that it names."""
    before = reading()
    (tmp_path / file).write_text(f"{(tmp_path / file).read_text()}\n")
    assert (reading() != before) == is_part


@pytest.mark.parametrize(
    ("changes", "line", "what", "hint"),
    [
        ({"CASES": "cases = []"}, 0, "has no `CASES`", "an oracle has CASES, inputs, expected"),
        ({"def inputs": "def input(sizes, random):"}, 0, "has no `inputs`", "did you mean `input`"),
        ({"CASES": "CASES = []"}, 0, "`CASES` is empty", "such as every("),
        ({"CASES": "CASES = 5"}, 0, "`CASES` is not a list of cases", "such as every("),
        ({"CASES": "CASES = [5]"}, 0, "`CASES[0]` is not a case", "such as every("),
        ({"CASES": "CASES = [{'n': None}]"}, 0, "`n` of `CASES[0]` is a NoneType", "a number, or"),
        ({"CASES": "CASES = every(seed=3)"}, 0, "has a size `seed`", "rename it"),
        ({"LARGE": "LARGE = every(m=3)"}, 0, "some cases have `m`", "the same names"),
        ({"LARGE": "ABIS = 3"}, 0, "`ABIS` is not a range of numbers", "such as range(1, 2)"),
        ({"LARGE": "inputs = 3", "def inputs": "def other(sizes, random):"}, 0, "is not a fun", ""),
        ({"LARGE": "1 / 0"}, 7, "ZeroDivisionError: division by zero", ""),
        ({"LARGE": "LARGE = ("}, 7, "is not Python: '(' was never closed", ""),
        ({"LARGE": "import absent"}, 7, "ModuleNotFoundError: No module named 'absent'", ""),
    ],
)
def test_a_slip_in_the_file(written, tmp_path, changes, line, what, hint):
    """The error is at the line where it is, or at the file."""
    with pytest.raises(OracleError) as caught:
        written(**changes)
    where = str(tmp_path / "twice" / "twice.py")
    assert caught.value.where == (f"{where}:{line}" if line else where)
    assert what in caught.value.what
    assert hint in caught.value.hint
