"""Calls of torch's tensors that look like earlier ones: by Python alone, and by the extension."""

import gc
import sys
import weakref
from contextlib import nullcontext
from functools import lru_cache, partial

import pytest

from kernelpack.errors import (
    CaptureError,
    DriverError,
    KernelpackError,
    ProblemError,
)
from kernelpack.formats.dtype import DType
from kernelpack.frameworks import torch_ops
from kernelpack.frameworks.fill import FACES
from kernelpack.ops import dlpack, native, remember
from kernelpack.ops import lora_shrink_qkv as op
from kernelpack.ops.facts import _READERS, MEMBERS, Facts
from kernelpack.ops.repeat import repeated
from tests.fakes.cuda_torch import Kind, Tensor, pretend
from tests.ops.bench import G, K, M, N
from tests.ops.repeating import NAMES, Placed, calls_of


@pytest.fixture
def bench(tmp_path):
    return Placed(tmp_path)


@pytest.fixture(params=["python", "extension"])
def torch(request, bench, monkeypatch):
    """Calls of tensors go by Python alone, and by the extension."""
    found = pretend(bench.cuda)
    monkeypatch.setitem(sys.modules, "torch", found)
    if request.param == "extension":
        monkeypatch.setattr(native, "_MODULE", taught(request.getfixturevalue("extension")))
        monkeypatch.setattr(native, "call", native._MODULE.call)
    return found


@lru_cache
def taught(extension):
    """The extension with the types that it learns when it is imported, or first sees."""
    for kind, members in MEMBERS.items():
        extension.learn_operand(kind, members)
    for kind in (DType, Kind):
        extension.learn_plain(kind)
    assert extension.learn_tensor(Tensor, Tensor.__dlpack_c_exchange_api__)
    return extension


def test_nothing_is_kept_alive(bench, torch):
    """Arrays end with their caller."""
    tensors = [Tensor(getattr(bench, n).shape, k) for n, k in OF_TORCH.items()]
    for _ in range(2):
        op(*tensors, library=bench.library)
    kept = weakref.ref(tensors[0])
    del tensors
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("what", ["refused", "failed"])
def test_nothing_of_a_refused_call_is_kept_alive(bench, torch, tensors, what):
    """Arrays of a call that is refused, or fails, end with their caller."""
    with_context(bench)
    out = Tensor((3, M + 2, N))
    for _ in range(3):
        op(*tensors, out=out, library=bench.library)
    if what == "refused":
        out = Tensor(out.shape, address=tensors[1].address)
    else:
        bench.cuda.answers["cuLaunchKernelEx"] = 700
    with pytest.raises(KernelpackError):
        op(*tensors, out=out, library=bench.library)
    kept = weakref.ref(out)
    del out
    gc.collect()
    assert kept() is None


def test_a_library_ends_with_its_user(tmp_path, bench, torch):
    """What it remembers of calls does not keep it."""
    (tmp_path / "other").mkdir()
    other = Placed(tmp_path / "other")
    pretend(other.cuda)
    tensors = [Tensor(getattr(bench, n).shape, k) for n, k in OF_TORCH.items()]
    for _ in range(3):
        op(*tensors, library=other.library)
    kept = weakref.ref(other.library)
    del other
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("stream", [1 << 64, (1 << 64) + 1, -1, -(1 << 64)])
def test_no_handle_of_a_stream(bench, torch, tensors, stream):
    """It is refused as in a first call, not cut to 64 bits."""
    with_context(bench)
    call = partial(op, *tensors, out=Tensor((3, M + 2, N)), library=bench.library)
    texts = []
    for _ in range(2):
        with pytest.raises(KernelpackError) as caught:
            call(stream=stream)
        texts.append(str(caught.value))
        call()
    assert texts[0] == texts[1]


@pytest.mark.parametrize("word", ["library", "debug"])
def test_calls_by_name_have_no_words_of_ops(bench, torch, tensors, word):
    """They are refused after a warm call too."""
    arrays = dict(zip(NAMES, [*tensors, Tensor((3, M + 2, N))], strict=True))
    for _ in range(3):
        bench.library.call("lora_shrink_qkv", **arrays)
        with pytest.raises(ProblemError, match=f"takes no `{word}`"):
            bench.library.call("lora_shrink_qkv", **arrays, **{word: False})


class Alien:
    """A tensor of another framework, which speaks the exchange API, and knows no gradients."""

    __dlpack_c_exchange_api__ = Tensor.__dlpack_c_exchange_api__

    def __init__(self, shape, kind):
        self.tensor = Tensor(shape, kind)
        self.shape, self.dtype, self.kind = self.tensor.shape, kind, self.tensor.kind
        self.address = self.tensor.address

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **given):
        return self.tensor.__dlpack__(**given)


def test_tensors_of_others(bench, torch, tensors, monkeypatch):
    """They go the whole way each time, whatever they speak."""
    monkeypatch.delitem(_READERS, Alien, raising=False)
    aliens = [Alien(tensor.shape, tensor.dtype) for tensor in tensors]
    for _ in range(3):
        op(*aliens, out=bench.c, library=bench.library)
    assert bench.parameter("b") == aliens[1].address


def test_two_frameworks(bench, torch, tensors, monkeypatch):
    """Each has a stream of its own to wait for, so such a call goes the whole way."""
    monkeypatch.setattr(Alien, "__module__", "cupy")
    aliens = [Alien(tensor.shape, tensor.dtype) for tensor in tensors]
    assert remember._frameworks([*aliens, *tensors, bench.c]) == {"cupy", "torch"}
    known = Facts("key", [*tensors[:3], aliens[3]], [t.address for t in tensors])
    given = {"out": bench.c, "library": bench.library}
    started = op.start(*known.arrays, **given)
    assert remember.repeat_of(known, started, bench.library) is None


def test_a_tensor_without_an_address(bench, torch, tensors, monkeypatch):
    """A sparse one, say, is refused by DLPack's words, not by torch's own."""

    def refuse(*_args, **_given):
        raise RuntimeError("sparse tensors do not have strides")

    monkeypatch.setattr(Tensor, "stride", refuse)
    monkeypatch.setattr(Tensor, "__dlpack__", refuse)
    tensors[0].requires_grad = True
    with pytest.raises(ProblemError, match="`a` cannot be shared: sparse"):
        op(*tensors, library=bench.library)


OF_TORCH = {"a": "bfloat16", "b": "bfloat16", "a_offsets": "int32", "expert_ids": "int32"}


@pytest.fixture
def tensors(bench, torch):
    return [Tensor(getattr(bench, name).shape, kind) for name, kind in OF_TORCH.items()]


def test_torch(bench, torch, tensors):
    """A tensor is read by its own attributes; what is new is a tensor of torch's."""
    first, second = (op(*tensors, library=bench.library) for _ in range(2))
    assert type(first) is type(second) is Tensor
    assert (second.shape, second.dtype) == ((3, M + 2, N), "bfloat16")
    assert bench.parameter("c") == second.address
    tensors[1].address = bench.array((G, 3 * N, K), DType.BF16).pointer
    op(*tensors, library=bench.library)
    assert bench.parameter("b") == tensors[1].address


def test_nothing_but_outputs_has_memory(bench, torch, tensors):
    """What is kept to make more of them has none: the first call may be in a graph's pool."""
    before = len(bench.cuda.memory)
    for calls in (1, 2, 3):
        op(*tensors, library=bench.library)
        assert len(bench.cuda.memory) == before + calls


@pytest.mark.parametrize("current", [0, 0x77])
def test_order(bench, torch, tensors, current):
    """The stream waits for torch's own, where that is another one, at every call."""
    stream = bench.cuda.new_stream()
    out = Tensor((3, M + 2, N))
    op(*tensors, out=out, library=bench.library, stream=stream)
    torch.current = current or stream
    before = len(bench.cuda.waits)
    op(*tensors, out=out, library=bench.library, stream=stream)
    assert bench.cuda.waits[before:] == ([(stream, current)] if current else [])


OF_A_TENSOR = {
    "requires_grad": (True, "`a` cannot be shared"),
    "dtype": ("float32", "`a` must be bf16, not fp32"),
    "shape": ((M + 2, K - 8), "`b` must have a's k"),
    "address": (0, "`a` has .* elements at 0x0"),
    "cpu": (None, "`a` is a .* in host memory"),
}


@pytest.mark.parametrize("field", OF_A_TENSOR)
def test_a_tensor_that_changed(bench, torch, tensors, monkeypatch, field):
    """It is refused as a first one is."""
    out = Tensor((3, M + 2, N))
    for _ in range(3):
        op(*tensors, out=out, library=bench.library)
    value, message = OF_A_TENSOR[field]
    if field == "cpu":
        monkeypatch.setattr(Tensor, "kind", dlpack.CPU)
    else:
        setattr(tensors[0], field, value)
    with pytest.raises(ProblemError, match=message):
        op(*tensors, out=out, library=bench.library)
    assert len(bench.cuda.launches) == 4


OF_PLACES = {
    "alignment": (
        lambda t, out: setattr(t[1], "address", t[1].address + 8),
        "`b`: must be aligned",
    ),
    "map": (lambda t, out: setattr(t[0], "address", t[0].address + 8), "`a`: must be aligned"),
    "overlap": (lambda t, out: setattr(out, "address", t[1].address), "`out` overlaps `b`"),
}


@pytest.mark.parametrize("what", OF_PLACES)
def test_a_tensor_that_moved(bench, torch, tensors, what):
    """It is refused where it may not lie."""
    out = Tensor((3, M + 2, N))
    for _ in range(3):
        op(*tensors, out=out, library=bench.library)
    move, message = OF_PLACES[what]
    move(tensors, out)
    with pytest.raises(KernelpackError, match=message):
        op(*tensors, out=out, library=bench.library)
    assert len(bench.cuda.launches) == 4


@pytest.mark.parametrize("has_context", [True, False])
def test_the_extension_makes_the_call(bench, torch, tensors, has_context):
    """Once a call is known, Python has little to do for it, most of all beside the extension."""
    out = Tensor((3, M + 2, N))
    calls = [partial(op, *tensors, out=out, library=bench.library)]
    calls.append(partial(op, *tensors, library=bench.library))
    limits = (8, 14) if native.call is not None else (40, 50)
    limits = limits if has_context else tuple(limit + 45 for limit in limits)
    has_context and with_context(bench)
    for call, limit in zip(calls, limits, strict=True):
        for _ in range(3):
            call()
        assert len(calls_of(call)) <= limit
        assert len(bench.cuda.stack) == has_context
    assert calls[0]() is out


def with_context(bench):
    """The thread has the device's context, as one that works with torch has."""
    bench.cuda.stack.append(bench.library.driver.context(0))


@pytest.mark.parametrize("code", [0, 700])
def test_a_launch_that_fails(bench, torch, tensors, code):
    """Its error is the driver's."""
    with_context(bench)
    out = Tensor((3, M + 2, N))
    for _ in range(3):
        op(*tensors, out=out, library=bench.library)
    bench.cuda.answers["cuLaunchKernelEx"] = code
    with pytest.raises(DriverError, match="700") if code else nullcontext():
        op(*tensors, out=out, library=bench.library)


def test_capture_of_tensors(bench, torch, tensors):
    """A launch is captured; a new output is refused while a stream is."""
    with_context(bench)
    out = Tensor((3, M + 2, N))
    stream = torch.current = bench.cuda.new_stream()
    for given in ({"out": out}, {}):
        for _ in range(3):
            op(*tensors, **given, stream=stream, library=bench.library)
    bench.cuda.streams[stream].capturing = True
    op(*tensors, out=out, stream=stream, library=bench.library)
    assert bench.cuda.launches[-1].captured
    with pytest.raises(CaptureError):
        op(*tensors, stream=stream, library=bench.library)


def test_tensors_with_gradients(bench, torch, tensors):
    """A framework's door takes them without; what stands for one is known by it."""
    tensors[1].requires_grad = True
    out = Tensor((3, M + 2, N))
    given = {"out": out, "library": bench.library, "stream": 0}
    face, seen = FACES["lora_shrink_qkv"], tuple(tensors)
    for _ in range(4):
        repeated("a door", lambda: torch_ops._start(face, seen, given), seen, given)
    assert len(bench.cuda.launches) == 5
    assert bench.parameter("b") == tensors[1].address
    tensors[1].address = bench.array((G, 3 * N, K), DType.BF16).pointer
    before = bench.cuda.count("cuTensorMapEncodeTiled")
    repeated("a door", lambda: 1 / 0, seen, given)
    assert bench.parameter("b") == tensors[1].address
    assert bench.cuda.count("cuTensorMapEncodeTiled") == before
