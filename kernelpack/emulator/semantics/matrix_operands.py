"""Operands of tensor-core instructions in shared memory: descriptors decoded, linted and read."""

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The bytes of an operand, (rows, bytes of K), and the 4-byte cells they lie in, sorted."""

    addresses: Addresses
    cells: Addresses


@lru_cache(maxsize=512)
def region(
    unit: str, raw: int, *, mn_major: bool, rows: int, k: int, bits: int, padded: bool = False
) -> Region:
    """Where an operand lies. `unit` is `tcgen05` or `wgmma`; the rest as `operand_addresses`."""
    descriptor, _ = (tcgen05 if unit == "tcgen05" else wgmma)(raw)
    addresses = mma_descriptor.operand_addresses(
        descriptor, mn_major=mn_major, rows=rows, k=k, bits=bits, padded=padded
    )
    return Region(addresses, np.unique(addresses >> 2))


@lru_cache(maxsize=512)
def part(whole: Region, first: int, last: int) -> Region:
    """Some rows of an operand."""
    addresses = whole.addresses[first:last]
    return Region(addresses, np.unique(addresses >> 2))


def read(cta: Cta, where: Region, agent: int, warp: Warp, what: str) -> Bytes:
    """The bytes of an operand, read through the async proxy."""
    bus, cells = warp.cta.machine.bus, where.cells
    if bus.wants(Access) and cells[-1] < cta.shared.unit.cells:
        bus.emit(Access(cta.shared.unit, cells, agent, False, "async", what=what))
    return cta.shared.gather(where.addresses)
