"""A GPU that is pretended, with arrays on it and a bundle opened beside it."""

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.load.load import load
from kernelpack.ops.arrays import DeviceArray
from kernelpack.runtime.driver import Driver
from tests.fakes.bundles import write_bundle
from tests.fakes.driver import FakeCuda, FakeDevice
from tests.fakes.variants import variant

M, N, K, G = 10, 16, 72, 4
PARAMETERS = ("a_map", "c", "b", "a_offsets", "expert_ids", "m", "k")


class Bench:
    """Arrays of a problem with m 10, n 16, k 72, g 4 and three groups, on two devices."""

    def __init__(self, folder, *variants):
        self.cuda = FakeCuda(devices=(FakeDevice(), FakeDevice()))
        variants = variants or (variant(), variant(out="fp32"))
        self.cuda.signatures.update({v.entry: v.slots for v in variants})
        self.library = load(write_bundle(folder / "x.kpk", variants), driver=Driver(self.cuda))
        self.a = self.array((M + 2, K), DType.BF16)
        self.b = self.array((G, 3 * N, K), DType.BF16)
        self.a_offsets = self.values([0, 4, 4, M], DType.U32)
        self.expert_ids = self.values([2, 0, -1], DType.I32)
        self.c = self.array((3, M, N), DType.BF16)

    @property
    def inputs(self):
        return (self.a, self.b, self.a_offsets, self.expert_ids)

    def array(self, shape, dtype, device=0, **changes):
        """An array in memory of its own."""
        size = dtype.bytes_of(int(np.prod(shape)))
        address = self.cuda.new_memory(size, device)
        return DeviceArray(pointer=address, shape=shape, dtype=dtype, **changes)

    def values(self, values, dtype):
        """An array that holds values."""
        data = np.array(values, dtype.numpy)
        array = self.array(data.shape, dtype)
        self.cuda.on_cuMemcpyHtoD(array.pointer, data.ctypes.data, data.nbytes)
        return array

    def parameter(self, name, launch=-1):
        """A parameter of a launch as an unsigned integer."""
        return self.cuda.launches[launch].number(PARAMETERS.index(name))
