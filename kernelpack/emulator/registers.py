"""How many registers a thread of an entry starts with, where its directives say so.

It is what ptxas gives a kernel that has `setmaxnreg`: as many as fit the threads that are to be
resident (`.maxntid` or `.reqntid`, times `.minnctapersm`), or `.maxnreg`; no more than the kernel
asks for at any time. Where no directive says it, ptxas drops every `setmaxnreg` (its note C7508).
Seen with ptxas 13.4, for sm_90a and sm_100a.
"""

from math import prod

from kernelpack.emulator.ptx.parser import Entry
from kernelpack.emulator.ptx.syntax import Immediate
from kernelpack.spec.arch import Multiprocessor

MOST = 256
"""Of a thread; ptxas says 255, and 256 are allocated."""
_WARPGROUP = 128


def at_start(entry: Entry, on: Multiprocessor) -> int | None:
    """Registers of a thread at its start; None where no directive says how many."""
    limits = [_whole(most, on) for most in entry.directives.get("maxnreg", ())]
    threads = prod(entry.directives.get("reqntid") or entry.directives.get("maxntid") or (0,))
    blocks = prod(entry.directives.get("minnctapersm", (0,)))
    if threads and blocks:
        resident = -(-threads * blocks // _WARPGROUP) * _WARPGROUP
        limits.append(on.registers // resident // on.registers_come_by * on.registers_come_by)
    if not limits:
        return None
    return min(*limits, MOST, *_asked(entry))


def _asked(entry: Entry) -> list[int]:
    """The most that a kernel has at any time, if it ever asks for more."""
    counts: dict[str, list[int]] = {"inc": [], "dec": []}
    for one in entry.body.instructions:
        if one.opcode == "setmaxnreg":
            given = [operand.value for operand in one.operands if isinstance(operand, Immediate)]
            counts.setdefault("".join(one.modifiers[:1]), []).extend(given[:1])
    return [max(counts["inc"] + counts["dec"])] if counts["inc"] else []


def _whole(registers: int, on: Multiprocessor) -> int:
    return -(-registers // on.registers_come_by) * on.registers_come_by
