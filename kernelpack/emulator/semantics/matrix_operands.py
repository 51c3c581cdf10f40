"""Operands of tensor-core instructions in shared memory: descriptors decoded, linted and read."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.events import Access, Misuse, Swizzled
from kernelpack.emulator.machine.cluster import Cta
from kernelpack.emulator.machine.memory import Bytes
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.models import mma_descriptor
from kernelpack.emulator.models.mma_descriptor import SharedDescriptor
from kernelpack.spec.tensormap import Swizzle

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
    """The bytes of an operand, (rows, bytes of K), and the 4-byte cells they lie in, sorted.

    `swizzle` is the pattern they are read by. `words` are the 8-byte words of each row, where its
    bytes come in whole ones.
    """

    addresses: Addresses
    cells: Addresses
    swizzle: Swizzle
    words: Addresses | None


def _region(addresses: Addresses, swizzle: Swizzle) -> Region:
    """Addresses with what is computed from them once."""
    words = None
    if addresses.shape[1] % 8 == 0:
        runs = addresses.reshape(len(addresses), -1, 8)
        if (runs[..., 0] % 8 == 0).all() and (runs == runs[..., :1] + np.arange(8)).all():
            words = runs[..., 0] >> 3
    return Region(addresses, np.unique(addresses >> 2), swizzle, words)


@lru_cache(maxsize=512)
def region(
    unit: str, raw: int, *, mn_major: bool, rows: int, k: int, bits: int, padded: bool = False
) -> Region:
    """Where an operand lies. `unit` is `tcgen05` or `wgmma`; the rest as `operand_addresses`."""
    descriptor, _ = (tcgen05 if unit == "tcgen05" else wgmma)(raw)
    addresses = mma_descriptor.operand_addresses(
        descriptor, mn_major=mn_major, rows=rows, k=k, bits=bits, padded=padded
    )
    return _region(addresses, descriptor.swizzle)


@lru_cache(maxsize=512)
def part(whole: Region, first: int, last: int) -> Region:
    """Some rows of an operand."""
    return _region(whole.addresses[first:last], whole.swizzle)


def read(cta: Cta, where: Region, agent: int, warp: Warp, what: str) -> Bytes:
    """The bytes of an operand, read through the async proxy."""
    bus, cells = warp.cta.machine.bus, where.cells
    inside = cells[-1] < cta.shared.unit.cells
    if inside and bus.wants(Access):
        bus.emit(Access(cta.shared.unit, cells, agent, False, "async", what=what))
    if inside and bus.wants(Swizzled):
        bus.emit(Swizzled(cta.shared.unit, cells, False, where.swizzle.name, what))
    if inside and where.words is not None:
        found = cta.shared.gather_words(where.words)
        if found is not None:
            return found
    return cta.shared.gather(where.addresses)
