"""mbarrier.init, inval, expect_tx, complete_tx, arrive and what they return (PTX ISA 9.7.13.15)."""

from functools import partial

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.machine.lanes import ALONE, WIDTH, Lanes, Mask
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.models import mbarrier as unit
from kernelpack.emulator.models.fault import UnitFault, misuse
from kernelpack.emulator.semantics import access, mbarrier, tensor_memory
from kernelpack.emulator.semantics.mbarrier import FLAGS, SPACE_FLAGS
from kernelpack.emulator.semantics.table import Form, Handler, lanes, machine


@machine(
    "mbarrier.init", "9.7.13.15.9", operands=("@shared", "u32"), types=("b64",), flags=SPACE_FLAGS
)
def initialise(_form: Form) -> Handler:
    """Make an mbarrier at the address that expects a number of arrivals."""

    def call(warp: Warp, mask: Mask | None, at: Lanes, count: Lanes) -> None:
        warp.cta.machine.current = warp
        for lane in access.each_lane(mask):
            cta, offset = mbarrier.place(warp, int(at[lane]))
            if offset % unit.BYTES or offset + unit.BYTES > cta.shared.size:
                raise UnitFault(misuse(rules.MBARRIER_ADDRESS, f"an mbarrier at {hex(offset)}"))
            where = np.arange(offset, offset + unit.BYTES)
            access.told(
                warp,
                cta.shared,
                np.array([offset], np.uint64),
                8,
                write=True,
                by=np.array([lane]),
                mbarrier="init",
            )
            cta.shared.scatter(where, np.zeros(unit.BYTES, np.uint8))
            if offset in cta.mbarriers:
                warp.cta.machine.misuse(
                    rules.MBARRIER_REINITIALISED,
                    f"the mbarrier at {hex(offset)} is initialised again without mbarrier.inval",
                    lane=lane,
                )
            cta.mbarriers[offset] = _fresh(warp, int(count[lane]))
            cta.units.setdefault(mbarrier.FRESH, set()).add(offset)
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
            cta, offset = mbarrier.find(warp, int(at[lane]))
            where = np.array([offset], np.uint64)
            access.told(
                warp, cta.shared, where, 8, write=True, by=np.array([lane]), mbarrier="inval"
            )
            del cta.mbarriers[offset]
            mbarrier.forget(cta, offset)

    return call


@machine(
    "mbarrier.expect_tx", "9.7.13.15.11", operands=("@shared", "u32"), types=("b64",), flags=FLAGS
)
def expect(_form: Form) -> Handler:
    """The current phase waits for more transactions."""

    def call(warp: Warp, mask: Mask | None, at: Lanes, size: Lanes) -> None:
        for lane in access.each_lane(mask):
            cta, offset = mbarrier.find(warp, int(at[lane]))
            cta.mbarriers[offset] = unit.expect_tx(cta.mbarriers[offset], int(size[lane]))

    return call


@machine(
    "mbarrier.complete_tx",
    "9.7.13.15.12",
    operands=("@shared", "u32"),
    types=("b64",),
    flags=FLAGS,
)
def complete_transactions(_form: Form) -> Handler:
    """Transactions of the current phase are done; it is relaxed, and says nothing else."""

    def call(warp: Warp, mask: Mask | None, at: Lanes, size: Lanes) -> None:
        for lane in access.each_lane(mask):
            cta, offset = mbarrier.find(warp, int(at[lane]))
            change = partial(unit.complete_tx, units=int(size[lane]))
            mbarrier.update(cta, offset, warp.agent, change, relaxed=True)

    return call


def _arrive_operands(form: Form) -> tuple[str, ...]:
    first = form.instruction.operands[0] if form.instruction.operands else None
    head = () if hasattr(first, "base") else ("=b64",)
    return (*head, "@shared", "u32?")


@machine("mbarrier.arrive mbarrier.arrive_drop", "9.7.13.15.13", operands=_arrive_operands,
         types=("b64",), flags=(*FLAGS, "expect_tx", "noComplete"))  # fmt: skip
def arrive(form: Form) -> Handler:
    """Arrive; `.expect_tx` first raises the tx-count, `_drop` leaves the barrier for good."""
    drop = form.instruction.modifiers[0] == "arrive_drop"
    no_complete, relaxed = form.has("noComplete"), form.has("relaxed")
    scope = mbarrier.scope_of(form)
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
        together = mbarrier.Together()
        for lane in access.each_lane(mask):
            cta, offset = mbarrier.find(warp, int(at[lane]))
            given = None if value is None else int(value[lane])
            arrived = partial(change, value=given)
            before = mbarrier.update(
                cta, offset, warp.agent, arrived, relaxed=relaxed, scope=scope, by=ALONE[lane]
            )
            together.look(cta, offset, before, lane)
            tokens[lane] = unit.token(before)
        return tokens

    return call


@lanes("mbarrier.pending_count", "9.7.13.15.18", operands=("=u32", "b64"), types=("b64",))
def pending(_form: Form) -> Handler:
    """D = the arrivals that were pending when a token was made."""
    return lambda token: np.array([unit.pending_count(int(t)) for t in token], np.uint32)
