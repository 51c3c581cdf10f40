"""Kernels on numpy arrays."""

import ctypes
import struct
from collections.abc import Callable

import numpy as np
import pytest

from kernelpack.emulator import ArrayMap, GlobalMemory, Struct, launch, schedules
from kernelpack.emulator.faults import Fault
from kernelpack.errors import KernelpackError, ProblemError
from kernelpack.spec.launch import Pointer

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
    """Red zones surround every array."""
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
    """Not even its digits can be printed."""
    with pytest.raises(ProblemError, match="count: "):
        launch(SCALE, "scale", 1, 32, 0, 0, 1.0, number)
    with pytest.raises(ProblemError, match="factor: "):
        launch(SCALE, "scale", 1, 32, 0, 0, number, 4)


def test_a_level_by_its_name():
    """As a schedule, a level can be given by name; the error lists the known ones."""
    launch(SCALE, "scale", 1, 32, 0, 0, 1.0, 0, level="strict")
    with pytest.raises(ProblemError, match=r"no level `loud`\n.*error, warn, strict"):
        launch(SCALE, "scale", 1, 32, 0, 0, 1.0, 0, level="loud")


PAIRS = """
.version 9.1
.target sm_100a
.address_size 64
.visible .entry pairs(.param .align 8 .b8 args[24])
{
  .reg .b32 %r<4>; .reg .b64 %rd<4>;
  ld.param.u64 %rd0, [args]; ld.param.v2.u32 {%r0, %r1}, [args+8]; ld.param.u32 %r2, [args+16];
  mad.lo.u32 %r3, %r0, %r1, %r2; st.global.b32 [%rd0], %r3;
  ret;
}
"""
"""One struct by value: { int *out; int a, b; int c; }: *out = a * b + c."""


class Pairs(ctypes.Structure):
    """The same as ctypes has it."""

    _fields_ = (("out", ctypes.c_uint64), ("a", ctypes.c_int), ("b", ctypes.c_int),
                ("c", ctypes.c_int), ("rest", ctypes.c_int))  # fmt: skip


def test_a_struct_by_value():
    """Bytes with an array's address put into them."""
    out = np.zeros(1, np.int32)
    raw = struct.pack("<QiiiI", 0, 6, 7, 0, 0)
    launch(PAIRS, "pairs", 1, 1, Struct(raw, {0: out, 16: np.int32(8)}))
    assert out[0] == 6 * 7 + 8


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, Pairs.from_buffer_copy])
def test_what_has_bytes_is_a_struct(kind: Callable[[bytes], object]):
    """Device pointers in it are addresses in the memory that is given."""
    memory = GlobalMemory(1 << 16)
    address = memory.put(np.zeros(1, np.int32))
    raw = struct.pack("<QiiiI", address, 2, 3, 4, 0)
    launch(PAIRS, "pairs", 1, 1, kind(raw), memory=memory)
    assert memory.read(address, 4).view(np.int32) == 2 * 3 + 4


def test_a_structured_number_of_numpy():
    """Its fields lie as C has them."""
    memory = GlobalMemory(1 << 16)
    address = memory.put(np.zeros(1, np.int32))
    kind = np.dtype([("out", "u8"), ("a", "i4"), ("b", "i4"), ("c", "i4"), ("rest", "i4")])
    launch(PAIRS, "pairs", 1, 1, np.array((address, 5, 5, 1, 0), kind)[()], memory=memory)
    assert memory.read(address, 4).view(np.int32) == 26


def test_a_whole_parameter_block():
    """What a host program packed, with the pointers of today."""
    values, out = np.ones(4, np.float32), np.zeros(4, np.float32)
    block = Struct(struct.pack("<QQfI", 0, 0, 2.5, 4), {0: out, 8: values})
    launch(SCALE, "scale", 1, 32, parameters=block)
    assert out.tolist() == [2.5] * 4


def test_an_array_given_twice_is_one_memory():
    """As a pointer given twice is."""
    values = np.arange(4, dtype=np.float32)
    launch(SCALE, "scale", 1, 32, values, values, 2.0, 4)
    assert values.tolist() == [0, 2, 4, 6]


def test_an_address_is_a_number():
    """Of a memory that the caller fills and reads, through several launches."""
    memory = GlobalMemory(1 << 16)
    values = memory.put(np.ones(4, np.float32))
    for _ in range(3):
        launch(SCALE, "scale", 1, 32, Pointer(values), values, 2.0, 4, memory=memory)
    assert memory.read(values, 16).view(np.float32).tolist() == [8.0] * 4


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (b"123", "args: argument of 3 bytes for a parameter of 24"),
        (Struct(bytes(24), {0: 5}), r"args\+0: 5 has no size of its own"),
        (Struct(bytes(24), {20: np.zeros(1)}), r"args\+20: 8 bytes at 20 of 24"),
        (Struct(bytes(24), {-8: np.zeros(1)}), r"args\+-8: 8 bytes at -8 of 24"),
    ],
)
def test_a_struct_that_does_not_fit_is_refused(given: object, says: str):
    """The parameter is named, and the offset."""
    with pytest.raises(ProblemError, match=says):
        launch(PAIRS, "pairs", 1, 1, given)


def test_a_block_that_does_not_fit_is_refused():
    """By its size; and arguments beside it."""
    with pytest.raises(ProblemError, match="block of 8 bytes; the kernel takes 24 bytes"):
        launch(PAIRS, "pairs", 1, 1, parameters=bytes(8))
    with pytest.raises(ProblemError, match="1 arguments beside"):
        launch(PAIRS, "pairs", 1, 1, 3, parameters=bytes(24))


BOX = """
.version 9.1
.target sm_100a
.address_size 64
.shared .align 128 .b8 tile[256];
.shared .align 8 .b64 bar;
.visible .entry box(.param .u64 out, .param .align 64 .b8 map[128])
{
  .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p<2>;
  mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mov.u32 %r2, bar; setp.eq.u32 %p0, %r0, 0;
  mov.b64 %rd0, map; cvta.param.u64 %rd0, %rd0;
  @!%p0 bra WAIT;
  mbarrier.init.shared.b64 [%r2], 1; fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd0, {4, 1}], [%r2];
WAIT: bar.sync 0;
L: mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0; @!%p1 bra L;
  mad.lo.u32 %r3, %r0, 4, %r1; ld.shared.b32 %r4, [%r3];
  ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r0, 4, %rd1; st.global.b32 [%rd1], %r4;
  ret;
}
"""  # noqa: E501
"""A box of 8 by 4 words at column 4, row 1, to `out`."""


def test_a_tensor_map_by_description():
    """Of an array in C order: its shape, type and strides are the map's."""
    matrix, out = np.arange(160, dtype=np.uint32).reshape(10, 16), np.zeros((4, 8), np.uint32)
    launch(BOX, "box", 1, 32, out, ArrayMap(array=matrix, box=(8, 4)))
    assert matrix[1:5, 4:12].tolist() == out.tolist()


def test_a_map_of_an_array_that_is_an_argument_too():
    """One memory: what the kernel writes through the pointer is in the array."""
    matrix = np.arange(160, dtype=np.uint32).reshape(10, 16)
    expected = matrix[1:5, 4:12].ravel().tolist()
    launch(BOX, "box", 1, 32, matrix, ArrayMap(array=matrix, box=(8, 4)))
    assert expected == matrix.ravel()[:32].tolist()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"box": (8, 300)}, "a box side must be 1 to 256"),
        ({"box": (8,)}, "the box must have the rank of dims"),
        ({"swizzle": "B7"}, "map: no swizzle `B7`"),
        ({"element": "F4"}, "map: no element `F4`"),
        ({"array": np.zeros((4, 16), complex)}, "map: no tensor map over an array of complex128"),
        ({"array": np.zeros((16, 4)).T}, "must be in C order"),
        ({"array": np.zeros((16, 4)).T, "element": "FP64"}, "must be in C order"),
    ],
)
def test_a_map_that_is_none_is_refused(words: dict[str, object], says: str):
    """By the rules of the TMA unit, and by name."""
    described = {"array": np.zeros((10, 16), np.uint32), "box": (8, 4)} | words
    with pytest.raises(KernelpackError, match=says):
        launch(BOX, "box", 1, 32, 0, ArrayMap(**described))


def test_every_schedule_of_a_launch():
    """What holds each warp back is among them; a kernel must be right under all."""
    names = []
    for schedule in schedules(cluster=1, warps=2):
        out = np.ones(64, np.float32)
        launch(SCALE, "scale", 1, 64, out, out, 3, 64, schedule=schedule)
        assert out.tolist() == [3] * 64
        names.append(schedule.name)
    assert names == ["eager", "fair", "lazy", "starving:0:0", "starving:0:1"]
