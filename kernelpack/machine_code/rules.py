"""How each rule of `lint.toml` finds its mistake: a kernel's flow in, instructions out.

The names are nvdisasm's. In PTX: LDTM is tcgen05.ld, UTCATOMSWS.2CTA an allocation
for a pair of CTAs, SYNCS.ARRIVE an arrival at an mbarrier, BAR one at a named barrier, UCGABAR_ARV
and UCGABAR_WAIT the two halves of barrier.cluster, MEMBAR a fence.
"""

from collections.abc import Callable, Iterator

from kernelpack.machine_code.flow import COMPUTED, Flow
from kernelpack.machine_code.instruction import Instruction

Rule = Callable[[Flow], Iterator[Instruction]]

_LOAD = "LDTM"
_ARRIVALS = ("SYNCS.ARRIVE", "BAR.", "UCGABAR_ARV")
_PAIR = ".2CTA"
_ALLOCATION = "UTCATOMSWS.2CTA.FIND_AND_SET"
_MEET, _ARRIVE = "UCGABAR_WAIT", "UCGABAR_ARV"
_IDLE = ("NOP", "BAR", "WARPSYNC")  # the arm beside half of a cluster barrier, without a cluster
_WIDE = ("GPU", "SYS", "VC")
_MULTIPLY = ("UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA", "HGMMA", "IGMMA", "QGMMA", "BGMMA")
_WORK = (*_MULTIPLY, "HMMA", "IMMA", "QMMA", "OMMA", "DMMA", "UTMALDG", "UBLKCP", "LDGSTS", _LOAD)
"""The work of a main loop: multiply, copy to shared memory, or load from tensor memory."""


def read_before_release(flow: Flow) -> Iterator[Instruction]:
    """Arrivals that are issued while the result of an LDTM is not there.

    The scoreboard that a load frees is the only trace of its wait. Loads from tensor memory end in
    the order of their issue: ptxas makes of tcgen05.wait::ld a wait for the last one's scoreboard.
    """
    if not _has(flow, _LOAD):
        return
    for instruction, ways in flow.states(_NO_LOADS, _loads_after, frozenset.union):
        tells = instruction.opcode.startswith(_ARRIVALS)
        if tells and any(_under_way(loads, instruction) for loads in ways):
            yield instruction


_Loads = tuple[int, ...]
"""The scoreboards of loads under way, in the order of the last load of each."""
_NO_LOADS: frozenset[_Loads] = frozenset({()})


def _loads_after(instruction: Instruction, ways: frozenset[_Loads]) -> frozenset[_Loads]:
    """The operations that may be in flight once an instruction was issued."""
    if not instruction.waits and instruction.text.root != _LOAD:
        return ways
    return frozenset(_issued(loads, instruction) for loads in ways)


def _issued(loads: _Loads, instruction: Instruction) -> _Loads:
    rest = _under_way(loads, instruction)
    if instruction.text.root != _LOAD:
        return rest
    return (*(s for s in rest if s != instruction.frees), instruction.frees)


def _under_way(loads: _Loads, instruction: Instruction) -> _Loads:
    """The loads that are still under way when an instruction is issued."""
    ended = max((i for i, s in enumerate(loads) if instruction.waits >> s & 1), default=-1)
    return loads[ended + 1 :]


def pair_before_peer(flow: Flow) -> Iterator[Instruction]:
    """Allocations for a pair that some way without a cluster barrier leads to."""
    if not _has(flow, _ALLOCATION):
        return
    places = _places(flow, _MEET)

    def has_met(instruction: Instruction, before: bool) -> bool:
        return before or instruction.at in places

    for instruction, met in flow.states(False, has_met, bool.__and__):
        if instruction.opcode.startswith(_ALLOCATION) and not met:
            yield instruction


def pair_without_farewell(flow: Flow) -> Iterator[Instruction]:
    """Exits that some way leads to on which work on a pair comes after the last cluster barrier."""
    if not _has(flow, _ALLOCATION):
        return
    places = _places(flow, _ARRIVE)

    def works(instruction: Instruction, before: bool) -> bool:
        if instruction.at in places:
            return False
        return before or _PAIR in instruction.opcode or instruction.opcode.startswith(_LOAD)

    for instruction, has_worked in flow.states(False, works, bool.__or__):
        if instruction.text.root == "EXIT" and has_worked:
            yield instruction


def _places(flow: Flow, opcode: str) -> frozenset[int]:
    """The offsets at which half of a cluster barrier is passed.

    ptxas does not know whether a kernel is launched with clusters, so it asks, and puts beside the
    barrier an arm for a launch without: it holds a NOP, a barrier of the CTA or, where lanes may
    have parted, one of the warp, and goes on where the other arm does. It stands for the barrier.
    """
    found = {
        start: i
        for start in flow.blocks
        for i in flow.blocks[start]
        if flow.code[i].opcode == opcode
    }
    arms = {arm for start in found for arm in _arms_beside(flow, start)}
    return frozenset(flow.code[i].at for i in (*found.values(), *arms))


def _arms_beside(flow: Flow, start: int) -> Iterator[int]:
    """The idle blocks that a fork before a block goes to instead, and that meet it after."""
    for fork in flow.predecessors[start]:
        for other in flow.successors[fork]:
            is_idle = all(flow.code[i].text.root in _IDLE for i in flow.blocks[other])
            if other != start and is_idle and flow.successors[other] == flow.successors[start]:
                yield other


def barrier_in_main_loop(flow: Flow) -> Iterator[Instruction]:
    """Fences wider than a cluster, in a loop that works in itself: not in loops within it."""
    if not any(map(_is_wide, flow.opcodes)):
        return
    innermost: dict[int, frozenset[int]] = {}
    for loop in reversed(flow.loops):
        innermost |= dict.fromkeys(loop, loop)
    inside = [(flow.code[i], loop) for start, loop in innermost.items() for i in flow.blocks[start]]
    working = {loop for instruction, loop in inside if instruction.opcode.startswith(_WORK)}
    for instruction, loop in inside:
        if loop in working and _is_wide(instruction.opcode):
            yield instruction


def _is_wide(opcode: str) -> bool:
    return opcode.startswith("MEMBAR") and opcode.endswith(_WIDE)


def computed_branch(flow: Flow) -> Iterator[Instruction]:
    """Branches through a register, where the cubin does not say where they can go."""
    return (i for i in flow.instructions() if i.text.root in COMPUTED and not i.goals)


def _has(flow: Flow, name: str) -> bool:
    return any(opcode.startswith(name) for opcode in flow.opcodes)


RULES: dict[str, Rule] = {
    "read-before-release": read_before_release,
    "pair-before-peer": pair_before_peer,
    "pair-without-farewell": pair_without_farewell,
    "barrier-in-main-loop": barrier_in_main_loop,
    "computed-branch": computed_branch,
}
"""Every rule, by its id in `lint.toml`."""
