"""The mbarriers of a cluster: the instructions, and what other units do (PTX ISA 9.7.13.15)."""

from collections.abc import Callable

import numpy as np

from kernelpack.emulator.events import Access, Acquire, Release
from kernelpack.emulator.faults import Level
from kernelpack.emulator.machine.cluster import RANK_SHIFT, Cta
from kernelpack.emulator.machine.engine import Tempo
from kernelpack.emulator.machine.lanes import WIDTH, Lanes, Mask, constant
from kernelpack.emulator.machine.warp import Answer, Split, Wait, Warp
from kernelpack.emulator.models import mbarrier as unit
from kernelpack.emulator.models.fault import UnitFault, misuse
from kernelpack.emulator.semantics import access, tensor_memory
from kernelpack.emulator.semantics.table import Form, Handler, control, lanes, machine

_SECTION = "9.7.13.15"
_OFFSET = (1 << RANK_SHIFT) - 1
SPACE_FLAGS = ("shared", "shared::cta", "shared::cluster")
_FLAGS = (*SPACE_FLAGS, "relaxed", "release", "acquire", "cta", "cluster")


def find(warp: Warp, address: int) -> tuple[Cta, int]:
    """The CTA and byte offset of an mbarrier from its shared address.

    Raises:
        UnitFault: no mbarrier was initialised there.
    """
    cta = access.peer(warp, address >> RANK_SHIFT & 0xFF)
    offset = address & _OFFSET
    if offset not in cta.mbarriers:
        raise UnitFault(
            misuse(
                "mbarrier-not-initialised",
                f"no mbarrier was initialised at {hex(offset)} of cta {cta.position}",
                _SECTION,
            )
        )
    _look(warp, cta, offset)
    return cta, offset


def _look(warp: Warp, cta: Cta, offset: int) -> None:
    """The warp's first use of an mbarrier: its initialisation must have happened before."""
    seen = warp.units.get("mbarriers")
    if seen is None:
        seen = warp.units["mbarriers"] = set()
    if (cta.number, offset) in seen or not cta.machine.bus.wants(Access):
        return
    seen.add((cta.number, offset))
    cells = np.array([offset // 4, offset // 4 + 1])
    what = "an mbarrier operation"
    cta.machine.bus.emit(
        Access(cta.shared.unit, cells, warp.agent, False, "generic", atomic=True, what=what)
    )


def channel(cta: Cta, offset: int, phase: int) -> tuple[object, ...]:
    """The channel of one phase of an mbarrier."""
    return ("mbarrier", cta.number, offset, phase)


def update(
    cta: Cta, offset: int, agent: int, change: Callable[[unit.State], unit.State]
) -> unit.State:
    """Change an mbarrier on behalf of an agent, whose past goes into the current phase."""
    before: unit.State = cta.mbarriers[offset]
    cta.machine.bus.emit(Release(agent, channel(cta, offset, before.phase)))
    cta.mbarriers[offset] = change(before)
    cta.machine.changes += 1
    return before


def complete(cta: Cta, offset: int, agent: int, size: int) -> None:
    """A copy of `size` bytes is done: complete_tx."""
    if offset not in cta.mbarriers:
        raise UnitFault(
            misuse(
                "mbarrier-not-initialised",
                f"a copy completes on {hex(offset)} of cta {cta.position}, which is no mbarrier",
                _SECTION,
            )
        )
    look_fenced(cta, offset)
    update(cta, offset, agent, lambda state: unit.complete_tx(state, size))


_FRESH = "fresh mbarriers"
"""Byte offsets in a CTA of mbarriers that no fence has shown to other proxies."""


def show(cta: Cta) -> None:
    """A fence of the CTA shows its mbarriers to other proxies."""
    cta.units.pop(_FRESH, None)


def look_fenced(cta: Cta, offset: int) -> None:
    """A unit works on an mbarrier: since the initialisation there must have been a fence."""
    if offset in cta.units.get(_FRESH, ()):
        cta.machine.misuse(
            "mbarrier-fence",
            f"a unit works on the mbarrier at {hex(offset)} of cta {cta.position}, with no "
            "fence.mbarrier_init or fence.proxy.async after its initialisation",
            "9.7.13.4",
            level=Level.STRICT,
        )


@machine(
    "mbarrier.init", "9.7.13.15.9", operands=("@shared", "u32"), types=("b64",), flags=SPACE_FLAGS
)
def initialise(_form: Form) -> Handler:
    """Make an mbarrier at the address that expects a number of arrivals."""

    def call(warp: Warp, mask: Mask | None, at: Lanes, count: Lanes) -> None:
        warp.cta.machine.current = warp
        for lane in access.each_lane(mask):
            cta = access.peer(warp, int(at[lane]) >> RANK_SHIFT & 0xFF)
            offset = int(at[lane]) & _OFFSET
            if offset % unit.BYTES or offset + unit.BYTES > cta.shared.size:
                raise UnitFault(
                    misuse("mbarrier-address", f"an mbarrier at {hex(offset)}", "9.7.13.15.1")
                )
            where = np.arange(offset, offset + unit.BYTES)
            access.told(
                warp, cta.shared, np.array([offset], np.uint64), 8, write=True, by=np.array([lane])
            )
            cta.shared.scatter(where, np.zeros(unit.BYTES, np.uint8))
            if offset in cta.mbarriers:
                warp.cta.machine.misuse(
                    "mbarrier-reinitialised",
                    f"the mbarrier at {hex(offset)} is initialised again without mbarrier.inval",
                    "9.7.13.15.9",
                    lane=lane,
                )
            cta.mbarriers[offset] = _fresh(warp, int(count[lane]))
            cta.units.setdefault(_FRESH, set()).add(offset)
            cta.machine.changes += 1

    return call


def _fresh(warp: Warp, count: int) -> unit.State:
    """A new mbarrier. One of no arrivals is a fault; the run goes on, for it may never be used."""
    try:
        return unit.init(count)
    except UnitFault as fault:
        warp.cta.machine.bus.emit(fault.misuse)
        return unit.State(count, count)


@machine("mbarrier.inval", "9.7.13.15.10", operands=("@shared",), types=("b64",), flags=SPACE_FLAGS)
def invalidate(_form: Form) -> Handler:
    """The address holds an mbarrier no longer."""

    def call(warp: Warp, mask: Mask | None, at: Lanes) -> None:
        for lane in access.each_lane(mask):
            cta, offset = find(warp, int(at[lane]))
            del cta.mbarriers[offset]

    return call


@machine(
    "mbarrier.expect_tx", "9.7.13.15.11", operands=("@shared", "u32"), types=("b64",), flags=_FLAGS
)
def expect(_form: Form) -> Handler:
    """The current phase waits for more transactions."""

    def call(warp: Warp, mask: Mask | None, at: Lanes, size: Lanes) -> None:
        for lane in access.each_lane(mask):
            cta, offset = find(warp, int(at[lane]))
            cta.mbarriers[offset] = unit.expect_tx(cta.mbarriers[offset], int(size[lane]))

    return call


@machine(
    "mbarrier.complete_tx",
    "9.7.13.15.12",
    operands=("@shared", "u32"),
    types=("b64",),
    flags=_FLAGS,
)
def complete_transactions(_form: Form) -> Handler:
    """Transactions of the current phase are done."""

    def call(warp: Warp, mask: Mask | None, at: Lanes, size: Lanes) -> None:
        for lane in access.each_lane(mask):
            cta, offset = find(warp, int(at[lane]))
            update(cta, offset, warp.agent, lambda s, n=int(size[lane]): unit.complete_tx(s, n))  # type: ignore[misc]

    return call


def _arrive_operands(form: Form) -> tuple[str, ...]:
    first = form.instruction.operands[0] if form.instruction.operands else None
    head = () if hasattr(first, "base") else ("=b64",)
    return (*head, "@shared", "u32?")


@machine("mbarrier.arrive mbarrier.arrive_drop", "9.7.13.15.13", operands=_arrive_operands,
         types=("b64",), flags=(*_FLAGS, "expect_tx", "noComplete"))  # fmt: skip
def arrive(form: Form) -> Handler:
    """Arrive; `.expect_tx` first raises the tx-count, `_drop` leaves the barrier for good."""
    drop = form.instruction.modifiers[0] == "arrive_drop"
    no_complete = form.has("noComplete")
    if drop and no_complete:
        raise form.unsupported("arrive_drop.noComplete")

    def change(state: unit.State, value: int | None) -> unit.State:
        if form.has("expect_tx"):
            both = unit.arrive_drop_expect_tx if drop else unit.arrive_expect_tx
            return both(state, value or 0)
        count = 1 if value is None else value
        if drop:
            return unit.arrive_drop(state, count)
        return unit.arrive(state, count, no_complete=no_complete)

    def call(warp: Warp, mask: Mask | None, at: Lanes, value: Lanes | None = None) -> Lanes:
        tokens = np.zeros(WIDTH, np.uint64)
        warp.cta.machine.current = warp
        tensor_memory.settle(warp)
        for lane in access.each_lane(mask):
            cta, offset = find(warp, int(at[lane]))
            given = None if value is None else int(value[lane])
            before = update(cta, offset, warp.agent, lambda s, g=given: change(s, g))  # type: ignore[misc]
            tokens[lane] = unit.token(before)
        return tokens

    return call


@lanes("mbarrier.pending_count", "9.7.13.15.18", operands=("=u32", "b64"), types=("b64",))
def pending(_form: Form) -> Handler:
    """D = the arrivals that were pending when a token was made."""
    return lambda token: np.array([unit.pending_count(int(t)) for t in token], np.uint32)


def _wait_operands(form: Form) -> tuple[str, ...]:
    return ("=pred", "@shared", "u32" if form.has("parity") else "b64", "u32?")


@control("mbarrier.test_wait mbarrier.try_wait", "9.7.13.15.16", operands=_wait_operands,
         types=("b64",), flags=(*_FLAGS, "parity"), yields=True)  # fmt: skip
def wait(form: Form) -> Handler:
    """P = whether a phase is complete.

    `try_wait` suspends the lanes until it is; it answers "no" only when nothing else in the grid
    can go on.
    """
    parity = form.has("parity")
    suspends = form.instruction.modifiers[0] == "try_wait"
    relaxed = form.has("relaxed")

    def passed(cta: Cta, offset: int, value: int) -> bool:
        state: unit.State = cta.mbarriers[offset]
        return unit.parity_passed(state, value) if parity else unit.token_passed(state, value)

    def call(
        warp: Warp, split: Split, mask: Mask, at: Lanes, phase: Lanes, *_hint: Lanes
    ) -> Wait | Lanes:
        warp.cta.machine.current = warp
        wanted = _asked(at[mask].tolist(), phase[mask].tolist())
        found = [(*find(warp, address), value) for address, value in wanted]
        done = [passed(*one) for one in found]
        if suspends and not any(done) and not _answers_early(warp, split):
            return Wait(
                "mbarrier",
                (lambda: passed(*found[0]))
                if len(found) == 1
                else (lambda: any(passed(*one) for one in found)),
                lambda: "; ".join(_describe(*one, parity=parity) for one in found),
                spurious=True,
            )
        split.token = None
        for (cta, offset, _), ready in zip(found, done, strict=True):
            if ready:
                _acquire(warp, cta, offset, relaxed=relaxed)
        split.spins = 0 if any(done) else split.spins + 1
        if len(done) == 1:
            return ANSWERS[done[0]]
        told = dict(zip(wanted, done, strict=True))
        pairs = zip(at.tolist(), phase.tolist(), strict=True)
        return np.array([told.get(pair, False) for pair in pairs])

    return call


def _asked(addresses: list[int], phases: list[int]) -> list[tuple[int, int]]:
    """The mbarriers and phases that lanes ask for, each once; mostly it is one."""
    if addresses.count(addresses[0]) == phases.count(phases[0]) == len(addresses):
        return [(addresses[0], phases[0])]
    return list(dict.fromkeys(zip(addresses, phases, strict=True)))


ANSWERS = {answer: constant(answer, 1) for answer in (False, True)}
"""The same answer for every lane."""


def _answers_early(warp: Warp, split: Split) -> bool:
    """Whether a `try_wait` answers "no" though its phase may still complete.

    It may do so after a time of the machine's choosing; a schedule that is late with everything
    does it now and then.
    """
    if split.token is Answer.NOT_YET:
        return True
    machine = warp.cta.machine
    return machine.engine.tempo is Tempo.LAZY and machine.rng.random() < EARLY_ANSWERS


EARLY_ANSWERS = 0.2
"""How often a lazy schedule lets a `try_wait` answer before its phase completes."""


def _acquire(warp: Warp, cta: Cta, offset: int, *, relaxed: bool) -> None:
    """The waiter knows now what was released to the phase that ended last."""
    if relaxed:
        return
    phase = cta.mbarriers[offset].phase - 1
    cta.machine.bus.emit(Acquire(warp.agent, channel(cta, offset, phase)))
    seen = warp.units.setdefault("phases", {})
    last = seen.get((cta.number, offset))
    if last is not None and phase - last > 1 and (phase - last) % 2 == 0:
        warp.cta.machine.misuse(
            "mbarrier-lapped",
            f"the mbarrier at {hex(offset)} went through {phase - last} phases since this warp "
            "looked last: it cannot tell which one it saw",
            _SECTION,
            level=Level.STRICT,
        )
    seen[cta.number, offset] = phase


def _describe(cta: Cta, offset: int, value: int, *, parity: bool) -> str:
    state = cta.mbarriers[offset]
    what = f"parity {value & 1}" if parity else f"phase {value >> 20}"
    return (
        f"mbarrier {hex(offset)} of cta {cta.position} for {what}: phase {state.phase}, "
        f"{state.pending} of {state.expected} arrivals pending, tx {state.tx}"
    )
