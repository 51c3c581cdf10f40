"""The NVFP4 grouped GEMM's op on the real device: groups, padding, outputs, graphs, big weights."""

from dataclasses import replace

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.nvfp4_grouped_gemm.cases import cases
from kernelpack.kernels.nvfp4_grouped_gemm.definition import NVFP4_GROUPED_GEMM
from kernelpack.kernels.nvfp4_grouped_gemm.problem import Case
from kernelpack.ops.trial import UNTOUCHED, Trial
from kernelpack.runtime.streams import Graph, new_stream, synchronize
from tests.gpu.arrays import DEVICE, ratio, run, torch_tensor, upload
from tests.kernels.nan_scales import expected_nan, with_nan

# Importing frameworks may warn; that is theirs.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

CASE = Case(
    name="op",
    e=4,
    n=264,
    k=544,
    tokens=(7, 0, 150, 20, 1),
    ids=(2, 1, 0, -1, 2),
    spare_blocks=1,
    seed=5,
)
SHAPE = (178, 264)
INACTIVE = range(157, 177)
"""The rows of the group without an expert."""


@pytest.fixture(scope="module")
def arrays():
    return NVFP4_GROUPED_GEMM.inputs(CASE)


@pytest.fixture(scope="module")
def memories(library, arrays):
    """The inputs of CASE as raw pointers, with the memory that they lie in."""
    return {name: upload(library, array) for name, array in arrays.items()}


@pytest.fixture
def given(memories):
    return {name: view for name, (_, view) in memories.items()}


@pytest.fixture(scope="module")
def expected(arrays):
    return NVFP4_GROUPED_GEMM.expected(CASE, arrays)["c"]


@pytest.fixture
def prepared(library, given):
    """A launch whose output holds what the oracle calls untouched."""
    made = ops.nvfp4_grouped_gemm.prepare(**given, library=library)
    made.out.memory.fill(UNTOUCHED)
    return made


def test_groups(library, prepared, expected):
    """Rows of experts are right, and those of the group without one are as they were."""
    prepared()
    assert ratio(library, prepared.out, expected) <= 1


def test_debug(library, given):
    """Debugging finds good groups good, and offsets of scales that are an absolute start wrong."""
    ops.nvfp4_grouped_gemm(**given, library=library, debug=True)
    _, wrong = upload(library, np.array([0, 1, 1, 3, 4], np.uint32))
    given["group_scale_offsets"] = wrong
    with pytest.raises(ProblemError, match="must be 2 for group 3, not 3"):
        ops.nvfp4_grouped_gemm(**given, library=library, debug=True)


@pytest.mark.parametrize("out_dtype", [DType.BF16, DType.FP16, DType.FP32])
def test_chosen_variant(library, out_dtype):
    """The variant that selection takes is right for every type of output."""
    trial = Trial(library, NVFP4_GROUPED_GEMM, replace(CASE, out_dtype=out_dtype), DEVICE)
    assert [str(c) for c in trial.check(trial.select()) if not c.is_right] == []


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_every_case_is_served(library, case):
    """The bundle has a variant for every case."""
    assert library.select("nvfp4_grouped_gemm", case.sizes, DEVICE)


@pytest.mark.parametrize("byte", [0x00, 0x38, 0x7E])
def test_padding_rows_do_not_matter(library, prepared, arrays, byte):
    """Scales of rows that no token or column has may hold anything: the same bits come out."""
    prepared()
    before = bits(library, prepared.out)
    scales = {name: arrays[name].copy() for name in ("a_scales", "b_scales")}
    for tensor in scales.values():
        tensor[tensor == 0x7F] = byte
    fresh = {name: upload(library, tensor) for name, tensor in scales.items()}
    prepared.rebind(**{name: view for name, (_, view) in fresh.items()})
    prepared()
    assert before == bits(library, prepared.out)


def bits(library, out):
    values = np.empty(out.shape, out.dtype.numpy)
    library.read(out.view.pointer, values, DEVICE, 0)
    return values.tobytes()


def test_graph_with_other_groups(library, memories, prepared, arrays):
    """A captured launch reads groups on the GPU: each replay may have others of the same number."""
    other = replace(CASE, tokens=(0, 30, 130, 17, 1), ids=(3, -1, 2, 0, 2))
    fresh = NVFP4_GROUPED_GEMM.inputs(other)
    changed = {name for name in fresh if fresh[name].shape != arrays[name].shape}
    graph = Graph(library.driver, DEVICE)
    with new_stream(library.driver, DEVICE) as stream:
        with graph.capture(stream):
            prepared(stream)
        for name, array in fresh.items():
            memories[name][0].write(array)
        graph.launch(stream)
        synchronize(library.driver, stream, DEVICE)
        worst = ratio(library, prepared.out, NVFP4_GROUPED_GEMM.expected(other, fresh)["c"])
        graph.destroy()
    for name, array in arrays.items():
        memories[name][0].write(array)
    assert (changed, worst <= 1) == (set(), True)


def test_launches_in_a_row(library, given, arrays, expected):
    """Launches that overlap their neighbours' starts still end in order."""
    _, zeros = kept = upload(library, np.zeros_like(arrays["a"]))
    first = ops.nvfp4_grouped_gemm.prepare(**given, library=library)
    other = ops.nvfp4_grouped_gemm.prepare(**given | {"a": zeros}, out=first.out, library=library)
    first.out.memory.fill(UNTOUCHED)
    with new_stream(library.driver, DEVICE) as stream:
        [launch(stream) for launch in (other, first) * 100]
        synchronize(library.driver, stream, DEVICE)
        assert ratio(library, first.out, expected, stream) <= 1
    del kept


@pytest.mark.parametrize("out_dtype", ["bfloat16", "float16", "float32"])
def test_torch(library, arrays, out_dtype):
    """torch tensors in, scales as e4m3, a tensor filled; rows without an expert are left."""
    import torch

    tensors = {name: torch_tensor(torch, array) for name, array in arrays.items()}
    for name in ("a_scales", "b_scales"):
        tensors[name] = tensors[name].view(torch.float8_e4m3fn)
    out = torch.full(SHAPE, 7.0, dtype=getattr(torch, out_dtype), device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    ops.nvfp4_grouped_gemm(**tensors, out=out, stream=stream, library=library, debug=True)
    stream.synchronize()
    kind = DType.parse({"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}[out_dtype])
    wanted = NVFP4_GROUPED_GEMM.expected(replace(CASE, out_dtype=kind), arrays)["c"]
    found = out.double().cpu().numpy()
    assert (found[INACTIVE] == 7).all()
    active = np.delete(np.arange(SHAPE[0]), INACTIVE)
    assert (np.abs(found - wanted.value)[active] <= wanted.bound[active]).all()


def test_torch_columns_are_refused(library, arrays):
    """An output that is columns of a wider tensor is refused; its neighbours are not written."""
    import torch

    tensors = {name: torch_tensor(torch, array) for name, array in arrays.items()}
    wide = torch.full((SHAPE[0], 2 * SHAPE[1]), 7.0, dtype=torch.bfloat16, device="cuda")
    with pytest.raises(ProblemError, match="`out` must be row-major without gaps"):
        ops.nvfp4_grouped_gemm(**tensors, out=wide[:, : SHAPE[1]], library=library)
    torch.cuda.synchronize()
    assert bool((wide == 7).all())


def test_torch_graph(library, arrays, expected):
    """The op inside torch's own graph capture, in torch's memory."""
    import torch

    tensors = {name: torch_tensor(torch, array) for name, array in arrays.items()}
    out = torch.zeros(SHAPE, dtype=torch.bfloat16, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        stream = torch.cuda.current_stream()
        ops.nvfp4_grouped_gemm(**tensors, out=out, stream=stream, library=library)
    graph.replay()
    torch.cuda.synchronize()
    active = np.delete(np.arange(SHAPE[0]), INACTIVE)
    error = np.abs(out.double().cpu().numpy() - expected.value)
    assert (error[active] <= expected.bound[active]).all()


def test_weights_beyond_4_gib(library):
    """Experts are found past 2^32 bytes: all others hold scales that are NaN."""
    n, k, e = 2048, 4096, 1100
    case = Case(name="big", e=1, n=n, k=k, tokens=(5, 3), ids=(0, 0))
    arrays = NVFP4_GROUPED_GEMM.inputs(case)
    given = {name: upload(library, array) for name, array in arrays.items()}
    for name in ("b", "b_scales"):
        size = arrays[name].nbytes
        memory = library.memory(e * size, DEVICE)
        memory.fill(0xFF)
        memory.write(arrays[name], (e - 1) * size)
        shape = (e, *arrays[name].shape[1:])
        view = ops.DeviceArray(pointer=memory.address, shape=shape, dtype=DType.U8)
        given[name] = (memory, view)
    given["expert_ids"] = upload(library, np.array([e - 1, e - 1], np.int32))
    given["expert_scales"] = upload(library, np.repeat(arrays["expert_scales"], e))
    views = {name: view for name, (_, view) in given.items()}
    out = ops.nvfp4_grouped_gemm(**views, library=library)
    assert e * arrays["b"].nbytes > 2**32
    assert ratio(library, out, NVFP4_GROUPED_GEMM.expected(case, arrays)["c"]) <= 1


@pytest.mark.parametrize("name", ["a_scales", "b_scales"])
def test_nan_scale(library, name):
    """A weight's NaN is its column, a token's its row, and nothing else is NaN."""
    case = Case(name="nan", e=1, n=72, k=96, tokens=(80,), ids=(0,))
    arrays = with_nan(NVFP4_GROUPED_GEMM.inputs(case), name)
    found = run(library, ops.nvfp4_grouped_gemm, arrays)
    assert (np.isnan(found) == expected_nan(found.shape, name)).all()
