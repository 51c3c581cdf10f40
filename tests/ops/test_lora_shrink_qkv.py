"""The LoRA shrink op on a GPU that is pretended: what is launched, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.errors import CaptureError, ProblemError, SelectionError
from kernelpack.formats.dtype import DType
from kernelpack.load.load import default
from kernelpack.ops import lora_shrink_qkv as op
from tests.fakes.variants import variant
from tests.ops.bench import Bench, K, M, N


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path, variant(), variant(out="fp32"), variant(dtype="fp16"))


def run(bench, *inputs, **options):
    return op(*(inputs or bench.inputs), library=bench.library, **options)


@pytest.mark.parametrize(
    ("parameter", "argument"),
    [("c", "c"), ("b", "b"), ("a_offsets", "a_offsets"), ("expert_ids", "expert_ids")],
)
def test_pointers(bench, parameter, argument):
    """Each array's address goes to its parameter."""
    run(bench, out=bench.c)
    assert bench.parameter(parameter) == getattr(bench, argument).pointer


def test_sizes(bench):
    """m is the output's, not a's rows; k is a's."""
    run(bench, out=bench.c)
    assert (bench.parameter("m"), bench.parameter("k")) == (M, K)


def test_given_output_is_returned(bench):
    """The op returns the output it was given."""
    assert run(bench, out=bench.c) is bench.c


@pytest.mark.parametrize(
    ("options", "shape", "dtype"),
    [
        ({}, (3, M + 2, N), DType.BF16),
        ({"m": 7}, (3, 7, N), DType.BF16),
        ({"m": M, "out_dtype": "fp32"}, (3, M, N), DType.FP32),
    ],
)
def test_new_output(bench, options, shape, dtype):
    """Without an output one is made: all rows of a, or m; a's type, or the one asked for."""
    out = run(bench, **options)
    assert (out.shape, out.dtype, bench.parameter("c")) == (shape, dtype, out.view.pointer)


def test_output_lives_on_the_arrays_device(tmp_path):
    """A new output is made on the device of the inputs, and the kernel runs there."""
    bench = Bench(tmp_path)
    on_second = [bench.array(x.shape, x.dtype, device=1) for x in bench.inputs]
    assert (run(bench, *on_second).device, bench.cuda.launches[0].device) == (1, 1)


@pytest.mark.parametrize("empty", ["m", "n_active"])
def test_nothing_to_compute(bench, empty):
    """Without tokens or without groups nothing is loaded or launched."""
    no_groups = (bench.a, bench.b, bench.values([0], DType.U32), bench.values([], DType.I32))
    inputs, m = {"m": (bench.inputs, 0), "n_active": (no_groups, M)}[empty]
    out = run(bench, *inputs, m=m)
    assert (out.shape, bench.cuda.launches, bench.cuda.images) == ((3, m, N), [], {})


def without_groups(bench):
    return bench.a, bench.b, bench.values([0], DType.U32), bench.values([], DType.I32)


def written(bench, array):
    """What lies in an array on the pretended GPU."""
    found = np.empty(array.shape, array.dtype.numpy)
    bench.cuda.on_cuMemcpyDtoH(found.ctypes.data, array.pointer, found.nbytes)
    return found


def test_tokens_without_a_group_are_zero(bench):
    """Tokens of no group have zeros, as those without an adapter; on the call's stream."""
    out = bench.values(np.full((3, M, N), 7), DType.BF16)
    run(bench, *without_groups(bench), out=out)
    assert not written(bench, out).any()
    assert bench.cuda.count("cuMemsetD8Async") == 1


def test_prepared_without_a_group(bench):
    """A launch that was prepared so writes zeros each time, where its output lies by then."""
    known = dict(zip(("a", "b", "a_offsets", "expert_ids"), without_groups(bench), strict=True))
    prepared = op.prepare(**known, out=bench.c, library=bench.library)
    other = bench.values(np.full((3, M, N), 7), DType.BF16)
    prepared.rebind(c=other)
    prepared()
    assert not written(bench, other).any()


def test_offsets_may_be_longer(bench):
    """Offsets and adapters beyond the groups are ignored: the ids say how many there are."""
    run(bench, bench.a, bench.b, bench.values([0, 4, 4, M, 99], DType.I32), bench.expert_ids)
    assert len(bench.cuda.launches) == 1


@pytest.mark.parametrize(
    ("argument", "changes", "message"),
    [
        ("a", {"shape": (12, 2, 36)}, r"`a` must have the shape \[m, k\]"),
        ("a", {"dtype": DType.FP32}, "`a` must be bf16 or fp16, not fp32"),
        ("a", {"dtype": DType.FP16}, "`b` must be fp16 beside `a`, not bf16"),
        ("a", {"strides": (80, 1)}, "`a` must be row-major without gaps"),
        ("a", {"shape": (12, 64)}, "`b` must have a's k, 64, along side 2, not 72"),
        ("b", {"shape": (4, 47, 72)}, r"`b` must have out's 3 \* n, 48, along side 1, not 47"),
        ("b", {"shape": (4, 12, 72)}, "`n` must be a multiple of 8, not 4"),
        (
            "a_offsets",
            {"shape": (3,)},
            r"`a_offsets` must have at least n_active \+ 1, 4, .* not 3",
        ),
        ("b", {"shape": (4, 48, 64), "strides": (1, 4, 192)}, "`b` must have a's k, 72, along"),
        ("a_offsets", {"dtype": DType.I64}, "`a_offsets` must be u32 or i32, not i64"),
        ("expert_ids", {"dtype": DType.I64}, "`expert_ids` must be i32, not i64"),
        ("expert_ids", {"dtype": DType.U32}, "`expert_ids` must be i32, not u32"),
        ("expert_ids", {"shape": (3, 1)}, "`expert_ids` must have the shape"),
        ("c", {"shape": (2, M, N)}, "`out` must have 3 along side 0, not 2"),
        ("c", {"shape": (3, M, 24)}, "`out` must have b's n, 16, along side 2, not 24"),
        ("c", {"shape": (3, 13, N)}, "`a` must have at least m, 13, along side 0, not 12"),
        ("c", {"dtype": DType.I32}, "`out` must be bf16 or fp32, not i32"),
        ("c", {"is_read_only": True}, "`out` is read-only"),
        ("c", {"strides": (1, 1, 1)}, "`out` must be row-major"),
        ("c", {"device": 1}, "`out` is on device 1, `a` on device 0"),
    ],
)
def test_refused(bench, argument, changes, message):
    """The error names the array and its form, and nothing is launched."""
    setattr(bench, argument, replace(getattr(bench, argument), **changes))
    with pytest.raises(ProblemError, match=message):
        run(bench, out=bench.c)
    assert bench.cuda.launches == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"m": 9}, "`out` must have m, 9, along side 1, not 10"),
        ({"m": -1}, "`m` must be from 0 to below"),
        ({"m": "3"}, "`m` must be an integer, not '3' of type str"),
        ({"m": 3.0}, "`m` must be an integer, not 3.0 of type float"),
        ({"m": True}, "`m` must be an integer, not True of type bool"),
        ({"out_dtype": "fp32"}, "`out` must be fp32 as `out_dtype` says, not bf16"),
        ({"out_dtype": "e4m3"}, "`out_dtype` must be bf16 or fp32, not e4m3"),
        ({"out_dtype": "fp33"}, "`out_dtype`: unknown type `fp33`(.|\n)*`fp32`"),
        ({"out_dtype": 3}, "`out_dtype`: unknown type `3`"),
        ({"stream": "x"}, "`stream` is a str"),
    ],
)
def test_refused_options(bench, options, message):
    """Options that contradict the arrays are refused."""
    with pytest.raises(ProblemError, match=message):
        run(bench, out=bench.c, **options)


def test_no_library(bench):
    """A path is not a library: says how one is made of it."""
    with pytest.raises(ProblemError, match=r"`library` is a str, not a(.|\n)*load\(path\)"):
        op(*bench.inputs, library="x.kpk")


@pytest.mark.parametrize("name", ["a", "b", "a_offsets", "expert_ids"])
def test_overlap(bench, name):
    """An output that shares so much as a byte with an input is refused, beside it is not."""
    end = getattr(bench, name).bytes.stop
    with pytest.raises(ProblemError, match="`out` overlaps"):
        run(bench, out=replace(bench.c, pointer=end - 1))


def test_beside(bench):
    """An output may lie right after an input."""
    bench.c = replace(bench.c, pointer=bench.a.bytes.stop, device=0)
    run(bench, out=bench.c)
    assert bench.parameter("c") == bench.c.pointer


def test_misaligned(bench):
    """An address that TMA cannot read is refused by name."""
    bench.a = replace(bench.a, pointer=bench.a.pointer + 2)
    with pytest.raises(ProblemError, match="`a`: must be aligned to 16 bytes"):
        run(bench, out=bench.c)


def test_no_variant(bench):
    """A pair of types the bundle lacks is refused with the candidates."""
    with pytest.raises(SelectionError, match="`out_dtype` must be bf16 or fp32, not fp16"):
        run(bench, out_dtype="fp16")


def test_stream(bench):
    """The launch goes to the caller's stream."""
    stream = bench.cuda.new_stream()
    run(bench, stream=stream)
    assert bench.cuda.launches[0].stream == stream


def test_stream_of_another_device(bench):
    """A stream of device 1 with arrays of device 0 is refused by name, before any load."""
    with pytest.raises(ProblemError, match="`stream`: belongs to device 1"):
        run(bench, out=bench.c, stream=bench.cuda.new_stream(1))
    assert bench.cuda.images == {}


def test_capture(bench):
    """In a capture the first use is refused; after preload it is recorded."""
    stream = bench.cuda.new_stream(capturing=True)
    with pytest.raises(CaptureError, match="preload"):
        run(bench, out=bench.c, stream=stream)
    bench.cuda.streams[stream].capturing = False
    bench.library.preload(device=0)
    bench.cuda.streams[stream].capturing = True
    run(bench, out=bench.c, stream=stream)
    assert [launch.captured for launch in bench.cuda.launches] == [True]


def test_new_output_in_a_capture(bench):
    """A capture forbids making an output: the caller is asked for one."""
    bench.library.preload(device=0)
    with pytest.raises(CaptureError, match="out="):
        run(bench, stream=bench.cuda.new_stream(capturing=True))


@pytest.mark.parametrize(
    ("offsets", "ids", "message"),
    [
        ([1, 4, 4, M], [2, 0, -1], "`a_offsets` must start with 0, not 1"),
        (
            [0, 4, 4, 9],
            [2, 0, -1],
            "`a_offsets` must end with m = 10 after the 3 groups.* not 9",
        ),
        ([0, 5, 4, M], [2, 0, -1], "`a_offsets` must not fall: group 1 is 5 to 4"),
        ([0, 4, 4, M], [2, 4, -1], r"`expert_ids` must be -1 to 3, not 4 \(group 1\)"),
        ([0, 4, 4, M], [2, 0, -2], r"`expert_ids` must be -1 to 3, not -2 \(group 2\)"),
    ],
)
def test_debug(bench, offsets, ids, message):
    """Debugging reads the groups back and says what is wrong before the launch."""
    groups = (bench.values(offsets, DType.U32), bench.values(ids, DType.I32))
    with pytest.raises(ProblemError, match=message):
        run(bench, bench.a, bench.b, *groups, out=bench.c, debug=True)
    assert bench.cuda.launches == []


def test_debug_in_a_capture(bench):
    """Nothing can be read back there: says to call without, not to load kernels first."""
    bench.library.preload(device=0)
    with pytest.raises(CaptureError, match=r"read back(.|\n)*without `debug=True`"):
        run(bench, out=bench.c, stream=bench.cuda.new_stream(capturing=True), debug=True)


def test_debug_of_good_groups(bench):
    """Good groups run under debugging, after the stream's work was waited for."""
    run(bench, out=bench.c, debug=True)
    assert (len(bench.cuda.launches), bench.cuda.count("cuStreamSynchronize")) == (1, 2)


def test_debug_without_groups(bench):
    """Debugging a call without groups reads nothing."""
    empty = (bench.values([0], DType.U32), bench.values([], DType.I32))
    assert run(bench, bench.a, bench.b, *empty, debug=True).shape == (3, M + 2, N)


def test_no_wait_without_debug(bench):
    """A call does not wait for the GPU."""
    run(bench, out=bench.c)
    assert [name for name in bench.cuda.calls if "Synchronize" in name or "DtoH" in name] == []


def test_unknown_abi(tmp_path):
    """A bundle of a later kernel ABI is refused when the op is called."""
    bench = Bench(tmp_path, variant(abi=3))
    with pytest.raises(Exception, match="kernel ABI 3, this version calls 2"):
        run(bench)


def test_default_library(bench, monkeypatch):
    """Without a library the installed bundle is used."""
    from kernelpack.load import load as module

    monkeypatch.setattr(module, "load", lambda: bench.library)
    default.cache_clear()
    op(*bench.inputs, out=bench.c)
    default.cache_clear()
    assert len(bench.cuda.launches) == 1


def test_public_name():
    """The op is found under `kernelpack.ops`."""
    assert ops.lora_shrink_qkv is op
