"""The LoRA shrink op on the real device: arrays of every origin, streams, graphs, big adapters."""

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.errors import CaptureError, ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.lora_shrink_qkv.cases import cases
from kernelpack.kernels.lora_shrink_qkv.definition import LORA_SHRINK_QKV
from kernelpack.kernels.lora_shrink_qkv.problem import Case
from kernelpack.load.load import load
from kernelpack.ops.trial import Trial
from kernelpack.runtime.streams import Graph, new_stream, synchronize
from tests.gpu.arrays import DEVICE, ratio, torch_tensor, upload

# Importing frameworks may warn; that is theirs.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

CASE = Case(name="op", g=4, n=16, k=4096, tokens=(7, 0, 20, 1), ids=(2, 1, -1, 2), seed=5)
TYPES = [
    (DType.BF16, DType.BF16),
    (DType.BF16, DType.FP32),
    (DType.FP16, DType.FP16),
    (DType.FP16, DType.FP32),
]


@pytest.fixture(scope="module")
def device_inputs(library):
    """The inputs of CASE as raw pointers, with the memory that they lie in."""
    arrays = LORA_SHRINK_QKV.inputs(CASE)
    return {name: upload(library, array) for name, array in arrays.items()}


@pytest.fixture(scope="module")
def expected():
    return LORA_SHRINK_QKV.expected(CASE, LORA_SHRINK_QKV.inputs(CASE))["c"]


def views(device_inputs):
    return [view for _, view in device_inputs.values()]


def test_raw_pointers(library, device_inputs, expected):
    """Addresses, shapes and types are enough."""
    out = ops.lora_shrink_qkv(*views(device_inputs), library=library, debug=True)
    assert ratio(library, out, expected) <= 1


def test_per_thread_default_stream(library, device_inputs, expected):
    """Stream 2 is the thread's own default stream."""
    out = ops.lora_shrink_qkv(*views(device_inputs), library=library, stream=2)
    assert ratio(library, out, expected, 2) <= 1


@pytest.mark.parametrize(("dtype", "out_dtype"), TYPES)
def test_chosen_variant(library, dtype, out_dtype):
    """The variant that selection takes is right for every pair of types."""
    case = replace(CASE, dtype=dtype, out_dtype=out_dtype)
    trial = Trial(library, LORA_SHRINK_QKV, case, DEVICE)
    assert [str(c) for c in trial.check(trial.select()) if not c.is_right] == []


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_case_is_served(library, case):
    """The bundle has a variant for every case."""
    assert library.select("lora_shrink_qkv", case.sizes, DEVICE).arch.name == "sm_90a"


def test_graph(library, device_inputs, expected):
    """A captured launch computes when the graph runs, again and again."""
    driver = library.driver
    prepared = ops.lora_shrink_qkv.prepare(*views(device_inputs), library=library)
    graph = Graph(driver, DEVICE)
    with new_stream(driver, DEVICE) as stream:
        with graph.capture(stream):
            prepared(stream)
        prepared.out.memory.fill(0xFF)
        graph.launch(stream)
        graph.launch(stream)
        synchronize(driver, stream, DEVICE)
        graph.destroy()
    assert ratio(library, prepared.out, expected) <= 1


def test_first_use_in_a_capture(request, device_inputs):
    """A library that has loaded nothing says what to call, and the capture lives on."""
    cold = load(request.config.getoption("--bundle"))
    memory = cold.memory(3 * 28 * 16 * 2, DEVICE)
    c = ops.DeviceArray(pointer=memory.address, shape=(3, 28, 16), dtype=DType.BF16)
    graph = Graph(cold.driver, DEVICE)
    with new_stream(cold.driver, DEVICE) as stream:
        with graph.capture(stream), pytest.raises(CaptureError, match="preload"):
            ops.lora_shrink_qkv(*views(device_inputs), out=c, stream=stream, library=cold)
        graph.destroy()


def test_memory_freed_in_a_capture(library):
    """Dropping an output while a stream is captured does not break the capture."""
    memories = [library.memory(1024, DEVICE)]
    graph = Graph(library.driver, DEVICE)
    with new_stream(library.driver, DEVICE) as stream:
        with graph.capture(stream):
            memories.clear()
        graph.launch(stream)
        synchronize(library.driver, stream, DEVICE)
        graph.destroy()


def test_rebind(library, device_inputs, expected):
    """A prepared launch follows its arrays to other addresses."""
    zeros = {name: upload(library, np.zeros_like(a)) for name, a in inputs().items()}
    prepared = ops.lora_shrink_qkv.prepare(*views(zeros), library=library)
    prepared()
    prepared.rebind(**{name: view for name, (_, view) in device_inputs.items()})
    prepared()
    assert ratio(library, prepared.out, expected) <= 1


def inputs():
    return LORA_SHRINK_QKV.inputs(CASE)


def test_launches_in_a_row(library, device_inputs, expected):
    """Launches that overlap their neighbours' starts still end in order."""
    zeros = {name: upload(library, np.zeros_like(a)) for name, a in inputs().items()}
    _, zero_a = zeros["a"]
    first = ops.lora_shrink_qkv.prepare(*views(device_inputs), library=library)
    other = ops.lora_shrink_qkv.prepare(
        zero_a, *views(device_inputs)[1:], out=first.out, library=library
    )
    with new_stream(library.driver, DEVICE) as stream:
        [launch(stream) for launch in (other, first) * 100]
        synchronize(library.driver, stream, DEVICE)
        assert ratio(library, first.out, expected, stream) <= 1


@pytest.mark.parametrize("out_dtype", ["bfloat16", "float16", "float32"])
def test_torch(library, expected, out_dtype):
    """torch tensors in, a torch tensor filled; on torch's current stream."""
    import torch

    tensors = [torch_tensor(torch, array) for array in inputs().values()]
    out = torch.full((3, 28, 16), float("nan"), dtype=getattr(torch, out_dtype), device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    ops.lora_shrink_qkv(*tensors, out=out, stream=stream, library=library, debug=True)
    stream.synchronize()
    kind = DType.parse({"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[out_dtype])
    bound = LORA_SHRINK_QKV.expected(replace(CASE, out_dtype=kind), inputs())["c"].bound
    error = np.abs(out.double().cpu().numpy() - expected.value)
    assert (error <= bound).all()


def test_torch_takes_an_output(library, device_inputs, expected):
    """An output the op made becomes a torch tensor without a copy, and outlives the op's object."""
    import torch

    out = ops.lora_shrink_qkv(*views(device_inputs), library=library)
    address, tensor = out.view.pointer, torch.from_dlpack(out)
    del out
    torch.cuda.synchronize()
    error = np.abs(tensor.double().cpu().numpy() - expected.value)
    assert (address, True) == (tensor.data_ptr(), bool((error <= expected.bound).all()))


def test_torch_gradient_is_refused(library):
    """A tensor that needs a gradient is refused by name."""
    import torch

    tensors = [torch_tensor(torch, array) for array in inputs().values()]
    tensors[0].requires_grad_()
    with pytest.raises(ProblemError, match="`a` cannot be shared"):
        ops.lora_shrink_qkv(*tensors, library=library)


def test_torch_graph(library, expected):
    """The op inside torch's own graph capture, in torch's memory."""
    import torch

    tensors = [torch_tensor(torch, array) for array in inputs().values()]
    out = torch.full((3, 28, 16), float("nan"), dtype=torch.bfloat16, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        stream = torch.cuda.current_stream()
        ops.lora_shrink_qkv(*tensors, out=out, stream=stream, library=library)
    graph.replay()
    torch.cuda.synchronize()
    error = np.abs(out.double().cpu().numpy() - expected.value)
    assert (error <= expected.bound).all()


def test_cupy(library):
    """cupy arrays in (fp16), and the output back as a cupy array."""
    import cupy

    case = replace(CASE, dtype=DType.FP16, out_dtype=DType.FP32)
    arrays = LORA_SHRINK_QKV.inputs(case)
    given = [cupy.asarray(array) for array in arrays.values()]
    stream = cupy.cuda.Stream(non_blocking=True)
    out = ops.lora_shrink_qkv(*given, out_dtype="fp32", stream=stream, library=library)
    stream.synchronize()
    wanted = LORA_SHRINK_QKV.expected(case, arrays)["c"]
    error = np.abs(cupy.asarray(out).get() - wanted.value)
    assert (error <= wanted.bound).all()


def test_cuda_array_interface(library):
    """An object that has nothing but the array interface is enough."""
    import cupy

    class Bare:
        def __init__(self, array):
            self.array = array
            self.__cuda_array_interface__ = array.__cuda_array_interface__

    case = replace(CASE, dtype=DType.FP16, out_dtype=DType.FP16)
    arrays = LORA_SHRINK_QKV.inputs(case)
    given = [Bare(cupy.asarray(array)) for array in arrays.values()]
    out = ops.lora_shrink_qkv(*given, library=library)
    assert ratio(library, out, LORA_SHRINK_QKV.expected(case, arrays)["c"]) <= 1


def test_adapters_beyond_4_gib(library):
    """Adapters are found past 2^32 bytes and 2^31 elements: all others hold NaN."""
    n, k, g = 64, 8192, 1400
    case = Case(name="big", g=1, n=n, k=k, tokens=(5, 3), ids=(0, 0))
    arrays = LORA_SHRINK_QKV.inputs(case)
    adapter = arrays["b"].nbytes
    memory = library.memory(g * adapter, DEVICE)
    memory.fill(0xFF)
    memory.write(arrays["b"], (g - 1) * adapter)
    b = ops.DeviceArray(pointer=memory.address, shape=(g, 3 * n, k), dtype=DType.BF16)
    arrays["expert_ids"] = np.array([g - 1, g - 1], np.int32)
    kept = {name: upload(library, a) for name, a in arrays.items() if name != "b"}
    a, a_offsets, expert_ids = views(kept)
    out = ops.lora_shrink_qkv(a, b, a_offsets, expert_ids, library=library)
    expected = LORA_SHRINK_QKV.expected(case, LORA_SHRINK_QKV.inputs(case))["c"]
    assert g * adapter > 2**32
    assert ratio(library, out, expected) <= 1


def test_host_pointer_is_refused(library, device_inputs):
    """An address of host memory is refused before a launch."""
    host = ctypes.create_string_buffer(28 * 4096 * 2)
    a = ops.DeviceArray(pointer=ctypes.addressof(host), shape=(28, 4096), dtype=DType.BF16)
    with pytest.raises(ProblemError, match="not an address of device memory"):
        ops.lora_shrink_qkv(a, *views(device_inputs)[1:], library=library)
