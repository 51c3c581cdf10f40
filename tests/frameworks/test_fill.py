"""What the doors of frameworks share."""

import inspect

import numpy as np
import pytest

from kernelpack import ops
from kernelpack.errors import ProblemError
from kernelpack.formats.dtype import DType
from kernelpack.frameworks.fill import FACES, Face, fill, host_array
from kernelpack.ops import dlpack
from tests.fakes.torch import Tensor

CACHE = "kv_cache_append"


class OnGpu:
    """An array that says that it lies on a GPU."""

    def __dlpack_device__(self):
        return dlpack.CUDA, 1

    def __dlpack__(self, *, stream, max_version):
        return dlpack.share(0x1000, (3,), DType.FP32, 1, owner=self, version=1)


class Spy:
    """An op that is called with what it keeps."""

    def __call__(self, *inputs, **given):
        self.inputs, self.given = inputs, given


def never():
    raise AssertionError("the CPU has no stream")


def test_every_op_has_a_face():
    """An op that is added to kernelpack is seen here."""
    assert set(FACES) == {name for name in ops.__all__ if name.islower()}


@pytest.mark.parametrize("name", FACES)
def test_a_face_has_every_argument(name):
    """What a framework may give is all that the op takes of it."""
    face = FACES[name]
    given = (*face.groups, *face.settings, *face.flags, *face.counts, *face.sizes, *face.types)
    known = set(inspect.signature(ops.OPS[name].tensors).parameters)
    assert known - {"stream", "library", "debug"} == {*face.inputs, *given, *face.outputs}


def test_a_face_is_read_from_its_op():
    """Arrays, numbers, choices and outputs, each by its kind."""
    lora, attention, append = (FACES[n] for n in ("lora_shrink_qkv", "sparse_mla_prefill", CACHE))
    assert (lora.sizes, lora.types, lora.outputs) == (("m", "choose_for"), ("out_dtype",), ("out",))
    assert (attention.numbers, attention.settings) == (("scale",), ("dead_lse",))
    assert attention.spare == ("lse", "max_logits")
    assert (append.flags, append.spare, append.traced) == (
        ("power_of_two",),
        ("kv_scales",),
        None,
    )


def test_on_a_gpu():
    """Arrays of a GPU go as they are, on the framework's current stream."""
    spy, a, out = Spy(), OnGpu(), OnGpu()
    face = Face(call=spy, inputs=("a",), groups=("ids",))
    fill(face, {"a": a, "ids": None, "out": out}, stream=lambda: 77, library=None)
    assert (spy.inputs, spy.given) == ((a,), {"out": out, "stream": 77, "library": None})


def test_on_the_cpu():
    """Arrays of the CPU become numpy's over the same memory, and have no stream."""
    spy, a, out = Spy(), np.ones(3, np.float32), np.zeros(3, np.float32)
    face = Face(call=spy, inputs=("a",))
    fill(face, {"a": Tensor(a), "out": Tensor(out)}, stream=never, library=None)
    spy.given["out"][...] = spy.inputs[0]
    assert (out.tolist(), spy.given["stream"]) == ([1, 1, 1], None)


def test_strides_are_kept():
    """A view with gaps and turned sides is the same view."""
    values = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, 1::2].T
    assert np.array_equal(host_array(values, "a"), values)


def test_bf16():
    """bf16 arrives as ml_dtypes' type."""
    values = np.arange(6).astype(DType.BF16.numpy).reshape(2, 3)
    found = host_array(Tensor(values), "a")
    assert (found.dtype, found.tolist()) == (DType.BF16.numpy, values.tolist())


@pytest.mark.parametrize("shape", [(0,), (3, 0, 2)])
def test_empty(shape):
    """An empty array reaches no memory."""
    assert host_array(np.zeros(shape, np.float32), "a").shape == shape


def test_read_only():
    """What may not be written stays so."""
    values = np.zeros(3, np.float32)
    values.flags.writeable = False
    assert not host_array(values, "a").flags.writeable


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (OnGpu(), "`ids` is not on the CPU like the others"),
        (np.zeros(3, np.complex64), "`ids` has an unknown element type"),
    ],
)
def test_what_is_no_array_of_the_cpu(array, says):
    """The argument is named, and what is wrong with it."""
    with pytest.raises(ProblemError, match=says):
        host_array(array, "ids")
