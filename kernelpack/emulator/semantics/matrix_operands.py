"""Operands of tensor-core instructions in shared memory: descriptors decoded, linted and read."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.events import Access, Misuse
from kernelpack.emulator.machine.cluster import Cta
from kernelpack.emulator.machine.memory import Bytes
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.models import mma_descriptor
from kernelpack.emulator.models.mma_descriptor import SharedDescriptor

Addresses = NDArray[np.intp]


@lru_cache(maxsize=4096)
def tcgen05(raw: int) -> tuple[SharedDescriptor, tuple[Misuse, ...]]:
    """A tcgen05 descriptor and what is wrong with it."""
    descriptor = mma_descriptor.tcgen05_descriptor(raw)
    return descriptor, mma_descriptor.lint(descriptor)


@lru_cache(maxsize=4096)
def wgmma(raw: int) -> tuple[SharedDescriptor, tuple[Misuse, ...]]:
    """A wgmma descriptor and what is wrong with it."""
    descriptor = mma_descriptor.wgmma_descriptor(raw)
    return descriptor, mma_descriptor.lint(descriptor)


def tell(warp: Warp, found: tuple[Misuse, ...]) -> None:
    """Hand what a lint found to the checks."""
    for misuse in found:
        warp.cta.machine.bus.emit(misuse)


_SCRATCH: dict[int, tuple[Addresses, Addresses]] = {}


def read(cta: Cta, addresses: Addresses, agent: int, warp: Warp, what: str) -> Bytes:
    """The bytes of an operand, read through the async proxy."""
    bus = warp.cta.machine.bus
    if bus.wants(Access):
        cells = np.unique(addresses >> 2)
        if len(cells) and cells[-1] < cta.shared.unit.cells and cells[0] >= 0:
            bus.emit(Access(cta.shared.unit, cells, agent, False, "async", what=what))
    return cta.shared.gather(addresses)


assert _SCRATCH == {}
