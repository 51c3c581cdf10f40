"""Kernels on numpy arrays."""

import numpy as np
import pytest

from kernelpack.emulator import launch
from kernelpack.emulator.faults import Fault
from kernelpack.errors import ProblemError

SCALE = """
.version 9.1
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 out, .param .u64 in, .param .f32 factor, .param .u32 count)
{
  .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %rd<4>; .reg .pred %p;
  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r0, %r0, %r1, %r2;
  ld.param.u32 %r3, [count]; setp.ge.u32 %p, %r0, %r3; @%p ret;
  ld.param.u64 %rd0, [out]; ld.param.u64 %rd1, [in]; ld.param.f32 %f0, [factor];
  mad.wide.u32 %rd0, %r0, 4, %rd0; mad.wide.u32 %rd1, %r0, 4, %rd1;
  ld.global.f32 %f1, [%rd1]; mul.f32 %f2, %f1, %f0; st.global.f32 [%rd0], %f2;
  ret;
}
"""


@pytest.mark.parametrize("count", [1, 31, 32, 33, 100])
def test_arrays_go_in_and_come_out(count: int):
    """Whole and partial warps and blocks; numbers as parameters."""
    values, out = np.arange(count, dtype=np.float32), np.zeros(count, np.float32)
    launch(SCALE, "scale", 3, (48, 1), out, values, 1.5, count)
    assert (values * np.float32(1.5)).tolist() == out.tolist()


def test_an_array_that_may_not_be_written_is_left_alone():
    """`writeable = False` says that it is an input."""
    values = np.ones(4, np.float32)
    values.setflags(write=False)
    launch(SCALE, "scale", 1, 32, values, values, 2.0, 4)
    assert values.tolist() == [1.0] * 4


def test_reading_past_an_array_is_found():
    """Red zones stand around every array."""
    out = np.zeros(4, np.float32)
    result = launch(SCALE, "scale", 1, 32, out, out.copy(), 1.0, 5)
    assert {"bounds"} == {finding.rule.name for finding in result.findings}


@pytest.mark.parametrize("arguments", [(), (1, 2, 3, 4, 5)])
def test_another_number_of_arguments_is_refused(arguments: tuple[object, ...]):
    """As many as there are parameters."""
    with pytest.raises(Fault, match="for 4 parameters"):
        launch(SCALE, "scale", 1, 32, *arguments)


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ([1.0], r"factor: \[1\.0\] of type list for a parameter of \.f32"),
        (None, "give an array, a number or a tensor map"),
        (np.float64(1), "of type float64"),
    ],
)
def test_what_is_no_argument_is_refused(argument: object, says: str):
    """The parameter is named, and what would be right."""
    with pytest.raises(ProblemError, match=says):
        launch(SCALE, "scale", 1, 32, 0, 0, argument, 4)


@pytest.mark.parametrize("dtype", [object, ">f4"])
def test_an_array_that_no_kernel_can_read_is_refused(dtype: object):
    """Python's objects, and the other byte order."""
    with pytest.raises(ProblemError, match="out: an array of dtype"):
        launch(SCALE, "scale", 1, 32, np.ones(4, dtype), 0, 1.0, 4)


@pytest.mark.parametrize("grid", [0, -1, 1.5, (), (1, 2, 3, 4), True, "2"])
def test_a_shape_that_is_none_is_refused(grid: object):
    """One to three counts."""
    with pytest.raises(ProblemError, match="`grid` is one to three counts"):
        launch(SCALE, "scale", grid, 32, 0, 0, 1.0, 0)


def test_a_shape_of_numpy():
    """numpy's integers are counts too."""
    out = np.ones(2, np.float32)
    launch(SCALE, "scale", np.int64(1), (np.int32(32),), out, out.copy(), 3, 2)
    assert out.tolist() == [3, 3]


def kind_of(value: object) -> str:
    """What a test is called by; 10**5000 has no text."""
    return value if isinstance(value, str) and len(value) < 20 else type(value).__name__


@pytest.mark.parametrize(
    ("word", "given"),
    [
        *(("ptx", ptx) for ptx in (SCALE.encode(), None)),
        *(("schedule", schedule) for schedule in (None, 1)),
        *(("shared_bytes", size) for size in ("1", 1.0, None, 10**5000)),
        *(("seed", seed) for seed in ("x", None)),
        *((word, side) for word in ("grid", "block", "cluster") for side in (10**5000, [[1]])),
        *(("level", level) for level in (99, None, [])),
    ],
    ids=kind_of,
)
def test_what_a_launch_does_not_take_is_refused(word: str, given: object):
    """By name, whatever it is."""
    words = {"ptx": SCALE, "name": "scale", "grid": 1, "block": 32, word: given}
    first = [words.pop(name) for name in ("ptx", "name", "grid", "block")]
    with pytest.raises(ProblemError, match=f"`{word}`|no level"):
        launch(*first, 0, 0, 1.0, 0, **words)


@pytest.mark.parametrize("number", [10**5000, -(10**5000), [10**5000], "x" * 10000], ids=kind_of)
def test_a_long_number_is_no_argument(number: object):
    """Not even its digits can be told."""
    with pytest.raises(ProblemError, match="count: "):
        launch(SCALE, "scale", 1, 32, 0, 0, 1.0, number)
    with pytest.raises(ProblemError, match="factor: "):
        launch(SCALE, "scale", 1, 32, 0, 0, number, 4)


def test_a_level_by_its_name():
    """As a schedule, a level can be said by name; the known ones are told."""
    launch(SCALE, "scale", 1, 32, 0, 0, 1.0, 0, level="strict")
    with pytest.raises(ProblemError, match=r"no level `loud`\n.*error, warn, strict"):
        launch(SCALE, "scale", 1, 32, 0, 0, 1.0, 0, level="loud")
