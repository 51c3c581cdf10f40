"""An output that an op made can be taken over by any framework."""

import gc

import pytest

from kernelpack.formats.dtype import DType
from kernelpack.load.load import load
from kernelpack.ops import dlpack
from kernelpack.ops.output import new_output
from kernelpack.runtime.driver import Driver
from tests.fakes.bundles import write_bundle
from tests.fakes.driver import FakeCuda
from tests.fakes.variants import variant


@pytest.fixture
def cuda():
    return FakeCuda()


@pytest.fixture
def output(tmp_path, cuda):
    path = write_bundle(tmp_path / "x.kpk", [variant()])
    return new_output(load(path, driver=Driver(cuda)), (3, 10, 16), DType.BF16, 0)


def test_size(cuda, output):
    """The memory is as large as the array."""
    assert cuda.memory[output.view.pointer][2] == 3 * 10 * 16 * 2


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 3)])
def test_dlpack(output, max_version):
    """A consumer of any version gets address, shape and type."""
    found = dlpack.read(output.__dlpack__(max_version=max_version))
    expected = (output.view.pointer, (3, 10, 16), DType.BF16, False)
    assert expected == (found.address, found.shape, found.dtype, found.is_read_only)


def test_device(output):
    """It lies on a CUDA device."""
    assert (output.__dlpack_device__(), output.device) == ((dlpack.CUDA, 0), 0)


@pytest.mark.parametrize("asked", [{"dl_device": (dlpack.CPU, 0)}, {"copy": True}])
def test_no_copies(output, asked):
    """Another device or a copy is refused as DLPack has it."""
    with pytest.raises(BufferError):
        output.__dlpack__(**asked)


@pytest.mark.parametrize(
    ("key", "expected"), [("shape", (3, 10, 16)), ("version", 3), ("strides", None)]
)
def test_interface(output, key, expected):
    """The array interface says the same."""
    assert expected == output.__cuda_array_interface__[key]


def test_memory_outlives_the_output(cuda, output):
    """A capsule keeps the memory when the output object has gone, and frees it when it goes."""
    memory, capsule = dict(cuda.memory), output.__dlpack__()
    output.memory = None
    gc.collect()
    kept = dict(cuda.memory)
    del capsule
    gc.collect()
    assert (kept, cuda.memory) == (memory, {})
