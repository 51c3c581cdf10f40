"""An oracle of a few lines becomes a definition; each slip of one is reported at its place."""

import re
import signal
import sys
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from kernelpack.errors import KernelpackError, OracleError, ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.formats.ulp import ulp
from kernelpack.kernels import cases, held
from kernelpack.kernels.registry import known
from kernelpack.oracle import every, exactly, normal, within
from kernelpack.spec.params import NumberParam
from kernelpack.spec.variant import Number
from tests.kernels.own import ORACLE, own
from tests.verify import small


@pytest.fixture
def written(tmp_path):
    """The definition of an oracle: the usual one, with texts replaced."""

    def write(**changes):
        text = ORACLE
        for old, new in changes.items():
            text = re.sub(f"(?m)^.*{old}.*$", new, text)
        return known((own(tmp_path, text),))["twice"]

    return write


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


def judged(twice):
    """What `prove` asks of an oracle, of one case."""
    variant, case = small.variant(), twice.small()[0]
    cases.check(twice, variant)
    sizes = {**case.sizes, "sm_count": 4}
    arrays = held.inputs(twice, case, variant, sizes)
    return held.expected(twice, case, arrays, variant, sizes)


def test_right(written):
    """The usual one is right."""
    assert list(judged(written())) == ["y"]


TWICE = small.variant()
WITH_EPS = replace(
    TWICE,
    numbers=(Number(name="eps", doc="a number"),),
    params=(*TWICE.params, NumberParam(name="e", dtype=DType.FP32, number="eps")),
)


@pytest.mark.parametrize(
    ("listed", "what"),
    [
        ("n=5, eps=(1.0, 1, 0.1)", ""),
        ("n=5, eps=(1.0, '2.0')", "`eps` must be a number, not the word `2.0`"),
        ("n=5, eps=(1.0, float('nan'))", "the case `n=5,eps=nan`: `eps` must be a number, not NaN"),
        ("n=5, eps=(1.0, 1e39)", "parameter `e` 1e+39 does not fit in fp32"),
        ("n=(5, 300.0), eps=1.0", "`n` must be an integer, not 300.0"),
        ("n=(5, -3), eps=1.0", "`n` must be at least 0, not -3"),
    ],
)
def test_values_of_cases(written, tmp_path, listed, what):
    """Each case, not the first alone, has values that the kernel takes."""
    twice = written(CASES=f"CASES = every({listed})", LARGE="")
    if not what:
        return cases.check(twice, WITH_EPS)
    with pytest.raises(OracleError, match=re.escape(what)) as caught:
        cases.check(twice, WITH_EPS)
    assert caught.value.where == str(tmp_path / "twice" / "twice.py")
    return None


@pytest.mark.parametrize(
    ("value", "bound", "is_right"),
    [
        ("np.inf", "np.inf", True),  # such as a part of the value
        ("np.inf", "0.0", True),
        ("np.inf", "-1.0", False),
        ("np.nan", "np.nan", True),
        ("1.0", "np.inf", False),
    ],
)
def test_bounds_of_what_is_no_number(written, value, bound, is_right):
    """What is to be met exactly, or left, needs no bound; where a number is meant it is one."""
    says = f"    return {{'y': Expected(value=np.full(5, {value}), bound=np.full(5, {bound}))}}"
    twice = written(**{re.escape(SAYS): says})
    with nullcontext() if is_right else pytest.raises(OracleError, match="the bound of `y"):
        judged(twice)


def test_other_families_are_held_too(written):
    """What an oracle expects of other tensor cores has a bound as well."""
    wrong = "Expected(value=arrays['x'], bound=-1 - 0 * arrays['x'])"
    says = f"    return {{'y': replace(exactly(arrays['x']), elsewhere={{'hopper': {wrong}}})}}"
    imports = "from dataclasses import replace"
    twice = written(
        **{re.escape(SAYS): says, "^import numpy as np": f"import numpy as np\\n{imports}"}
    )
    with pytest.raises(OracleError, match="the bound of `y"):
        judged(twice)


GIVES = '    return {"x": normal'
SAYS = '    return {"y"'


@pytest.mark.parametrize(
    ("changes", "line", "what", "hint"),
    [
        ({"CASES": "CASES = every(m=5)", "LARGE": ""}, 0, "cases give `m`, which is no size", "n"),
        ({"CASES": "CASES = every(n=5, k=1)", "LARGE": ""}, 0, "cases give `k`", "its sizes: n"),
        ({GIVES: "    return 1 / 0"}, 11, "ZeroDivisionError", ""),
        ({GIVES: "    return sizes.m"}, 11, "cases give no `m`: they give n", ""),
        ({GIVES: "    return [1]"}, 0, "`inputs` gives a list, not arrays by name", ""),
        ({GIVES: "    return {'x': [1]}"}, 0, "`inputs` gives a list as `x`, not a numpy", ""),
        ({GIVES: "    return {}"}, 0, "`inputs` gives no `x`", "it gives none"),
        (
            {GIVES: "    return {'xs': normal(random, sizes.n, 'fp32')}"},
            0,
            "`inputs` gives `xs`, which is no argument",
            "did you mean `x`?",
        ),
        (
            {GIVES: "    return {'x': normal(random, sizes.n, 'fp16')}"},
            0,
            "`inputs` gives `x` as float16",
            "the manifest says fp32: float32",
        ),
        (
            {GIVES: "    return {'x': normal(random, sizes.n - 1, 'fp32')}"},
            0,
            "`inputs` gives `x` of shape [4]",
            "the manifest says [5]",
        ),
        (
            {GIVES: "    return {'x': normal(random, sizes.n + 1, 'fp32')}"},
            0,
            "`inputs` gives `x` of shape [6]",
            "the manifest says [5]",
        ),
        (
            {GIVES: "    return {'x': normal(random, sizes.n, 'fp23')}"},
            11,
            "unknown type `fp23`",
            "did you mean",
        ),
        ({SAYS: "    return 1 / 0"}, 15, "ZeroDivisionError", ""),
        ({SAYS: "    raise SystemExit(0)"}, 15, "SystemExit: 0", ""),
        ({SAYS: "    arrays['x'] *= 2"}, 15, "ValueError: output array is read-only", ""),
        ({SAYS: "    return {'y': arrays['x']}"}, 0, "a ndarray as `y`, not an Expected", "within"),
        ({SAYS: "    return {}"}, 0, "`expected` gives no `y`, which the kernel writes", "none"),
        (
            {SAYS: "    return {'x': exactly(arrays['x'])}"},
            0,
            "`expected` gives `x`, which is no output",
            "its outputs: y",
        ),
        (
            {SAYS: "    return {'y': exactly(arrays['x'][:, None])}"},
            0,
            "`expected` gives the value of `y` of shape [5, 1]",
            "the manifest says [5]",
        ),
        (
            {SAYS: "    return {'y': Expected(value=arrays['x'], bound=arrays['x'][:1])}"},
            0,
            "`expected` gives the bound of `y` of shape [1]",
            "the manifest says [5]",
        ),
        (
            {SAYS: "    return {'y': within(arrays['x'], 'fp32', ulps=-1)}"},
            0,
            "the bound of `y[0]` is -",
            "a bound is how far",
        ),
        (
            {SAYS: "    return {'y': within(arrays['x'], 'fp32', least=np.nan)}"},
            0,
            "the bound of `y[0]` is nan",
            "a bound is how far",
        ),
        (
            {SAYS: "    return {'y': within(arrays['x'], 'fp32', ulps=np.inf)}"},
            0,
            "the bound of `y[0]` is inf",
            "a number from 0",
        ),
        (
            {SAYS: "    return {'y': within(arrays['x'], 'fp16')}"},
            0,
            "`expected` gives `y` within ulps of fp16",
            "the manifest says fp32",
        ),
    ],
)
def test_a_slip_against_the_kernel(written, tmp_path, changes, line, what, hint):
    """What an oracle gives is checked against the manifest, and is never a fault of the kernel."""
    twice = written(**{re.escape(old): new for old, new in changes.items()})
    with pytest.raises(KernelpackError) as caught:
        judged(twice)
    where = str(tmp_path / "twice" / "twice.py")
    assert isinstance(caught.value, OracleError)
    assert caught.value.where == (f"{where}:{line}" if line else where)
    assert what in caught.value.what
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("raises", "at_sigint", "told_as"),
    [
        ("SystemExit(143)", signal.default_int_handler, SystemExit),  # asked by SIGTERM
        ("SystemExit(1)", signal.default_int_handler, OracleError),
        ("KeyboardInterrupt", signal.default_int_handler, KeyboardInterrupt),
        ("KeyboardInterrupt", signal.SIG_IGN, OracleError),  # as in workers
    ],
)
def test_what_ends_a_program(written, monkeypatch, raises, at_sigint, told_as):
    """Who asks the program to end is obeyed while an oracle runs; an oracle that does is not."""
    monkeypatch.setattr(signal, "getsignal", {signal.SIGINT: at_sigint}.get)
    twice = written(**{re.escape(SAYS): f"    raise {raises}"})
    with pytest.raises(told_as):
        judged(twice)


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1.0, DType.FP32, 2.0**-23),
        (1.99, DType.BF16, 2.0**-7),
        (-2.0, DType.FP16, 2.0**-9),
        (0.0, DType.FP16, 2.0**-24),
        (448.0, DType.E4M3, 32.0),
        (3.0, DType.E2M1, 1.0),
        (1.0, DType.TF32, 2.0**-10),
        (7.0, DType.I32, 1.0),
    ],
)
def test_ulp(value, dtype, expected):
    """The step from one number of a type to the next."""
    assert expected == ulp(value, dtype)


@pytest.mark.parametrize("dtype", [DType.FP16, DType.BF16, DType.FP32, DType.E4M3, DType.E5M2])
def test_ulp_is_the_step_of_the_type(dtype):
    """Where numpy knows the next number of a type, it is an ulp away."""
    values = np.array([0.02, 0.3, 1, 1.5, 3, 100], np.float64).astype(dtype.numpy)
    bits = values.view(f"u{values.itemsize}")
    after = (bits + 1).astype(bits.dtype).view(dtype.numpy)
    steps = after.astype(np.float64) - values.astype(np.float64)
    assert (steps == ulp(values.astype(np.float64), dtype)).all()


def test_within_is_met_by_rounding():
    """What is rounded once is within half an ulp."""
    values = np.random.default_rng(0).standard_normal(1000)
    found = within(values, "bf16", ulps=0.5).ratio(values.astype(DType.BF16.numpy))
    assert 0.9 < found.max() <= 1


def test_exactly():
    """Every other number is wrong."""
    assert exactly([1, 2]).ratio(np.array([1, 3])).tolist()[0] == 0
    assert exactly([1, 2]).ratio(np.array([1, 3])).max() > 1


def test_normal():
    """Numbers of a type, by its word in a manifest."""
    assert normal(np.random.default_rng(0), (2, 3), "bf16").dtype == DType.BF16.numpy


def test_every():
    """Every combination; one value alone."""
    assert every(n=(1, 2), dtype="bf16") == ({"n": 1, "dtype": "bf16"}, {"n": 2, "dtype": "bf16"})
