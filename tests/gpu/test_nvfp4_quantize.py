"""The NVFP4 quantiser's op on the real device: every bit, padding, groups, graphs, large inputs.

`test_variants` runs every case on every variant.
"""

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.formats.dtype import DType
from kernelpack.formats.grouped_scales import interleave
from kernelpack.kernels.nvfp4_quantize.cases import cases
from kernelpack.kernels.nvfp4_quantize.definition import NVFP4_QUANTIZE
from kernelpack.kernels.nvfp4_quantize.problem import IN_DTYPES, Case
from kernelpack.kernels.nvfp4_quantize.reference import quantise
from kernelpack.ops.trial import UNTOUCHED
from kernelpack.runtime.streams import Graph, new_stream, synchronize
from tests.gpu.arrays import DEVICE, torch_tensor, upload

# Importing frameworks may warn; that is theirs.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

CASE = Case(
    name="op",
    k=544,
    tokens=(7, 0, 150, 20, 1),
    ids=(2, 1, 0, -1, 2),
    e=3,
    spare_blocks=1,
    values="bits",
    seed=5,
)
INACTIVE = range(157, 177)
"""The rows of the group without an expert."""
PADDING = 0x7F
"""What the scale tensor holds before: NaN, which must be gone."""


@pytest.fixture(scope="module")
def arrays():
    return NVFP4_QUANTIZE.inputs(CASE)


@pytest.fixture(scope="module")
def memories(library, arrays):
    """The inputs of CASE as raw pointers, with the memory that they lie in."""
    return {name: upload(library, array) for name, array in arrays.items()}


@pytest.fixture
def given(memories):
    return {name: view for name, (_, view) in memories.items()}


@pytest.fixture(scope="module")
def expected(arrays):
    return bytes_of(arrays, CASE)


@pytest.fixture
def prepared(library, given):
    """A launch whose outputs hold what must be left, and what must be gone."""
    blocks = CASE.problem.scale_blocks
    _, scales = memory = upload(library, np.full((blocks, 9, 32, 4, 4), PADDING, np.uint8))
    made = ops.nvfp4_quantize.prepare(**given, scales=scales, library=library)
    made.out[0].memory.fill(UNTOUCHED)
    yield made
    del memory


def bytes_of(arrays, case):
    """Codes and scales as they must be; rows that are left hold UNTOUCHED."""
    expected = NVFP4_QUANTIZE.expected(case, arrays)
    codes = np.nan_to_num(expected["codes"].value, nan=UNTOUCHED)
    return codes.astype(np.uint8), expected["scales"].value.astype(np.uint8)


def read(library, outputs, stream=0):
    """The bytes of codes and scales."""
    found = []
    for out in outputs:
        values = np.empty(out.shape, np.uint8)
        view = getattr(out, "view", out)
        library.read(view.pointer, values, DEVICE, stream)
        found.append(values)
    return found


def equal(found, expected):
    return [bool(np.array_equal(a, b)) for a, b in zip(found, expected, strict=True)]


def quantise_on_device(library, x, tensor_scale):
    """Codes and scales of the plain form."""
    kept = [upload(library, x), upload(library, np.array([tensor_scale], np.float32))]
    return read(library, ops.nvfp4_quantize(*(view for _, view in kept), library=library))


def of_rows(x, tensor_scale):
    """The oracle's codes and scales of the plain form."""
    codes, scales = quantise(x, np.full(x.shape[0], tensor_scale, np.float32))
    return codes, interleave(scales)


def test_groups(library, prepared, expected):
    """Every bit is right, padding is zero, and rows without an expert are as they were."""
    prepared()
    assert equal(read(library, prepared.out), expected) == [True, True]


def test_debug(library, given):
    """Debugging finds good groups good."""
    assert ops.nvfp4_quantize(**given, library=library, debug=True)


@pytest.mark.parametrize("dtype", IN_DTYPES)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_case_is_served(library, case, dtype):
    """The bundle has a variant for every case."""
    sizes = case.sizes | {"x_dtype": int(dtype)}
    assert library.select("nvfp4_quantize", sizes, DEVICE)


@pytest.mark.parametrize("tensor_scale", [1.0, 0.37, 448 * 6 / 5, 2.0**-20, 3e30])
@pytest.mark.parametrize("dtype", IN_DTYPES)
def test_every_number(library, dtype, tensor_scale):
    """Every number of x's type, NaN and infinities too, in blocks of its like and of any."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    mixed = np.random.default_rng(3).permutation(np.tile(bits, 8))
    x = np.concatenate([bits, mixed]).view(dtype.numpy).reshape(-1, 512)
    found = quantise_on_device(library, x, tensor_scale)
    assert equal(found, of_rows(x, tensor_scale)) == [True, True]


def test_large(library):
    """16384 rows of 7168 elements: rows repeat, so that the oracle need not do all of them."""
    row = np.arange(16384) % 509
    x = NVFP4_QUANTIZE.inputs(Case(name="t", k=7168, tokens=(509,), seed=9))["x"]
    codes, scales = quantise(x, np.full(509, 300, np.float32))
    found = quantise_on_device(library, x[row], 300)
    assert equal(found, (codes[row], interleave(scales[row]))) == [True, True]


def test_beyond_4_gib(library):
    """The last rows of x lie past 2^32 bytes and 2^31 elements; all others are alike."""
    t, k = 300_000, 7168
    last = NVFP4_QUANTIZE.inputs(Case(name="t", k=k, tokens=(64,), seed=2))["x"]
    memory = library.memory(2 * t * k, DEVICE)
    memory.fill(0x40)
    memory.write(last, 2 * (t - 64) * k)
    x = ops.DeviceArray(pointer=memory.address, shape=(t, k), dtype=DType.BF16)
    kept, one = upload(library, np.ones(1, np.float32))
    codes, _ = read(library, ops.nvfp4_quantize(x, one, library=library))
    assert t * k > 2**31
    assert np.array_equal(codes[-64:], quantise(last, np.ones(64, np.float32))[0])
    assert (codes[:-64] == 0x77).all()
    del kept


def test_graph_with_other_groups(library, memories, prepared, arrays):
    """A captured launch reads groups on the GPU: each replay may have others of the same number."""
    other = Case(name="op", k=544, tokens=(0, 30, 130, 17, 1), ids=(1, -1, 2, 0, 2), e=3, seed=6)
    fresh = NVFP4_QUANTIZE.inputs(other)
    graph = Graph(library.driver, DEVICE)
    with new_stream(library.driver, DEVICE) as stream:
        with graph.capture(stream):
            prepared(stream)
        for name, array in fresh.items():
            memories[name][0].write(array)
        graph.launch(stream)
        synchronize(library.driver, stream, DEVICE)
        found = read(library, prepared.out, stream)
        graph.destroy()
    for name, array in arrays.items():
        memories[name][0].write(array)
    codes, scales = bytes_of(fresh, other)
    padded = np.zeros_like(found[1])
    padded[: len(scales)] = scales
    assert equal(found, (codes, padded)) == [True, True]


def test_launches_in_a_row(library, prepared, given, arrays, expected):
    """Launches that overlap their neighbours' starts still end in order."""
    _, zeros = kept = upload(library, np.zeros_like(arrays["x"]))
    codes, scales = prepared.out
    other = ops.nvfp4_quantize.prepare(
        **given | {"x": zeros}, codes=codes, scales=scales, library=library
    )
    with new_stream(library.driver, DEVICE) as stream:
        [launch(stream) for launch in (other, prepared) * 100]
        synchronize(library.driver, stream, DEVICE)
        assert equal(read(library, prepared.out, stream), expected) == [True, True]
    del kept


@pytest.mark.parametrize("scale_type", ["uint8", "float8_e4m3fn"])
def test_torch(library, arrays, expected, scale_type):
    """torch tensors in, tensors filled, scales as bytes or as e4m3; rows left are left."""
    import torch

    tensors = {name: torch_tensor(torch, array) for name, array in arrays.items()}
    codes = torch.full((178, 272), UNTOUCHED, dtype=torch.uint8, device="cuda")
    scales = torch.full((6, 9, 32, 4, 4), PADDING, dtype=torch.uint8, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    outputs = {"codes": codes, "scales": scales.view(getattr(torch, scale_type))}
    ops.nvfp4_quantize(**tensors, **outputs, stream=stream, library=library, debug=True)
    stream.synchronize()
    assert equal([codes.cpu().numpy(), scales.cpu().numpy()], expected) == [True, True]
    assert (expected[0][INACTIVE] == UNTOUCHED).all()


def test_torch_graph(library):
    """The op inside torch's own graph capture, in torch's memory, on the plain form."""
    import torch

    x = NVFP4_QUANTIZE.inputs(Case(name="t", k=96, tokens=(200,), seed=1))["x"]
    tensor, one = torch_tensor(torch, x), torch.ones(1, device="cuda")
    codes = torch.zeros((200, 48), dtype=torch.uint8, device="cuda")
    scales = torch.full((2, 2, 32, 4, 4), PADDING, dtype=torch.uint8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        stream = torch.cuda.current_stream()
        ops.nvfp4_quantize(tensor, one, codes=codes, scales=scales, stream=stream, library=library)
    graph.replay()
    torch.cuda.synchronize()
    assert equal([codes.cpu().numpy(), scales.cpu().numpy()], of_rows(x, 1)) == [True, True]


def test_torch_interleaves(library):
    """The host helpers lay torch's scales out as the kernel does, e4m3 on the GPU."""
    import torch

    x = NVFP4_QUANTIZE.inputs(Case(name="t", k=160, tokens=(200,), seed=8))["x"]
    _, scales = quantise(x, np.ones(200, np.float32))
    matrix = torch_tensor(torch, scales).view(torch.float8_e4m3fn)
    _, found = quantise_on_device(library, x, 1)
    assert np.array_equal(found, interleave(matrix).view(torch.uint8).cpu().numpy())
