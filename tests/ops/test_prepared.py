"""A prepared launch: chosen and packed once, pointers patched."""

from dataclasses import replace

import pytest

from kernelpack.errors import CaptureError, ForkError, ProblemError, TensorMapError
from kernelpack.formats.dtype import DType
from kernelpack.ops import lora_shrink_qkv as op
from tests.ops.bench import Bench, K, M, N


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


@pytest.fixture
def prepared(bench):
    return op.prepare(*bench.inputs, out=bench.c, library=bench.library)


def test_preparing_launches_nothing(bench, prepared):
    """The kernel is loaded, not started."""
    assert (len(bench.cuda.images), bench.cuda.launches) == (1, [])


def test_same_as_the_op(bench, prepared):
    """A prepared launch gives the driver what the op gives it."""
    prepared()
    op(*bench.inputs, out=bench.c, library=bench.library)
    assert bench.cuda.launches[0] == bench.cuda.launches[1]


def test_ten_thousand_launches(bench, prepared):
    """Launching on and on asks the driver for nothing else, and encodes each map once."""
    stream = bench.cuda.new_stream()
    prepared(stream)
    before = len(bench.cuda.calls)
    [prepared(stream) for _ in range(10_000)]
    assert (len(bench.cuda.launches), len(bench.cuda.calls)) == (10_001, before)
    assert bench.cuda.count("cuTensorMapEncodeTiled") == 1


@pytest.mark.parametrize("name", ["c", "b", "a_offsets", "expert_ids"])
def test_rebind_pointer(bench, prepared, name):
    """An array of the same shape elsewhere takes the parameter over; no map is encoded."""
    old = getattr(bench, name)
    other = bench.array(old.shape, old.dtype)
    prepared.rebind(**{name: other})
    prepared()
    assert (bench.parameter(name), bench.cuda.count("cuTensorMapEncodeTiled")) == (other.pointer, 1)


def test_rebind_address(bench, prepared):
    """An address alone stands for an array like the one before."""
    prepared.rebind(b=bench.b.pointer + 256)
    prepared()
    assert bench.parameter("b") == bench.b.pointer + 256


def test_rebind_map(bench, prepared):
    """A tensor map follows its array, and the same array again costs nothing."""
    other = bench.array((M + 2, K), DType.BF16)
    prepared.rebind(a=other)
    prepared.rebind(a=other)
    prepared()
    words = f"[9, 2, {other.pointer}, [72, 10]".encode()
    assert bench.cuda.launches[0].parameters[0].startswith(words)
    assert bench.cuda.count("cuTensorMapEncodeTiled") == 2


def test_rebind_output(bench, prepared):
    """A new output is the prepared launch's output."""
    other = bench.array((3, M, N), DType.BF16)
    prepared.rebind(c=other)
    assert prepared.out is other


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("a", {"shape": (M, K)}, r"`a` was prepared with shape \(12, 72\), not \(10, 72\)"),
        ("a", {"dtype": DType.FP16}, "`a` was prepared with dtype .*, not"),
        ("a", {"device": 1}, "`a` was prepared with device 0, not 1"),
        ("a", {"strides": (80, 1)}, "`a` must be row-major without gaps"),
    ],
)
def test_rebind_refused(bench, prepared, name, changes, message):
    """An array of another problem is refused."""
    with pytest.raises(ProblemError, match=message):
        prepared.rebind(**{name: replace(getattr(bench, name), **changes)})


@pytest.mark.parametrize("name", ["a", "c"])
def test_rebind_overlap(bench, prepared, name):
    """An output is never put over an input, nor an input over the output; the old ones stay."""
    other = {"a": "c", "c": "b"}[name]
    with pytest.raises(ProblemError, match="`c` overlaps"):
        prepared.rebind(**{name: getattr(bench, other).pointer})
    prepared()
    assert bench.parameter("c") == bench.c.pointer


def test_rebind_exchange(bench, prepared):
    """Arrays are put in place together: the output where an input was that moves away."""
    a = bench.array(bench.a.shape, bench.a.dtype)
    c = replace(bench.c, pointer=bench.a.pointer)
    prepared.rebind(c=c, a=a)
    prepared()
    assert (bench.parameter("c"), prepared.out) == (bench.a.pointer, c)


def test_rebind_read_only(bench, prepared):
    """An output that may not be written is refused."""
    with pytest.raises(ProblemError, match="`c` is read-only"):
        prepared.rebind(c=replace(bench.array(bench.c.shape, bench.c.dtype), is_read_only=True))


def test_prepare_for_the_emulator(bench):
    """A launch is prepared for a GPU: what is not a library for one is refused."""
    with pytest.raises(ProblemError, match="`library` is a str, not a library"):
        op.prepare(*bench.inputs, out=bench.c, library="x.kpk")


def test_rebind_unknown(prepared):
    """A name that is not an argument lists those that are."""
    with pytest.raises(ProblemError, match="no argument `q`\nhint: arguments: a, b, a_offsets"):
        prepared.rebind(q=0)


@pytest.mark.parametrize(("name", "shift"), [("a", 8), ("b", 8), ("c", 8), ("expert_ids", 2)])
def test_rebind_misaligned(bench, prepared, name, shift):
    """An address off its alignment is refused by name, and the launch keeps the old one."""
    with pytest.raises((ProblemError, TensorMapError), match=f"`{name}`: must be aligned"):
        prepared.rebind(**{name: getattr(bench, name).pointer + shift})
    prepared()
    assert bench.parameter("c") == bench.c.pointer


@pytest.mark.parametrize("address", [0, -16, 2**64])
def test_rebind_no_address(bench, prepared, address):
    """A number that no array can lie at is refused by name, and nothing is put."""
    with pytest.raises(ProblemError, match=r"`b` has .* elements at .*, no address"):
        prepared.rebind(a=bench.array(bench.a.shape, bench.a.dtype), b=address)
    prepared()
    assert bench.parameter("b") == bench.b.pointer


def test_a_refused_rebind_puts_nothing(bench, prepared):
    """An array that is good stays out where another one is off its alignment."""
    other = bench.array(bench.c.shape, bench.c.dtype)
    with pytest.raises(ProblemError, match="`expert_ids`: must be aligned"):
        prepared.rebind(c=other, expert_ids=bench.expert_ids.pointer + 2)
    prepared()
    assert (bench.parameter("c"), prepared.out) == (bench.c.pointer, bench.c)


def test_own_output(bench):
    """Without an output the prepared launch makes and keeps one."""
    prepared = op.prepare(*bench.inputs, library=bench.library)
    prepared()
    assert bench.parameter("c") == prepared.out.view.pointer


def test_nothing_to_compute(bench):
    """A prepared launch of no tokens does nothing, and can be bound again."""
    prepared = op.prepare(*bench.inputs, m=0, library=bench.library)
    prepared.rebind(a=bench.a.pointer)
    none = replace(prepared.out.view, pointer=0, device=None)  # as frameworks have it
    prepared.rebind(c=none)
    prepared()
    assert (prepared.variant, bench.cuda.launches) == (None, [])


def test_prepare_in_a_capture(bench):
    """Preparing a first use in a capture is refused before any load."""
    stream = bench.cuda.new_stream(capturing=True)
    with pytest.raises(CaptureError, match="preload"):
        op.prepare(*bench.inputs, out=bench.c, stream=stream, library=bench.library)


def test_fork(bench, prepared):
    """A child of fork may not use what its parent prepared."""
    bench.library.driver.is_forked = True
    with pytest.raises(ForkError):
        prepared()
