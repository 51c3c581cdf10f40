"""Loads and stores of lanes in any space, and the events they make.

Addresses are u64 lanes. A shared address holds the CTA's rank from bit 24 on; local memory is one
array a warp, a lane's part after the other's.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.events import Access, Reached
from kernelpack.emulator.faults import Fault, Rule
from kernelpack.emulator.machine.cluster import RANK_SHIFT, Cta
from kernelpack.emulator.machine.lanes import EVERY, LANE_IDS, WIDTH, Lanes, Mask
from kernelpack.emulator.machine.memory import NOWHERE, Memory
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.semantics import order
from kernelpack.emulator.semantics.order import Sync
from kernelpack.emulator.semantics.spaces import SPACE_OF, WINDOW_SHIFT, WINDOWS

_TYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_OFFSET = np.array((1 << RANK_SHIFT) - 1, np.uint64)
_SHIFT = np.array(RANK_SHIFT, np.uint64)
_WINDOW = np.uint64(WINDOW_SHIFT)
Part = tuple[Memory, Lanes, Mask | None]
"""A memory, the byte offsets in it (of the chosen lanes only), and which lanes these are."""


def place(warp: Warp, mask: Mask | None, addresses: Lanes, space: str) -> Iterator[Part]:
    """Which memory each lane accesses, lanes of one memory together."""
    if space == "generic":
        yield from _generic(warp, mask, addresses)
    elif space == "shared":
        yield from _shared(warp, mask, addresses)
    elif space in ("global", "const"):
        memory = warp.cta.machine.memory
        yield memory, _chosen(addresses, mask) - memory.first, mask
    elif space == "local":
        yield warp.local, _local(warp, addresses, mask), mask
    elif space == "param":
        yield warp.cta.launched.parameters, _chosen(addresses, mask), mask
    else:
        raise Fault(f"an access to the {space} space", where=f"warp {warp.index}")


def _chosen(values: Lanes, mask: Mask | None) -> Lanes:
    return values if mask is None else values[mask]


def _local(warp: Warp, addresses: Lanes, mask: Mask | None) -> Lanes:
    """Offsets in the warp's local memory; an address outside the thread's part goes nowhere."""
    outside = addresses >= np.uint64(warp.local_bytes)
    base = (LANE_IDS * warp.local_bytes).astype(np.uint64)
    nowhere = np.uint64(NOWHERE) | addresses & np.uint64(NOWHERE - 1)
    return _chosen(np.where(outside, nowhere, base + addresses), mask)


def _shared(warp: Warp, mask: Mask | None, addresses: Lanes) -> Iterator[Part]:
    active = _chosen(addresses, mask)
    if not len(active):
        return
    rank = int(active[0]) >> RANK_SHIFT
    if _is_of_one_rank(active):
        yield peer(warp, rank).shared, active & _OFFSET, mask
        return
    ranks = addresses >> _SHIFT
    every = EVERY if mask is None else mask
    for each in np.unique(active >> _SHIFT):
        lanes = every & (ranks == each)
        yield peer(warp, int(each)).shared, addresses[lanes] & _OFFSET, lanes


def _is_of_one_rank(addresses: Lanes) -> bool:
    """Whether shared addresses all name one CTA: the ranks' bits in any are those in all."""
    some = int(np.bitwise_or.reduce(addresses)) >> RANK_SHIFT
    return some == 0 or some == int(np.bitwise_and.reduce(addresses)) >> RANK_SHIFT


def peer(warp: Warp, rank: int) -> Cta:
    """The CTA of a rank in the warp's cluster.

    Raises:
        Fault: the cluster has no such CTA.
    """
    ctas = warp.cta.cluster.ctas
    if rank >= len(ctas):
        raise Fault(
            f"a shared address names CTA {rank} of a cluster of {len(ctas)}",
            where=f"cta {warp.cta.position} warp {warp.index}",
        )
    if ctas[rank] is not warp.cta:
        _visit(warp, ctas[rank])
    return ctas[rank]


def _visit(warp: Warp, cta: Cta) -> None:
    """Shared memory of another CTA is accessed, which must have started, and not ended."""
    if not cta.present:
        warp.cta.machine.misuse(
            rules.CTA_ENDED,
            f"shared memory of cta {cta.position}, which has ended, is accessed",
        )
    reach(warp, cta, "an access to its shared memory", rules.CTA_NOT_STARTED)


def reach(warp: Warp, cta: Cta, what: str, rule: Rule) -> None:
    """Report to the checks that a warp reaches into another CTA, with the rule it may break."""
    bus = warp.cta.machine.bus
    if cta is not warp.cta and bus.wants(Reached):
        bus.emit(Reached(warp.agent, cta.number, cta.position, what, rule))


def _generic(warp: Warp, mask: Mask | None, addresses: Lanes) -> Iterator[Part]:
    windows = addresses >> _WINDOW
    active = _chosen(windows, mask)
    if not len(active):
        return
    every = EVERY if mask is None else mask
    spaces = {SPACE_OF.get(int(window), "global") for window in np.unique(active)}
    for space in sorted(spaces):
        lanes = mask
        if len(spaces) > 1:
            known = np.array([SPACE_OF.get(int(w), "global") == space for w in windows])
            lanes = every & known
        base = np.uint64(WINDOWS.get(space, 0))
        yield from place(warp, lanes, addresses - base, space)


def load(
    warp: Warp,
    mask: Mask | None,
    addresses: Lanes,
    space: str,
    *,
    size: int,
    count: int = 1,
    sync: Sync | None = None,
) -> list[Lanes]:
    """`count` consecutive values of `size` bytes for each lane."""
    whole: list[Lanes] | None = None
    for memory, offsets, lanes in place(warp, mask, addresses, space):
        warp.cta.machine.current = warp
        values = memory.load(offsets, size, count, lanes)
        told(warp, memory, offsets, size * count, write=False, sync=sync, by=lane_ids(lanes))
        if lanes is None:
            return values
        if whole is None:
            whole = [np.zeros(WIDTH, _TYPES[size]) for _ in range(count)]
        for out, value in zip(whole, values, strict=True):
            out[lanes] = value
    return whole or [np.zeros(WIDTH, _TYPES[size]) for _ in range(count)]


def store(
    warp: Warp,
    mask: Mask | None,
    addresses: Lanes,
    space: str,
    values: list[Lanes],
    *,
    sync: Sync | None = None,
) -> None:
    """Consecutive unsigned values from each lane, all of one size.

    It changes the machine unless nobody else can see it: local memory, or a flag that is raised
    again while it is up, as loops do that poll.
    """
    machine, size = warp.cta.machine, values[0].itemsize
    for memory, offsets, lanes in place(warp, mask, addresses, space):
        machine.current = warp
        chosen = values if lanes is None else [value[lanes] for value in values]
        same = partial(memory.holds, offsets, chosen)
        whole, by = size * len(values), lane_ids(lanes)
        told(warp, memory, offsets, whole, write=True, sync=sync, by=by, unchanged=same)
        unseen = memory.unit.kind == "local" or (sync and memory.holds(offsets, chosen))
        machine.changes += not unseen
        memory.store(offsets, size, chosen, lanes)


def lane_ids(mask: Mask | None) -> Lanes:
    """The numbers of the active lanes."""
    return LANE_IDS if mask is None else LANE_IDS[mask]


def told(
    warp: Warp,
    memory: Memory,
    offsets: Lanes,
    size: int,
    *,
    write: bool,
    sync: Sync | None = None,
    by: Lanes | None = None,
    mbarrier: str = "",
    unchanged: Callable[[], bool] | None = None,
) -> None:
    """Report an access `by` lanes to the listeners; `sync` makes it a synchronising one."""
    bus = warp.cta.machine.bus
    if memory.unit.kind in ("local", "param") or not bus.wants(Access) or not len(offsets):
        return
    order.acquire(warp, memory, offsets, sync)
    cells, touched = words(offsets, size)
    if memory.unit.kind == "global":
        inside = (cells >= 0) & (cells < memory.unit.cells)
        if np.count_nonzero(inside) < inside.size:
            cells, touched = cells[inside], touched if isinstance(touched, int) else touched[inside]
            by = None
            if not len(cells):
                return
    elif cells.max() >= memory.unit.cells:
        return
    event = Access(
        memory.unit, cells, warp.agent, write, "generic", touched, atomic=sync is not None
    )
    event.lanes = by
    event.mbarrier, event.unchanged = mbarrier, unchanged
    bus.emit(event)
    order.release(warp, memory, offsets, sync, by)


_CELL = np.array(2, np.uint64)
_SHORT_MASK = {1: 1, 2: 3, 4: 15}


def words(offsets: Lanes, size: int) -> tuple[Lanes, int | Lanes]:
    """The 4-byte cells of accesses of `size` bytes, and which bytes of each are meant."""
    first = (offsets >> _CELL).view(np.intp)
    if size == 4:
        return first, 15
    if size > 4:
        return (first[:, None] + np.arange(size // 4)).reshape(-1), 15
    shift = (offsets & np.uint64(3)).astype(np.uint8)
    return first, (np.uint8(_SHORT_MASK[size]) << shift).astype(np.uint8)


def each_lane(mask: Mask | None) -> list[int]:
    """The numbers of the active lanes."""
    return list(range(WIDTH)) if mask is None else np.nonzero(mask)[0].tolist()


def uniform(values: Lanes, mask: Mask | None) -> int:
    """The value of the first active lane."""
    return int(values[0] if mask is None else values[mask.argmax()])
