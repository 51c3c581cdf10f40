"""DLPack capsules, read and made without a framework."""

import gc

import numpy as np
import pytest

from kernelpack.formats.dtype import DType
from kernelpack.ops import dlpack
from kernelpack.ops.dlpack import export, read, row_major, share


class Owner:
    """Something whose life can be watched."""

    alive = 0

    def __init__(self):
        Owner.alive += 1

    def __del__(self):
        Owner.alive -= 1


@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.float16, DType.FP16),
        (np.uint32, DType.U32),
        (np.int32, DType.I32),
        (np.float32, DType.FP32),
    ],
)
def test_read_numpy(max_version, dtype, expected):
    """A capsule that numpy made says what the array is, in both versions of DLPack."""
    array = np.zeros((3, 4, 5), dtype)[:, ::2]
    versions = {} if max_version is None else {"max_version": max_version}
    found = read(array.__dlpack__(**versions))
    assert (found.address, found.dtype, found.shape) == (array.ctypes.data, expected, (3, 2, 5))
    assert (found.strides, found.device_type) == ((20, 10, 1), dlpack.CPU)


def test_read_only():
    """An array that may not be written says so."""
    array = np.zeros(3)
    array.flags.writeable = False
    assert read(array.__dlpack__(max_version=(1, 0))).is_read_only


def test_unknown_type():
    """A type kernelpack lacks reads as none."""
    assert read(np.zeros(3, np.complex64).__dlpack__()).dtype is None


def test_not_a_capsule():
    """What is no DLPack capsule is refused."""
    with pytest.raises(BufferError, match="not a DLPack capsule"):
        read(object())


def test_consumed_capsule():
    """A capsule that someone took over is refused."""
    capsule = np.zeros(3).__dlpack__()

    class Given:
        def __dlpack__(self, **_):
            return capsule

        def __dlpack_device__(self):
            return (dlpack.CPU, 0)

    np.from_dlpack(Given())
    with pytest.raises(BufferError, match="consumed"):
        read(capsule)


def test_export_to_an_old_producer():
    """A producer older than DLPack 1.0 is asked in its own way."""

    class Old:
        def __dlpack__(self, stream):
            return stream

    assert export(Old(), 7) == 7


@pytest.mark.parametrize("version", [0, 1])
def test_share_then_read(version):
    """A shared capsule says what was shared."""
    capsule = share(0x1000, (3, 7, 16), DType.BF16, 1, owner=None, version=version)
    found = read(capsule)
    assert (found.address, found.shape, found.strides) == (0x1000, (3, 7, 16), (112, 16, 1))
    assert (found.device_type, found.device, found.dtype) == (dlpack.CUDA, 1, DType.BF16)


@pytest.mark.parametrize("version", [0, 1])
def test_owner_lives_as_long_as_the_capsule(version):
    """A capsule nobody consumed frees its owner when it goes."""
    capsule = share(0x1000, (4,), DType.FP32, 0, owner=Owner(), version=version)
    alive = Owner.alive
    del capsule
    gc.collect()
    assert (alive, Owner.alive) == (1, 0)


def test_owner_lives_as_long_as_the_consumer(monkeypatch):
    """A consumer keeps the owner alive, and frees it with its array."""
    monkeypatch.setattr(dlpack, "CUDA", dlpack.CPU)
    memory = np.arange(4, dtype=np.float32)

    class Given:
        def __dlpack__(self, **_):
            return share(memory.ctypes.data, (4,), DType.FP32, 0, owner=Owner(), version=0)

        def __dlpack_device__(self):
            return (dlpack.CPU, 0)

    array = np.from_dlpack(Given())
    values, alive = array.tolist(), Owner.alive
    del array
    gc.collect()
    assert (values, alive, Owner.alive) == ([0, 1, 2, 3], 1, 0)


@pytest.mark.parametrize(
    ("shape", "strides"), [((), ()), ((5,), (1,)), ((3, 7, 16), (112, 16, 1)), ((2, 0), (0, 1))]
)
def test_row_major(shape, strides):
    """The last dimension is the fastest."""
    assert strides == row_major(shape)
