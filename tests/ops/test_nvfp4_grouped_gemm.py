"""The NVFP4 grouped GEMM on a GPU that is pretended: what is launched, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.errors import ProblemError, SelectionError
from kernelpack.formats.dtype import DType
from kernelpack.ops import nvfp4_grouped_gemm as op
from tests.fakes.grouped import GroupedBench

T, N, E, GROUPS = 150, 136, 3, 3


@pytest.fixture
def bench(tmp_path):
    return GroupedBench(tmp_path, "nvfp4_grouped_gemm")


def run(bench, **options):
    return op(**bench.arrays, library=bench.library, **options)


NAMES = ("a", "b", "a_scales", "b_scales", "group_offsets", "group_scale_offsets")


@pytest.mark.parametrize("name", [*NAMES, "expert_ids", "expert_scales"])
def test_pointers(bench, name):
    """Each array's address goes to its parameter."""
    run(bench)
    assert bench.parameter(name) == bench.arrays[name].pointer


@pytest.mark.parametrize(
    ("options", "dtype"), [({}, DType.BF16), ({"out_dtype": "float32"}, DType.FP32)]
)
def test_new_output(bench, options, dtype):
    """Without an output one of t rows and n columns is made, of bf16 or the type asked for."""
    out = run(bench, **options)
    assert (out.shape, out.dtype, bench.parameter("c")) == ((T, N), dtype, out.view.pointer)


def test_given_output(bench):
    """An output's type decides the kernel, and the op returns the output."""
    c = bench.upload(np.zeros((T, N), np.float32))
    assert run(bench, out=c) is c
    assert "fp32" in bench.cuda.launches[0].entry


@pytest.mark.parametrize("dtype", [DType.U8, DType.E4M3])
def test_scales_are_bytes_or_e4m3(bench, dtype):
    """Scales are taken as bytes and as the numbers they are."""
    for name in ("a_scales", "b_scales"):
        bench.arrays[name] = replace(bench.arrays[name], dtype=dtype)
    run(bench)
    assert len(bench.cuda.launches) == 1


@pytest.mark.parametrize(
    ("name", "shape"), [("a", (0, 48)), ("expert_ids", (0,))], ids=["tokens", "groups"]
)
def test_nothing_to_compute(bench, name, shape):
    """Without tokens or without groups nothing is loaded or launched."""
    bench.arrays[name] = replace(bench.arrays[name], shape=shape)
    out = run(bench)
    assert (out.shape[1], bench.cuda.launches, bench.cuda.images) == (N, [], {})


def test_debug_without_groups(bench):
    """Debugging a call without groups finds nothing wrong."""
    bench.arrays["expert_ids"] = replace(bench.arrays["expert_ids"], shape=(0,))
    assert run(bench, debug=True).shape == (T, N)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("a", {"dtype": DType.BF16}, "`a` must be u8, not bf16"),
        ("a", {"shape": (T, 6, 8)}, r"`a` must have the shape \[t, k//2\], not \[150, 6, 8\]"),
        ("a", {"shape": (T, 64)}, "`b` must have k // 2, 64, along side 2, not 48"),
        ("a", {"strides": (64, 1)}, "`a` must be row-major without gaps"),
        ("b", {"shape": (E, 12, 48)}, "`n` must be a multiple of 8, not 12"),
        ("a_scales", {"shape": (1, 2, 32, 4, 4)}, r"at least ceil\(t / 128\) = 2 row blocks"),
        ("a_scales", {"shape": (3, 1, 32, 4, 4)}, r"must have cdiv\(k, 64\), 2, along side 1"),
        ("a_scales", {"shape": (3, 2, 4, 32, 4)}, "must have 32 along side 2, not 4"),
        ("a_scales", {"dtype": DType.E5M2}, "`a_scales` must be e4m3 or u8, not e5m2"),
        ("b_scales", {"shape": (E, 1, 2, 32, 4, 4)}, "b's cdiv.n, 128., 2, along side 1"),
        ("b_scales", {"shape": (E, 2, 2, 512)}, "`b_scales` must have the shape"),
        ("group_offsets", {"shape": (GROUPS,)}, r"must have at least n_active \+ 1, 4, along"),
        ("group_offsets", {"dtype": DType.I64}, "`group_offsets` must be u32 or i32, not i64"),
        ("group_scale_offsets", {"shape": (2,)}, "must have at least n_active, 3, along"),
        ("expert_ids", {"dtype": DType.U32}, "`expert_ids` must be i32, not u32"),
        ("expert_scales", {"shape": (2,)}, "`expert_scales` must have b's e, 3, along"),
        ("expert_scales", {"dtype": DType.BF16}, "`expert_scales` must be fp32, not bf16"),
    ],
)
def test_refused(bench, name, changes, message):
    """The error names the array and its form, and nothing is launched."""
    bench.arrays[name] = replace(bench.arrays[name], **changes)
    with pytest.raises(ProblemError, match=message):
        run(bench)
    assert bench.cuda.launches == []


def test_k_of_half_a_vector(tmp_path):
    """Rows of 24 bytes cannot be copied by TMA."""
    bench = GroupedBench(tmp_path, "nvfp4_grouped_gemm")
    for name in ("a", "b"):
        array = bench.arrays[name]
        bench.arrays[name] = replace(array, shape=(*array.shape[:-1], 24))
    with pytest.raises(ProblemError, match="`k` must be a multiple of 32, not 48"):
        run(bench)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": (T, N + 8)}, "`out` must have b's n, 136, along side 1, not 144"),
        ({"strides": (2 * N, 1)}, "`out` must be row-major without gaps"),
        ({"strides": (1, T)}, "`out` must be row-major without gaps"),
        ({"dtype": DType.E4M3}, "`out` must be bf16 or fp32, not e4m3"),
        ({"is_read_only": True}, "`out` is read-only"),
    ],
)
def test_refused_output(bench, changes, message):
    """An output with other rows between its rows is refused, not written through."""
    c = bench.upload(np.zeros((T, 2 * N), np.float32))
    known = {"shape": (T, N), "dtype": DType.FP32}
    with pytest.raises(ProblemError, match=message):
        run(bench, out=replace(c, **known | changes))
    assert bench.cuda.launches == []


def test_output_over_an_input(bench):
    """An output in the memory of an input is refused.

    It is larger than the scales, so it may reach what lies after them too.
    """
    c = replace(bench.arrays["b_scales"], shape=(T, N), dtype=DType.BF16)
    with pytest.raises(ProblemError, match="`out` overlaps `"):
        run(bench, out=c)


def test_misaligned(bench):
    """An address that TMA cannot read is refused by name."""
    array = bench.arrays["a_scales"]
    bench.arrays["a_scales"] = replace(array, pointer=array.pointer + 4)
    with pytest.raises(ProblemError, match="`a_scales`: must be aligned to 16 bytes"):
        run(bench)


def test_no_variant(bench):
    """A type of output that the bundle lacks is refused with the candidates."""
    with pytest.raises(SelectionError, match="`out_dtype` must be bf16 or fp32, not fp16"):
        run(bench, out_dtype="fp16")


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("group_offsets", [1, 50, 100, T], "`group_offsets` must start with 0, not 1"),
        ("group_offsets", [0, 50, 100, 149], "`group_offsets` must end with t = 150"),
        ("group_offsets", [0, 100, 50, T], "`group_offsets` must not fall: group 1 is 100 to 50"),
        ("expert_ids", [0, 1, 3], r"`expert_ids` must be -1 to 2, not 3 \(group 2\)"),
        ("expert_ids", [-2, 1, 2], r"`expert_ids` must be -1 to 2, not -2 \(group 0\)"),
        ("group_scale_offsets", [0, 1, 1], "must be 2 for group 2, not 1"),
        ("expert_scales", [1, np.nan, 1], r"must be finite, not nan \(expert 1\)"),
        ("expert_scales", [1, 1, -np.inf], r"must be finite, not -inf \(expert 2\)"),
    ],
)
def test_debug(bench, name, values, message):
    """Debugging reads the groups back and says what is wrong before the launch."""
    kind = bench.arrays[name].dtype.numpy
    bench.arrays[name] = bench.upload(np.array(values, kind))
    with pytest.raises(ProblemError, match=message):
        run(bench, debug=True)
    assert bench.cuda.launches == []


def test_debug_of_row_blocks(bench):
    """Debugging knows how many row blocks the groups need."""
    array = bench.arrays["a_scales"]
    bench.arrays["a_scales"] = replace(array, shape=(2, *array.shape[1:]))
    with pytest.raises(ProblemError, match="`a_scales` must have 3 row blocks for these groups"):
        run(bench, debug=True)


def with_byte(bench, name, place, byte):
    """The scales of an argument, one byte of them replaced."""
    array = bench.arrays[name]
    scales = np.empty(array.shape, np.uint8)
    bench.library.read(array.pointer, scales, 0, 0)
    scales[place] = byte
    return bench.upload(scales)


@pytest.mark.parametrize(
    ("name", "place", "byte", "message"),
    [
        ("a_scales", (0, 0, 0, 0, 0), 0x80, r"0x80 \(row 0 of `a`, block 0\)"),
        ("a_scales", (2, 1, 1, 0, 1), 0xFF, r"0xff \(row 101 of `a`, block 5\)"),
        ("b_scales", (2, 1, 1, 7, 0, 1), 0xB8, r"0xb8 \(expert 2, row 135, block 5\)"),
        ("b_scales", (0, 0, 0, 31, 3, 0), 0x80, r"0x80 \(expert 0, row 127, block 0\)"),
    ],
)
def test_debug_of_scales(bench, name, place, byte, message):
    """A scale with bit 7 set, which nothing defines, is refused with its place."""
    bench.arrays[name] = with_byte(bench, name, place, byte)
    with pytest.raises(ProblemError, match=f"`{name}` must be 0 to 0x7f, not {message}"):
        run(bench, debug=True)
    assert bench.cuda.launches == []


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("a_scales", (0, 0, 31, 3, 0)),  # row 127 of a group of 50
        ("a_scales", (1, 0, 0, 0, 0)),  # of the group without an expert
        ("b_scales", (0, 1, 0, 8, 0, 0)),  # row 136 of 136
        ("b_scales", (1, 0, 0, 0, 0, 0)),  # of an expert without a group
    ],
)
def test_debug_of_bytes_that_are_no_scale(bench, name, place):
    """Padding rows, and what no group reads, may hold any byte."""
    bench.arrays["expert_ids"] = bench.upload(np.array([0, -1, 2], np.int32))
    bench.arrays[name] = with_byte(bench, name, place, 0xFF)
    run(bench, debug=True)
    assert len(bench.cuda.launches) == 1


def test_debug_of_good_groups(bench):
    """Good groups run under debugging."""
    run(bench, debug=True)
    assert len(bench.cuda.launches) == 1


def test_no_wait_without_debug(bench):
    """A call does not wait for the GPU."""
    run(bench)
    assert [name for name in bench.cuda.calls if "Synchronize" in name or "DtoH" in name] == []


def test_prepare(bench):
    """A prepared launch is the op's, and follows an array to another address."""
    prepared = op.prepare(**bench.arrays, library=bench.library)
    other = bench.upload(np.zeros((T, 48), np.uint8))
    prepared.rebind(a=other)
    prepared(bench.cuda.new_stream())
    assert (bench.parameter("a"), bench.parameter("t")) == (other.pointer, T)


def test_public_name():
    """The op is found under `kernelpack.ops`."""
    assert ops.nvfp4_grouped_gemm is op
