"""How many clusters run at once.

The CTAs of a cluster lie in one GPC, so that a GPC holds whole clusters only: 132 multiprocessors
hold 30 clusters of four, not 33. A driver knows (cuOccupancyMaxActiveClusters); where there is none
the GPCs of the GPU that a target is made for stand in for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

from kernelpack.spec.arch import MOST_CTAS, Arch, Multiprocessor

Fitting = Callable[[int], int]
"""How many clusters of so many CTAs run at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cta:
    """The resources of a multiprocessor that a CTA takes.

    Attributes:
        threads: how many it has.
        shared_bytes: its dynamic shared memory.
        registers: of a thread, at most.

    """

    threads: int
    shared_bytes: int
    registers: int


Fits = Callable[[Cta, int], int]
"""How many clusters of so many such CTAs run at once."""


def fitting_ctas(fitting: Fitting, clusters: int) -> int:
    """The most CTAs of a cluster so that `clusters` of them run at once; 1 where none does."""
    ctas = 1
    while ctas < MOST_CTAS and fitting(ctas + 1) >= clusters:
        ctas += 1
    return ctas


@lru_cache(maxsize=64)
def of_target(arch: Arch, sm_count: int) -> Fits:
    """The clusters that fit on a GPU like the one that a target is made for.

    Args:
        arch: the target.
        sm_count: multiprocessors of the GPU: the first ones of the target's own, and more GPCs of
            the largest kind beyond them.

    """
    gpcs, most = _gpcs(arch, sm_count), arch.limits.cluster

    @lru_cache(maxsize=1024)
    def fits(cta: Cta, ctas: int) -> int:
        resident = _resident(cta, arch.target.multiprocessor)
        return sum(gpc * resident // ctas for gpc in gpcs) if ctas <= most else 0

    return fits


def _gpcs(arch: Arch, sm_count: int) -> list[int]:
    """The multiprocessors of each GPC."""
    beyond = max(0, sm_count - arch.multiprocessors)
    sizes = [*arch.gpcs, *[max(arch.gpcs)] * -(-beyond // max(arch.gpcs))]
    ends = [0, *(min(end, sm_count) for end in accumulate(sizes))]
    return [b - a for a, b in pairwise(ends)]


def _resident(cta: Cta, of: Multiprocessor) -> int:
    """How many such CTAs a multiprocessor holds; their registers, a bound, leave room for one."""
    registers = -(-cta.registers // of.registers_come_by) * of.registers_come_by
    return min(
        of.blocks,
        of.threads // max(1, cta.threads),
        max(1, of.registers // max(1, registers * cta.threads)),
        of.shared_bytes // (max(0, cta.shared_bytes) + of.block_shared_bytes),
    )
