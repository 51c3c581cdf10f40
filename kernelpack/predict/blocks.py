"""What a block of instructions costs a warp that has the multiprocessor to itself.

Slots are issue cycles, which the warps of a scheduler share; the length is at least that of the
longest chain of results. ptxas reorders within a block, so a block is as long as the larger one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kernelpack.emulator.ptx.named import register_indices
from kernelpack.emulator.ptx.syntax import Instruction

GLOBAL, SHARED = "global", "shared"
DEPENDENCE = "griddepcontrol"
WAIT, TRIGGER = "wait", "launch_dependents"
_SPECIAL = ("ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh")
_LATENCIES = {
    **dict.fromkeys(_SPECIAL, 18),
    **dict.fromkeys(("shfl", "redux", "vote", "match"), 24),
    **dict.fromkeys(("elect", "activemask"), 12),
    **dict.fromkeys(("bra", "ret", "exit", "brx"), 8),
    **dict.fromkeys(("bar", "barrier"), 20),
    "cvt": 8,
    "mbarrier": 16,
    "ldmatrix": 33,
    "mma": 33,
    "div": 40,
}
"""Cycles from issue to a dependent instruction; measured by public microbenchmarks of Hopper."""
_BLOCKING = ("bra", "ret", "exit", "brx", "bar", "barrier", "mbarrier", "elect")
"""Instructions after which a warp issues nothing until they are done."""
_ARITHMETIC = 4
_FREE = ("mov", "cvta")
"""ptxas renames registers: copies and changes of an address's kind mostly vanish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of a block.

    Attributes:
        slots: issue slots.
        length: cycles from its first to its last issue, its own loads not waited for.
        special: instructions for the special function unit.
        uses: registers that it reads and did not write.
        addresses: those of them from which it makes the addresses of its loads.
        loads: registers that it loads, and from which memory.
        waits: the memories whose loads it uses itself, and the cycles that remain then.
        late: registers that are ready after its last issue, in cycles from its first.
        products: `mma.sync` instructions.
        ends: whether it ends a stretch of code in which ptxas moves loads ahead.
        mark: `wait` or `launch_dependents`, of a `griddepcontrol`.

    """

    slots: float
    length: float
    special: int
    uses: frozenset[int]
    addresses: frozenset[int]
    loads: Mapping[int, str]
    waits: Mapping[str, float]
    late: Mapping[int, float]
    products: int
    ends: bool = False
    mark: str = ""

    def then(self, after: "Cost") -> "Cost":
        """The cost of two blocks that load nothing, one after the other."""
        return Cost(
            slots=self.slots + after.slots,
            length=self.length + after.length,
            special=self.special + after.special,
            uses=self.uses | after.uses,
            addresses=frozenset(),
            loads={},
            waits={},
            late={**self.late, **{i: self.length + at for i, at in after.late.items()}},
            products=self.products + after.products,
        )


@dataclass(frozen=True, eq=False)
class Costs:
    """The costs of an entry's blocks, each worked out once.

    Args:
        instructions: the entry's body.
        machine: machine instructions by line of PTX; one for each of PTX where it is None.

    """

    instructions: Sequence[Instruction]
    machine: Mapping[int, int] | None

    @cached_property
    def _known(self) -> dict[tuple[int, int], Cost]:
        return {}

    @cached_property
    def _lines(self) -> Mapping[int, int]:
        """How many instructions of PTX are on a line."""
        found: dict[int, int] = {}
        for one in self.instructions:
            found[one.line] = found.get(one.line, 0) + 1
        return found

    def of(self, first: int, count: int) -> Cost:
        """The cost of instructions `first` to `first + count - 1`."""
        key = (first, count)
        if key not in self._known:
            self._known[key] = self._cost(self.instructions[first : first + count])
        return self._known[key]

    def slots(self, one: Instruction) -> float:
        """Issue slots of an instruction."""
        if self.machine is None:
            return 0.0 if one.opcode in _FREE else 1.0
        return self.machine.get(one.line, 0) / self._lines[one.line]

    def _cost(self, block: Sequence[Instruction]) -> Cost:
        ready: dict[int, float] = {}
        after: dict[int, tuple[str, float]] = {}
        written: set[int] = set()
        uses: set[int] = set()
        loads: dict[int, str] = {}
        waits: dict[str, float] = {}
        length = slots = 0.0
        for one in block:
            slots += self.slots(one)
            sources, targets = registers(one)
            uses |= sources - written
            begin = max((ready.get(index, 0.0) for index in sources), default=0.0)
            memory = _memory(one)
            chain = max((after[i] for i in sources if i in after), key=_depth, default=None)
            latency = self._latency(one)
            if memory:
                loads.update(dict.fromkeys(targets, memory))
                after.update(dict.fromkeys(targets, (memory, 0.0)))
            elif chain:
                kind, depth = chain
                waits[kind] = max(waits.get(kind, 0.0), depth + latency)
                after.update(dict.fromkeys(targets, (kind, depth + latency)))
            else:
                for index in targets:
                    after.pop(index, None)
            ready.update(dict.fromkeys(targets, begin + latency))
            length = max(length, begin + latency if self._blocks(one) else begin)
            written |= targets
        late = {i: at for i, at in ready.items() if at > length + _ARITHMETIC and i not in loads}
        special = sum(one.opcode in _SPECIAL for one in block)
        return Cost(
            slots=slots,
            length=length,
            special=special,
            uses=frozenset(uses),
            addresses=frozenset(_addresses(block)),
            loads=loads,
            waits=waits,
            late=late,
            products=sum(one.opcode == "mma" for one in block),
            ends=any(self._blocks(one) for one in block),
            mark=next((one.modifiers[0] for one in block if one.opcode == DEPENDENCE), ""),
        )

    def _blocks(self, one: Instruction) -> bool:
        """Whether nothing is issued until it is done. A branch may have become predicates."""
        return one.opcode in _BLOCKING and (one.opcode != "bra" or self.slots(one) > 0)

    def _latency(self, one: Instruction) -> float:
        if one.opcode in (*_FREE, "bra") and self.slots(one) == 0:
            return 0.0
        return float(_LATENCIES.get(one.opcode, _ARITHMETIC))


def _addresses(block: Sequence[Instruction]) -> set[int]:
    """The registers from outside of a block that make the addresses of its loads."""
    wanted: set[int] = set()
    for one in reversed(block):
        sources, targets = registers(one)
        if _memory(one) or targets & wanted:
            wanted = wanted - targets | sources
    return wanted


def _depth(chain: tuple[str, float]) -> float:
    return chain[1]


def _memory(one: Instruction) -> str:
    """Which memory it loads from; empty where it does not, or reads a parameter."""
    if one.opcode == "ldmatrix":
        return SHARED
    if one.opcode not in ("ld", "atom", "ldu"):
        return ""
    spaces = {modifier.split("::")[0] for modifier in one.modifiers}
    if SHARED in spaces:
        return SHARED
    return "" if spaces & {"param", "const", "local"} else GLOBAL


def registers(one: Instruction) -> tuple[set[int], set[int]]:
    """The registers that it reads, and those that it writes."""
    stores = one.opcode in ("st", "red", "bra", "bar", "barrier", "stmatrix") or not one.operands
    targets = set() if stores else set(register_indices(one.operands[0]))
    rest = one.operands if stores else one.operands[1:]
    sources = {index for operand in rest for index in register_indices(operand)}
    if one.guard:
        sources.add(one.guard.register.index)
    return sources, targets
