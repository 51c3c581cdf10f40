"""The ops under `torch.ops.kernelpack`, with torch itself; `-k cpu` needs no GPU, and no driver."""

from dataclasses import dataclass

import pytest

from kernelpack import ops
from kernelpack.frameworks import torch_ops
from kernelpack.frameworks.fill import host_array
from kernelpack.kernels.registry import find
from tests.docs.pages import blocks
from tests.gpu.arrays import torch_tensor
from tests.gpu.conftest import bundle_path

# Importing frameworks may warn; that is theirs.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

BLOCK = blocks("docs/guides/frameworks.md", "python")[0]


@dataclass(frozen=True)
class Asked:
    """An op of torch's with the tensors of a small case, and what must come of them."""

    torch: object
    op: object
    face: torch_ops.Face
    inputs: list
    groups: dict
    outputs: tuple
    expected: dict

    def new_outputs(self):
        """Outputs that hold nothing of use, by `.out`'s keyword."""
        made = torch_ops.made(self.torch, self.face, *self.inputs, **self.groups)
        return dict(zip(self.outputs, made, strict=True))

    def ratio(self, outputs):
        """The worst error of outputs over its bound; scales may have more row blocks than rows."""
        pairs = zip(outputs, self.expected.values(), strict=True)
        return max(e.ratio(on_host(o)[: len(e.value)]).max() for o, e in pairs)


@pytest.fixture(scope="session")
def torch():
    """The framework, which is not of the `dev` group: it is larger than all of that."""
    import torch

    return torch


def kernels(request, device):
    if device == "cuda":
        return request.getfixturevalue("library")
    return ops.EmulatedLibrary(bundle_path(request.config))


@pytest.fixture(params=["cpu", "cuda"])
def device(request):
    """Where tensors lie: on the CPU the emulator computes, with the bundle's PTX."""
    torch_ops.register(kernels(request, request.param))
    return request.param


@pytest.fixture(params=torch_ops.FACES)
def asked(torch, request, device):
    definition, face = find(request.param), torch_ops.FACES[request.param]
    case = definition.case(definition.emulated)
    arrays = definition.inputs(case)
    tensors = {name: torch_tensor(torch, array, device) for name, array in arrays.items()}
    return Asked(
        torch=torch,
        op=getattr(torch.ops.kernelpack, request.param),
        face=face,
        inputs=[tensors[name] for name in face.inputs],
        groups={name: tensors[name] for name in face.groups},
        outputs=face.outputs,
        expected=definition.expected(case, arrays),
    )


def on_host(tensor):
    """A copy: what `host_array` sees is the memory of a tensor that ends here."""
    here = tensor.cpu()
    return host_array(here, "output").copy()


def listed(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def test_plain(asked):
    """The plain overload computes what the oracle does, into tensors of its own."""
    assert asked.ratio(listed(asked.op(*asked.inputs, **asked.groups))) <= 1


def test_out(asked):
    """`.out` fills what it is given, and returns nothing."""
    given = asked.new_outputs()
    assert asked.op.out(*asked.inputs, **asked.groups, **given) is None
    assert asked.ratio(given.values()) <= 1


def test_torchs_own_checks(torch, asked):
    """Schema, shapes of fake tensors and tracing are as torch's checker of ops wants them."""
    checks = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
    given = asked.new_outputs()
    plain, out = asked.op.default, asked.op.out
    torch.library.opcheck(plain, asked.inputs, asked.groups, test_utils=checks)
    torch.library.opcheck(out, asked.inputs, asked.groups | given, test_utils=checks)


def test_compiled(torch, asked):
    """A graph is compiled through both overloads without a break."""

    def both(*inputs, **groups):
        given = torch_ops.made(torch, asked.face, *inputs, **groups)
        asked.op.out(*inputs, **groups, **dict(zip(asked.outputs, given, strict=True)))
        return listed(asked.op(*inputs, **groups)), given

    compiled = torch.compile(both, backend="aot_eager", fullgraph=True)
    plain, given = compiled(*asked.inputs, **asked.groups)
    assert max(asked.ratio(plain), asked.ratio(given)) <= 1


def test_dynamic_shapes(torch, device):
    """One graph serves any number of tokens."""
    definition = find("lora_shrink_qkv")
    graphs = []

    def backend(graph, _inputs):
        graphs.append(graph)
        return graph

    def run(*inputs):
        return torch.ops.kernelpack.lora_shrink_qkv(*inputs)

    compiled = torch.compile(run, backend=backend, fullgraph=True, dynamic=True)
    shapes = []
    for m in ("40", "24", "33"):
        arrays = definition.inputs(definition.case({**definition.emulated, "m": m}))
        tensors = [torch_tensor(torch, array, device) for array in arrays.values()]
        shapes.append(tuple(compiled(*tensors).shape))
    assert (shapes, len(graphs)) == ([(3, 40, 16), (3, 24, 16), (3, 33, 16)], 1)


def test_fp8_scales(torch, device):
    """Scales may be torch's float8."""
    definition = find("nvfp4_w4a16_grouped_gemm")
    case = definition.case(definition.emulated)
    arrays = definition.inputs(case)
    tensors = {name: torch_tensor(torch, array, device) for name, array in arrays.items()}
    tensors["b_scales"] = tensors["b_scales"].view(torch.float8_e4m3fn)
    names = torch_ops.FACES["nvfp4_w4a16_grouped_gemm"].inputs
    out = torch.ops.kernelpack.nvfp4_w4a16_grouped_gemm(*(tensors[name] for name in names))
    assert definition.expected(case, arrays)["c"].ratio(on_host(out)).max() <= 1


def test_guide(torch, device, request):
    """The guide's block runs as it stands."""
    definition = find("lora_shrink_qkv")
    case = definition.case(definition.emulated)
    arrays = definition.inputs(case)
    names = {name: torch_tensor(torch, array, device) for name, array in arrays.items()}
    names["library"] = kernels(request, device)
    exec(BLOCK, names)
    assert definition.expected(case, arrays)["c"].ratio(on_host(names["c"])).max() <= 1


def test_graph_of_cuda(torch, library):
    """A plain overload is captured, in torch's memory and on its stream."""
    torch_ops.register(library)
    definition = find("lora_shrink_qkv")
    case = definition.case(definition.emulated)
    arrays = definition.inputs(case)
    tensors = [torch_tensor(torch, array) for array in arrays.values()]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = torch.ops.kernelpack.lora_shrink_qkv(*tensors, out_dtype=torch.float32)
    graph.replay()
    expected = definition.expected(case, arrays)["c"]
    assert expected.ratio(on_host(out)).max() <= 1
