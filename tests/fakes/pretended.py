"""A pretended GPU with a manifest's kernels: arrays to give, and the arguments of launches."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernelpack.formats.dtype import DType
from kernelpack.load.load import load
from kernelpack.ops.arrays import DeviceArray
from kernelpack.runtime.driver import Driver
from kernelpack.spec.variant import Variant
from tests.fakes.bundles import write_bundle
from tests.fakes.driver import FakeCuda, FakeDevice

ARCH, CAPABILITY = "sm_90a", (9, 0)


class Pretended:
    """Memory, kernels and launches.

    Args:
        folder: where the bundle is written.
        variants: of one kernel, as its manifest expands.

    """

    def __init__(self, folder: Path, variants: Sequence[Variant]) -> None:
        self.cuda = FakeCuda(devices=(FakeDevice(capability=CAPABILITY),))
        ours = [v for v in variants if str(v.arch) == ARCH]
        self.cuda.signatures.update({v.entry: v.slots for v in ours})
        self.library = load(write_bundle(folder / "x.kpk", ours), driver=Driver(self.cuda))
        self._parameters = [p.name for p in ours[0].params]

    def array(self, shape: tuple[int, ...], dtype: DType) -> DeviceArray:
        """Memory of zeros."""
        return self.upload(np.zeros(shape, dtype.numpy), dtype)

    def upload(self, data: np.ndarray[Any, Any], dtype: DType) -> DeviceArray:
        """A copy of an array."""
        address = self.cuda.new_memory(data.nbytes, 0)
        self.cuda.on_cuMemcpyHtoD(address, data.ctypes.data, data.nbytes)
        return DeviceArray(pointer=address, shape=data.shape, dtype=dtype)

    def parameter(self, name: str) -> int:
        """A parameter of the last launch as an unsigned integer."""
        return self.cuda.launches[-1].number(self._parameters.index(name))
