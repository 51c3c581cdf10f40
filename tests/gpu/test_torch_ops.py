"""The ops under `torch.ops.kernelpack`, with torch itself; `-k cpu` needs no GPU, and no driver."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from kernelpack import ops
from kernelpack.frameworks import torch_ops
from kernelpack.frameworks.fill import host_array
from kernelpack.kernels.registry import find
from tests.docs.pages import blocks
from tests.gpu.arrays import torch_tensor
from tests.gpu.asked import CASES, Asked
from tests.gpu.conftest import bundle_path

# Importing frameworks may warn; that is theirs.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

BLOCK = blocks("docs/guides/frameworks.md", "python")[0]
CHECKS = ("test_schema", "test_faketensor", "test_aot_dispatch_dynamic")
IN_PLACE = [name for name in CASES if torch_ops.FACES[name.partition(" ")[0]].traced is None]


@dataclass(frozen=True)
class Call:
    """An op of torch's with the tensors of a small case.

    Attributes:
        asked: the case, and what must come of it.
        op: torch's op.
        inputs, keywords: tensors and numbers.
        new_outputs: makes outputs that hold nothing of use, by the overload's keyword.

    """

    asked: Asked
    op: object
    inputs: list
    keywords: dict
    new_outputs: Callable

    def ratio(self, outputs):
        """The worst error over its bound, of outputs in the op's order; the case may lack some."""
        known = ops.OPS[self.asked.definition.stem].operation.outputs
        names = [name for name in known if name in self.asked.expected]
        pairs = zip(names, outputs, strict=False)
        return self.asked.ratio({name: on_host(output) for name, output in pairs})


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


@pytest.fixture
def call_of(torch, device):
    """Makes the call of a case; nothing is left of graphs of others, whose number is limited."""
    torch.compiler.reset()

    def tensor(value):
        return value if isinstance(value, bool | float) else torch_tensor(torch, value, device)

    def make(name):
        asked = Asked(name)
        face = torch_ops.FACES[asked.definition.stem]
        inputs = [tensor(value) for value in asked.inputs(face)]
        keywords = {word: tensor(value) for word, value in asked.keywords(face).items()}

        def new_outputs():
            if face.traced is None:
                return {word: tensor(array) for word, array in asked.written.items()}
            made = torch_ops.made(torch, face, *inputs, **keywords)
            return dict(zip(face.outputs, made, strict=True))

        op = getattr(torch.ops.kernelpack, asked.definition.stem)
        return Call(asked=asked, op=op, inputs=inputs, keywords=keywords, new_outputs=new_outputs)

    return make


@pytest.fixture(params=[name for name in CASES if name not in IN_PLACE])
def call(request, call_of):
    return call_of(request.param)


@pytest.fixture(params=IN_PLACE)
def writing(request, call_of):
    return call_of(request.param)


def on_host(tensor):
    """A copy: what `host_array` sees is the memory of a tensor that ends here."""
    here = tensor.cpu()
    return host_array(here, "output").copy()


def multiplied(torch, value):
    """A tensor as torch's checker, which multiplies what it is given, can take it: fp8 as bytes."""
    is_fp8 = getattr(value, "dtype", None) == torch.float8_e4m3fn
    return value.view(torch.uint8) if is_fp8 else value


def listed(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def test_plain(call):
    """The plain overload computes what the oracle does, into tensors of its own."""
    assert call.ratio(listed(call.op(*call.inputs, **call.keywords))) <= 1


def test_out(call):
    """`.out` fills what it is given, and returns nothing."""
    given = call.new_outputs()
    assert call.op.out(*call.inputs, **call.keywords, **given) is None
    assert call.ratio(given.values()) <= 1


def test_torchs_own_checks(torch, call):
    """Schema, shapes of fake tensors and tracing are as torch's checker of ops wants them."""
    inputs = [multiplied(torch, value) for value in call.inputs]
    keywords = {word: multiplied(torch, value) for word, value in call.keywords.items()}
    given = keywords | call.new_outputs()
    torch.library.opcheck(call.op.default, inputs, keywords, test_utils=CHECKS)
    torch.library.opcheck(call.op.out, inputs, given, test_utils=CHECKS)


def test_compiled(torch, call):
    """A graph is compiled through both overloads without a break."""

    def both(inputs, keywords, given):
        call.op.out(*inputs, **keywords, **given)
        return listed(call.op(*inputs, **keywords))

    compiled, given = torch.compile(both, backend="aot_eager", fullgraph=True), call.new_outputs()
    plain = compiled(call.inputs, call.keywords, given)
    assert max(call.ratio(plain), call.ratio(given.values())) <= 1


def test_in_place(writing):
    """An op that writes a cache returns nothing, and writes what the oracle does."""
    given = writing.new_outputs()
    assert writing.op(*writing.inputs, **writing.keywords, **given) is None
    assert writing.ratio(given.values()) <= 1


def test_torchs_own_checks_in_place(torch, writing):
    """Its schema says what it writes, and it is traced."""
    inputs = [multiplied(torch, value) for value in writing.inputs]
    known = writing.keywords | writing.new_outputs()
    given = {word: multiplied(torch, value) for word, value in known.items()}
    torch.library.opcheck(writing.op.default, inputs, given, test_utils=CHECKS)


def test_compiled_in_place(torch, writing):
    """A graph that writes a cache is compiled without a break, and the cache is written."""

    def write(inputs, keywords, given):
        writing.op(*inputs, **keywords, **given)
        return {word: cache.clone() for word, cache in given.items()}

    given = writing.new_outputs()
    compiled = torch.compile(write, backend="aot_eager", fullgraph=True)
    after = compiled(writing.inputs, writing.keywords, given)
    assert max(writing.ratio(given.values()), writing.ratio(after.values())) <= 1


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
