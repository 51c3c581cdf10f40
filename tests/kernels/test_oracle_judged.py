"""What an oracle gives is checked against its kernel's manifest, and each slip is reported."""

import re
import signal
from contextlib import nullcontext
from dataclasses import replace

import pytest

from kernelpack.errors import KernelpackError, OracleError
from kernelpack.formats.dtype import DType
from kernelpack.kernels import cases, held
from kernelpack.spec.params import NumberParam
from kernelpack.spec.variant import Number
from tests.verify import small


def judged(twice):
    """What `prove` asks of an oracle, of one case."""
    variant, case = small.variant(), twice.small()[0]
    cases.check(twice, variant)
    sizes = {**case.sizes, "sm_count": 4}
    arrays = twice.inputs(case)
    held.check_inputs(twice, arrays, variant, sizes)
    found = twice.expected(case, arrays)
    held.check_expected(twice, found, variant, sizes)
    return found


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
        (
            {"CASES": "CASES = every(m=5)", "LARGE": ""},
            0,
            "cases give `m`, which is not a size",
            "n",
        ),
        ({"CASES": "CASES = every(n=5, k=1)", "LARGE": ""}, 0, "cases give `k`", "its sizes: n"),
        ({GIVES: "    return 1 / 0"}, 11, "ZeroDivisionError", ""),
        ({GIVES: "    return sizes.m"}, 11, "cases give no `m`: they give n", ""),
        ({GIVES: "    return [1]"}, 0, "`inputs` gives a list, not arrays by name", ""),
        ({GIVES: "    return {'x': [1]}"}, 0, "`inputs` gives a list as `x`, not a numpy", ""),
        ({GIVES: "    return {}"}, 0, "`inputs` gives no `x`", "it gives none"),
        (
            {GIVES: "    return {'xs': normal(random, sizes.n, 'fp32')}"},
            0,
            "`inputs` gives `xs`, which is not an argument",
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
            "`expected` gives `x`, which is not an output",
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
