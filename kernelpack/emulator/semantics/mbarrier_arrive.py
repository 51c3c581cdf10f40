"""mbarrier.init, inval, expect_tx, complete_tx, arrive and what they return (PTX ISA 9.7.13.15)."""

from collections.abc import Callable
from functools import partial

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.machine.lanes import ALONE, EVERY, WIDTH, Lanes, Mask
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.models import mbarrier as model
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
            if offset % model.BYTES or offset + model.BYTES > cta.shared.size:
                raise UnitFault(misuse(rules.MBARRIER_ADDRESS, f"an mbarrier at {hex(offset)}"))
            where = np.arange(offset, offset + model.BYTES)
            access.told(
                warp,
                cta.shared,
                np.array([offset], np.uint64),
                8,
                write=True,
                by=np.array([lane]),
                mbarrier="init",
            )
            cta.shared.scatter(where, np.zeros(model.BYTES, np.uint8))
            if offset in cta.mbarriers:
                warp.cta.machine.misuse(
                    rules.MBARRIER_REINITIALISED,
                    f"the mbarrier at {hex(offset)} is initialised again without mbarrier.inval",
                    lane=lane,
                )
            cta.mbarriers[offset] = _fresh(warp, int(count[lane]))
            cta.units.of(mbarrier.Fresh).offsets.add(offset)
            cta.machine.changes += 1

    return call


def _fresh(warp: Warp, count: int) -> model.State:
    """A new mbarrier. One of no arrivals is a fault; the run goes on, for it may never be used."""
    try:
        return model.init(count)
    except UnitFault as fault:
        warp.cta.machine.bus.emit(fault.misuse)
        return model.State(count, count)


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
            cta.mbarriers[offset] = model.expect_tx(cta.mbarriers[offset], int(size[lane]))

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
            change = partial(model.complete_tx, units=int(size[lane]))
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

    def change(state: model.State, value: int | None) -> model.State:
        if form.has("expect_tx"):
            both = model.arrive_drop_expect_tx if drop else model.arrive_expect_tx
            return both(state, value or 0)
        count = 1 if value is None else value
        if drop:
            return model.arrive_drop(state, count)
        return model.arrive(state, count, no_complete=no_complete)

    is_plain = not (drop or no_complete or form.has("expect_tx"))
    update = partial(mbarrier.update, relaxed=relaxed, scope=scope)

    def call(warp: Warp, mask: Mask | None, at: Lanes, value: Lanes | None = None) -> Lanes:
        tokens = np.zeros(WIDTH, np.uint64)
        warp.cta.machine.current = warp
        tensor_memory.settle(warp)
        if is_plain and _together(warp, mask, (at, value), update, tokens):
            return tokens
        together = mbarrier.Together()
        for lane in access.each_lane(mask):
            cta, offset = mbarrier.find(warp, int(at[lane]))
            given = None if value is None else int(value[lane])
            arrived = partial(change, value=given)
            before = update(cta, offset, warp.agent, arrived, by=ALONE[lane])
            together.look(cta, offset, before, lane)
            tokens[lane] = model.token(before)
        return tokens

    return call


def _together(
    warp: Warp,
    mask: Mask | None,
    operands: tuple[Lanes, Lanes | None],
    update: Callable[..., model.State],
    tokens: Lanes,
) -> bool:
    """Arrivals of all lanes at one mbarrier, in one phase: one by one they would do the same."""
    at, value = operands
    one = mbarrier.of_all(warp, mask, at)
    if one is None:
        return False
    cta, offset, lanes = one
    each = 1 if value is None else _same_in_all(value, mask)
    if not mbarrier.fits(cta.mbarriers[offset], each * lanes):
        return False
    every = EVERY if mask is None else mask
    before = update(cta, offset, warp.agent, partial(model.arrive, count=each * lanes), by=every)
    tokens[every] = model.token(before) - each * np.arange(lanes)
    return True


def _same_in_all(values: Lanes, mask: Mask | None) -> int:
    """The number that all lanes have, or 0."""
    chosen = values if mask is None else values[mask]
    return 0 if np.count_nonzero(chosen != chosen[0]) else int(chosen[0])


@lanes("mbarrier.pending_count", "9.7.13.15.18", operands=("=u32", "b64"), types=("b64",))
def pending(_form: Form) -> Handler:
    """D = the arrivals that were pending when a token was made."""
    return lambda token: np.array([model.pending_count(int(t)) for t in token], np.uint32)
