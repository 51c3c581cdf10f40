"""The mbarriers of a cluster: found, and changed by warps and units (PTX ISA 9.7.13.15)."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.events import Access, Release, Scope
from kernelpack.emulator.machine.cluster import RANK_SHIFT, Cta
from kernelpack.emulator.machine.lanes import Lanes, Mask
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.models import mbarrier as model
from kernelpack.emulator.models.fault import UnitFault, misuse
from kernelpack.emulator.semantics import access
from kernelpack.emulator.semantics.copies import Doer
from kernelpack.emulator.semantics.table import Form

_OFFSET = (1 << RANK_SHIFT) - 1
SPACE_FLAGS = ("shared", "shared::cta", "shared::cluster")
FLAGS = (*SPACE_FLAGS, "relaxed", "release", "acquire", "cta", "cluster")


def scope_of(form: Form) -> Scope:
    """The scope of an arrival or a wait: the CTA where none is written (9.7.13.15.13)."""
    return Scope.CLUSTER if form.has("cluster") else Scope.CTA


def place(warp: Warp, address: int) -> tuple[Cta, int]:
    """The CTA and byte offset that a shared address names."""
    return access.peer(warp, address >> RANK_SHIFT & 0xFF), address & _OFFSET


def find(warp: Warp, address: int) -> tuple[Cta, int]:
    """The CTA and byte offset of an mbarrier from its shared address.

    Raises:
        UnitFault: no mbarrier was initialised there.
    """
    cta, offset = place(warp, address)
    if offset not in cta.mbarriers:
        raise UnitFault(
            misuse(
                rules.MBARRIER_NOT_INITIALISED,
                f"no mbarrier was initialised at {hex(offset)} of cta {cta.position}",
            )
        )
    _look(warp, cta, offset, warp.agent, "an mbarrier operation")
    return cta, offset


@dataclass(slots=True)
class _Seen:
    """State of a warp: the mbarriers that it used, by CTA number and byte offset."""

    mbarriers: set[tuple[int, int]] = field(default_factory=set)


def _look(warp: Warp, cta: Cta, offset: int, agent: int, what: str) -> None:
    """A warp's first use of an mbarrier, or that of a copy which it started.

    The initialisation must have happened before.
    """
    seen = warp.units.of(_Seen).mbarriers
    if (cta.number, offset) in seen or not cta.machine.bus.wants(Access):
        return
    seen.add((cta.number, offset))
    cells = np.array([offset // 4, offset // 4 + 1])
    use = Access(cta.shared.unit, cells, agent, False, "generic", atomic=True, what=what)
    use.mbarrier = "use"
    cta.machine.bus.emit(use)


def forget(cta: Cta, offset: int) -> None:
    """An mbarrier is gone: a user of a new one there must know of its initialisation."""
    for other in cta.cluster.ctas:
        for warp in other.warps:
            warp.units.of(_Seen).mbarriers.discard((cta.number, offset))


def channel(cta: Cta, offset: int, phase: int) -> tuple[object, ...]:
    """The channel of one phase of an mbarrier."""
    return ("mbarrier", cta.number, offset, phase)


def update(
    cta: Cta,
    offset: int,
    agent: int,
    change: Callable[[model.State], model.State],
    *,
    relaxed: bool = False,
    scope: Scope = Scope.CLUSTER,
    by: Mask | None = None,
) -> model.State:
    """Change an mbarrier on behalf of an agent, whose past goes into the current phase."""
    before: model.State = cta.mbarriers[offset]
    told = channel(cta, offset, before.phase)
    cta.machine.bus.emit(Release(agent, told, relaxed, scope, tolerated=True, by=by))
    cta.mbarriers[offset] = change(before)
    cta.machine.changes += 1
    return before


def of_all(warp: Warp, mask: Mask | None, at: Lanes) -> tuple[Cta, int, int] | None:
    """The mbarrier that several lanes all name, and how many they are; None where it is not one."""
    addresses = at if mask is None else at[mask]
    if len(addresses) < 2 or np.count_nonzero(addresses != addresses[0]):
        return None
    return *find(warp, int(addresses[0])), len(addresses)


def fits(state: model.State, arrivals: int) -> bool:
    """Whether so many arrivals are of one phase, so that their order is of no account."""
    return 0 < arrivals <= state.pending


@dataclass(slots=True)
class Together:
    """Arrivals of one instruction, which a count made of whole warps has in one phase.

    Where they end a phase and begin the next one, the order of lanes, which nothing fixes, decides
    whose past the phase stands for: the count is a few arrivals too low.
    """

    first: dict[tuple[int, int], int] = field(default_factory=dict)
    """CTA and byte offset of an mbarrier → the phase of the first arrival."""

    def look(self, cta: Cta, offset: int, before: model.State, lane: int) -> None:
        """A lane arrived; `before` is the state that it found."""
        if self.first.setdefault((cta.number, offset), before.phase) == before.phase:
            return
        cta.machine.misuse(
            rules.MBARRIER_SPLIT_WARP,
            f"lanes of one instruction arrive in two phases of the mbarrier at {hex(offset)}, "
            f"which expects {before.expected} arrivals",
            lane=lane,
        )


def complete(cta: Cta, offset: int, doer: Doer, size: int) -> None:
    """A copy of `size` bytes is done: complete_tx."""
    if offset not in cta.mbarriers:
        raise UnitFault(
            misuse(
                rules.MBARRIER_NOT_INITIALISED,
                f"a copy completes on {hex(offset)} of cta {cta.position}, where no mbarrier is",
            )
        )
    look_fenced(cta, offset)
    _look(doer.warp, cta, offset, doer.agent, f"the completion of {doer.what}")
    update(cta, offset, doer.agent, lambda state: model.complete_tx(state, size))


@dataclass(slots=True)
class Fresh:
    """State of a CTA: the byte offsets of mbarriers that no fence has shown to others yet.

    Others are the proxies by which units see shared memory.
    """

    offsets: set[int] = field(default_factory=set)


def show(cta: Cta) -> None:
    """A fence of the CTA shows its mbarriers to other proxies."""
    cta.units.of(Fresh).offsets.clear()


def look_fenced(cta: Cta, offset: int) -> None:
    """A unit works on an mbarrier: since the initialisation there must have been a fence."""
    if offset in cta.units.of(Fresh).offsets:
        cta.machine.misuse(
            rules.MBARRIER_FENCE,
            f"a unit works on the mbarrier at {hex(offset)} of cta {cta.position}, with no "
            "fence.mbarrier_init or fence.proxy.async after its initialisation",
        )
