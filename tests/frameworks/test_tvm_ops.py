"""The ops as functions of TVM's FFI."""

import sys

import numpy as np
import pytest
import tvm_ffi

from kernelpack import ops
from kernelpack.errors import KernelpackError
from kernelpack.frameworks import tvm_ops
from kernelpack.frameworks.fill import FACES
from tests.docs.pages import blocks
from tests.fakes.torch import Tensor
from tests.ops.test_emulated import M, N, bundle, inputs


@pytest.fixture
def function(tmp_path):
    tvm_ops.register(ops.EmulatedLibrary(bundle(tmp_path)))
    return tvm_ffi.get_global_func("kernelpack.lora_shrink_qkv")


@pytest.fixture
def tensors():
    return [tvm_ffi.from_dlpack(Tensor(array)) for array in inputs()]


@pytest.mark.parametrize("name", FACES)
def test_every_op_is_known(name):
    """Each has its global name."""
    tvm_ops.register()
    assert tvm_ffi.get_global_func(f"kernelpack.{name}")


def test_fills_its_output(function, tensors):
    """The function fills what it is given; on the CPU the emulator computes."""
    out = np.zeros((3, M, N), np.float32)
    function(*tensors, tvm_ffi.from_dlpack(out))
    assert (out == 1).all()


def test_guide(tmp_path):
    """The guide's block runs as it stands."""
    names = dict(zip(("a", "b", "a_offsets", "expert_ids"), map(Tensor, inputs()), strict=True))
    names |= {"c": np.zeros((3, M, N), np.float32)}
    names |= {"library": ops.EmulatedLibrary(bundle(tmp_path))}
    exec(blocks("docs/guides/frameworks.md", "python")[1], names)
    assert (names["c"] == 1).all()


def test_arguments_are_counted(function, tensors):
    """A function that lacks an argument says which it takes."""
    with pytest.raises(RuntimeError, match=r"takes 5 arguments, not 4\n.*expert_ids, out"):
        function(*tensors)


def test_an_error_says_what_is_wrong(function, tensors):
    """An op's errors come through the FFI in its own words."""
    out = tvm_ffi.from_dlpack(np.zeros((3, M, N + 1), np.float32))
    with pytest.raises(RuntimeError, match="`out` must have b's n, 16, along side 2, not 17"):
        function(*tensors, out)


def test_a_gpus_stream_is_the_ffis(tensors, monkeypatch):
    """On a GPU an op runs on the FFI's current stream of the output's device."""
    given = {}
    monkeypatch.setattr(tvm_ops, "fill", lambda *_, stream, **__: given.update(stream=stream))
    tvm_ops.register()
    device = tensors[0].device
    with tvm_ffi.use_raw_stream(device, 77):
        tvm_ffi.get_global_func("kernelpack.lora_shrink_qkv")(*tensors, tensors[0])
        assert given["stream"]() == 77


def test_tvm_ffi_is_missing(monkeypatch):
    """Without it, the error says what to install."""
    monkeypatch.setitem(sys.modules, "tvm_ffi", None)
    with pytest.raises(KernelpackError, match=r"pip install '\.\[tvm-ffi\]'"):
        tvm_ops.register()
