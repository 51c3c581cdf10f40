"""Events of an allocation of tensor memory: its beginning, its end, its release.

A user of columns must know of their allocation, and whoever frees them of every use (PTX ISA
9.7.16.7.1). A pair allocates together, so that the columns of both CTAs are there when one of them
goes on; each frees its own. It must then know of the uses in the other CTA too, and that its
allocation is over: a `dealloc` that overtakes the other's `alloc` fails on hardware
(NVIDIA/cutlass issue 3435).
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from kernelpack.emulator.events import Access, Acquire, Release
from kernelpack.emulator.machine.cluster import Cta
from kernelpack.emulator.machine.lanes import Lanes
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.models import tensor_memory as model
from kernelpack.emulator.semantics.tensor_memory import BLOCK, GROUP_LANES

ALLOC, FREE = "tcgen05.alloc", "tcgen05.dealloc"


@lru_cache(maxsize=64)
def _groups(start: int, columns: int) -> Lanes:
    """The cells of whole columns."""
    rows = np.arange(128 // GROUP_LANES)[:, None] * model.COLUMNS
    return (rows + np.arange(start, start + columns)).ravel()


def _blocks(start: int, columns: int) -> Lanes:
    return np.arange(start // BLOCK, (start + columns) // BLOCK)


def granted(ctas: Sequence[Cta], start: int, columns: int) -> None:
    """The columns belong to the CTAs from now on; a unit of the first one says so."""
    bus = ctas[0].machine.bus
    agent = ctas[0].agent(ALLOC, ALLOC)
    for cta in ctas:
        bus.emit(Acquire(agent, (FREE, cta.number)))
        if bus.wants(Access):
            groups = _groups(start, columns)
            unit = cta.tensor.unit
            bus.emit(Access(unit, groups, agent, True, "generic", what=ALLOC, did="allocated"))
    bus.emit(Release(agent, (ALLOC, ctas[0].number)))


def taken(warp: Warp, ctas: Sequence[Cta], start: int, columns: int) -> None:
    """A warp knows of its columns; its part in the allocation of a pair is over."""
    bus = warp.cta.machine.bus
    bus.emit(Acquire(warp.agent, (ALLOC, ctas[0].number)))
    if len(ctas) > 1 and bus.wants(Access):
        blocks = _blocks(start, columns)
        bus.emit(Access(warp.cta.tensor.ends, blocks, warp.agent, False, "tensor", what=ALLOC))


def freed(warp: Warp, ctas: Sequence[Cta], part: tuple[int, int]) -> None:
    """A warp frees the columns of its CTA, and may do so by what happened in the other one too.

    `part` is the first of them and how many.
    """
    bus, mine = warp.cta.machine.bus, warp.cta
    start, columns = part
    if bus.wants(Access):
        groups = _groups(start, columns)
        unit = mine.tensor.unit
        bus.emit(Access(unit, groups, warp.agent, True, "tensor", what=FREE, did="deallocated"))
        blocks = _blocks(start, columns)
        for tensor in (cta.tensor for cta in ctas if cta is not mine):
            for unit in (tensor.ends, tensor.uses):
                bus.emit(Access(unit, blocks, warp.agent, True, "tensor", atomic=True, what=FREE))
    bus.emit(Release(warp.agent, (FREE, mine.number)))
