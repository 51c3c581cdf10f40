"""Accesses that synchronise: the order and scope that loads, stores and atomics are written with.

PTX ISA 8.8: a release is one that says so, or a fence and a relaxed (or volatile) write after it;
an acquire is one that says so, or a relaxed read and a fence after it. What a word carries from
thread to thread goes through the channel of that word.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from kernelpack.emulator.events import Acquire, Channel, Release, Scope
from kernelpack.emulator.machine.lanes import WIDTH, Lanes, Mask
from kernelpack.emulator.machine.memory import Memory
from kernelpack.emulator.machine.warp import Warp
from kernelpack.emulator.semantics.table import Form


@dataclass(slots=True)
class Fences:
    """State of the machine: whether a fence was run."""

    seen: bool = False


class Order(Enum):
    """The reading or the writing half of an access; a weak access has neither."""

    RELAXED = "nothing without a fence"
    FULL = "acquire or release"


@dataclass(frozen=True, slots=True)
class Sync:
    """How an access synchronises: as a read, as a write, and with whom."""

    reads: Order | None
    writes: Order | None
    scope: Scope


def of_access(form: Form) -> Sync | None:
    """That of a load or store; None where it is weak. Volatile is relaxed (8.4.2)."""
    if not form.has("relaxed", "volatile", "mmio", "acquire", "release"):
        return None
    order = Order.FULL if form.has("acquire", "release") else Order.RELAXED
    is_load = form.instruction.opcode != "st"
    return Sync(order if is_load else None, None if is_load else order, scope_of(form))


def of_atomic(form: Form) -> Sync:
    """That of `atom` or `red`, relaxed where nothing is written.

    A relaxed `atom` is taken to acquire: the example of the CUDA programming guide, where the last
    block adds up what the others stored, has no fence after it. `red` reads nothing (8.11.1).
    """
    is_release = form.has("release", "acq_rel")
    reads = Order.FULL if form.instruction.opcode == "atom" else None
    return Sync(reads, Order.FULL if is_release else Order.RELAXED, scope_of(form))


def scope_of(form: Form) -> Scope:
    """The scope that is written, the device's if none is; `membar.gl` is that of the device."""
    if form.has("cta"):
        return Scope.CTA
    return Scope.CLUSTER if form.has("cluster") else Scope.DEVICE


def acquire(warp: Warp, memory: Memory, offsets: Lanes, sync: Sync | None) -> None:
    """A warp learns what was released to the words it is about to read."""
    if sync is None or sync.reads is None:
        return
    relaxed = sync.reads is Order.RELAXED
    for channel in _channels(warp, memory, offsets, relaxed=relaxed):
        event = Acquire(warp.agent, channel, relaxed=relaxed, scope=sync.scope)
        warp.cta.machine.bus.emit(event)


def release(
    warp: Warp, memory: Memory, offsets: Lanes, sync: Sync | None, by: Lanes | None = None
) -> None:
    """A warp releases what it did to the words that it wrote; `by` are the lanes of the offsets.

    Shared memory sees the writes of a thread in order, fence or not.
    """
    if sync is None or sync.writes is None:
        return
    relaxed, tolerated = sync.writes is Order.RELAXED, memory.unit.kind == "shared"
    for channel in _channels(warp, memory, offsets, relaxed=relaxed):
        lanes = _writers(channel, offsets, by)
        event = Release(warp.agent, channel, relaxed, sync.scope, tolerated, lanes)
        warp.cta.machine.bus.emit(event)


def _writers(channel: Channel, offsets: Lanes, by: Lanes | None) -> Mask | None:
    """The lanes that write the word of a channel."""
    if by is None or len(by) == WIDTH:
        return None
    assert isinstance(channel, tuple)
    lanes: Mask = np.zeros(WIDTH, bool)
    lanes[by[offsets // np.uint64(4) == channel[2]]] = True
    return lanes


def _channels(warp: Warp, memory: Memory, offsets: Lanes, *, relaxed: bool) -> list[Channel]:
    """The words that lanes access; the first alone where no fence can make them matter."""
    first = int(offsets[0]) // 4
    if len(offsets) == 1 or (relaxed and not warp.cta.machine.units.of(Fences).seen):
        return [("word", memory.unit, first)]
    return [("word", memory.unit, word) for word in np.unique(offsets // np.uint64(4)).tolist()]
