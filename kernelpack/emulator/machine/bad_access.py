"""Accesses that cannot be right, as the checks hear of them: the rule, and the place in words."""

from functools import partial

from kernelpack.emulator import rules
from kernelpack.emulator.events import Bus, Misuse
from kernelpack.emulator.machine.memory import NOWHERE, Bad, GlobalMemory, Memory, OnBad

_BAD = {
    "bounds": ("out-of-bounds", rules.BOUNDS),
    "misaligned": ("misaligned", rules.MISALIGNED),
    "uninitialised": ("uninitialised", rules.UNINITIALISED),
}
"""The mistake of an access: in words, and the rule."""


def reporter(bus: Bus) -> OnBad:
    """A memory's callback for a bad access."""
    return partial(_report, bus)


def _report(bus: Bus, memory: Memory, bad: Bad) -> None:
    how, rule = _BAD[bad.what]
    did = f"write of {bad.size} bytes to" if bad.write else f"read of {bad.size} bytes from"
    where = _place(memory, bad.offset)
    text = f"{how} {did.replace(' 1 bytes', ' a byte')} {memory.unit.name} at {where}"
    bus.emit(Misuse(rule, text, bad.lane))


def _place(memory: Memory, offset: int) -> str:
    """The address, or the offset, and the allocation that it belongs to."""
    if isinstance(memory, GlobalMemory):
        address = (memory.base + offset) & (1 << 64) - 1
        return f"{hex(address)}: {memory.describe(offset)}"
    inside = hex(offset & NOWHERE - 1)
    if memory.allocations:
        return f"{inside}: {memory.describe(offset)}"
    return f"offset {inside} of {memory.size} bytes"
