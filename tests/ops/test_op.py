"""An op is described once: a call, a prepared launch and its signature are one function's."""

import inspect

import pytest

from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.kernels.registry import KERNELS
from kernelpack.manifest.reader import read
from kernelpack.ops import OPS
from kernelpack.ops import lora_shrink_qkv as op
from kernelpack.ops.arrays import DeviceArray
from kernelpack.ops.named import Named
from tests.kept import ROOT
from tests.ops.bench import Bench

LAUNCH = ("stream", "library", "debug")


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def test_every_kernel_has_an_op():
    """An op is called as its kernel, and the one that is a chain of them as itself."""
    found = {name: op.operation.kernel for name, op in OPS.items()}
    assert found == {name: name for name in (*KERNELS, "mla_decode_fp8")}


def arrays_of(op):
    """The arrays that a description lists, or that a request names whose manifest lists them."""
    if isinstance(op.operation, Named):
        asked = op.request(**dict.fromkeys(inspect.signature(op).parameters, 0))
        return {*asked.inputs, *asked.outputs}
    return {*op.operation.inputs, *op.operation.outputs}


@pytest.mark.parametrize("name", KERNELS)
def test_arrays_are_the_manifests(name):
    """Inputs and outputs are the arguments of the manifest; the op alone may look at more."""
    known = arrays_of(OPS[name])
    arguments = read(ROOT / "manifests" / f"{name}.yaml").value["arguments"]
    assert set(arguments) <= known


@pytest.mark.parametrize("name", OPS)
def test_signature(name):
    """Python sees the op's own arguments, of which those of any launch come last."""
    parameters = list(inspect.signature(OPS[name]).parameters)
    assert tuple(parameters[-3:]) == LAUNCH


@pytest.mark.parametrize("name", OPS)
def test_description(name):
    """The words of the op are there to read, and name each of its arguments."""
    words = OPS[name].__doc__
    assert [p for p in inspect.signature(OPS[name]).parameters if f"    {p}: " not in words] == []


def test_inputs_go_by_name(bench):
    """Two inputs of one form that change places change places in the launch."""
    first, second = (bench.values([0, 4, 4, 10], DType.I32) for _ in range(2))
    ids = bench.expert_ids
    for offsets in (first, second):
        op(bench.a, bench.b, expert_ids=ids, a_offsets=offsets, library=bench.library)
        assert bench.parameter("a_offsets") == offsets.pointer


def test_prepare_takes_what_a_call_takes(bench):
    """Even to look at values first."""
    wrong = bench.values([9, -1, 0], DType.I32)
    given = {"out": bench.c, "library": bench.library, "debug": True}
    for launch in (op, op.prepare):
        with pytest.raises(ProblemError, match="`expert_ids` must be -1 to 3, not 9"):
            launch(bench.a, bench.b, bench.a_offsets, wrong, **given)


def test_an_unknown_word(bench):
    """It is refused by the op's name, as of any function."""
    with pytest.raises(TypeError, match=r"lora_shrink_qkv\(\) got an unexpected keyword"):
        op(*bench.inputs, output=DeviceArray(pointer=0, shape=(0,), dtype=DType.BF16))
