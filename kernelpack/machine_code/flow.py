"""Where control can go in a kernel: blocks of instructions, their successors, and loops.

Code that the first instruction does not reach (the bodies of calls, what pads the end) is left
out. A call is taken to return. Convergence barriers (BSSY, BSYNC) send threads on where the
barrier was set up to meet.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeVar

from kernelpack.machine_code.disassembler import INSTRUCTION_BYTES, Text
from kernelpack.machine_code.instruction import Instruction, Instructions

State = TypeVar("State")
Blocks = Mapping[int, range]
"""The instructions of each block, by the first."""

_ENDS = frozenset({"EXIT", "RET", "KILL"})
_JUMPS = frozenset({"BRA", "JMP"})
COMPUTED = frozenset({"BRX", "BRXU", "JMX", "JMXU"})
"""Branches to an address in a register; the cubin says where each can go."""
_TURNS = _ENDS | _JUMPS | COMPUTED | {"BSYNC"}


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A kernel's instructions, and where each can go.

    Attributes:
        code: all instructions.
        blocks: those that are reached, by blocks.
        successors: the blocks that follow each.

    """

    code: Instructions
    blocks: Blocks
    successors: Mapping[int, tuple[int, ...]]

    def instructions(self) -> Iterator[Instruction]:
        """Those that are reached, in the order of the code."""
        return (self.code[i] for span in self.blocks.values() for i in span)

    @cached_property
    def predecessors(self) -> dict[int, tuple[int, ...]]:
        """The blocks that each follows."""
        found: dict[int, list[int]] = {start: [] for start in self.blocks}
        for start, followers in self.successors.items():
            for follower in followers:
                found[follower].append(start)
        return {start: tuple(before) for start, before in found.items()}

    @cached_property
    def loops(self) -> tuple[frozenset[int], ...]:
        """The blocks of each natural loop, the smallest first."""
        bodies: dict[int, set[int]] = {}
        for start, followers in self.successors.items():
            for head in followers:
                if head in self._dominators[start]:
                    bodies.setdefault(head, {head}).update(self._body(head, start))
        return tuple(sorted(map(frozenset, bodies.values()), key=len))

    def _body(self, head: int, tail: int) -> set[int]:
        """The blocks that reach the tail of a loop without passing its head."""
        body, pending = {head, tail}, [tail] if tail != head else []
        while pending:
            for before in self.predecessors[pending.pop()]:
                if before not in body:
                    body.add(before)
                    pending.append(before)
        return body

    @cached_property
    def _dominators(self) -> dict[int, frozenset[int]]:
        """The blocks that every way from the first instruction to each passes."""
        everything = frozenset(self.blocks)
        found = dict.fromkeys(self.blocks, everything) | {0: frozenset({0})}
        changed = True
        while changed:
            changed = False
            for start in list(self.blocks)[1:]:
                ways = [found[before] for before in self.predecessors[start]]
                now = frozenset.intersection(*ways) | {start}
                changed |= now != found[start]
                found[start] = now
        return found

    @cached_property
    def opcodes(self) -> frozenset[str]:
        """The names of what is reached."""
        return frozenset(instruction.text.opcode for instruction in self.instructions())

    def states(
        self,
        begin: State,
        after: Callable[[Instruction, State], State],
        join: Callable[[State, State], State],
    ) -> Iterator[tuple[Instruction, State]]:
        """Each instruction with what is known before it, on every way that leads to it.

        Args:
            begin: what is known before the first.
            after: what is known after an instruction, from what was before it.
            join: what is known where two ways meet.

        """

        def step(start: int, state: State) -> State:
            for i in self.blocks[start]:
                state = after(self.code[i], state)
            return state

        for start, known in self._settled(begin, step, join).items():
            state = known
            for i in self.blocks[start]:
                yield self.code[i], state
                state = after(self.code[i], state)

    def _settled(
        self,
        begin: State,
        step: Callable[[int, State], State],
        join: Callable[[State, State], State],
    ) -> dict[int, State]:
        """The state before each block, once nothing changes any more."""
        known, pending = {0: begin}, [0]
        while pending:
            start = pending.pop()
            after = step(start, known[start])
            for follower in self.successors[start]:
                met = join(known[follower], after) if follower in known else after
                if follower not in known or met != known[follower]:
                    known[follower] = met
                    pending.append(follower)
        return known


def flow_of(code: Instructions) -> Flow:
    """Where control can go in a kernel."""
    turns = _turns(code)
    cuts = {0, len(code), *(i + 1 for i in turns), *(j for after in turns.values() for j in after)}
    spans = {a: range(a, b) for a, b in pairwise(sorted(cuts))}
    after = {a: turns.get(span[-1], (span.stop,)) for a, span in spans.items()}
    reached = _reached({a: tuple(j for j in ways if j in spans) for a, ways in after.items()})
    return Flow(
        code=code,
        blocks={a: spans[a] for a in sorted(reached)},
        successors=reached,
    )


def _reached(successors: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
    """The part of a graph that can be reached from the first instruction."""
    found, pending = {0: successors[0]}, [0]
    while pending:
        for follower in successors[pending.pop()]:
            if follower not in found:
                found[follower] = successors[follower]
                pending.append(follower)
    return found


def _turns(code: Instructions) -> dict[int, tuple[int, ...]]:
    """The successors of each instruction after which control need not go straight on."""
    meetings = _meetings(code)
    return {
        i: _following(i, instruction, meetings)
        for i, instruction in enumerate(code)
        if instruction.text.root in _TURNS
    }


def _meetings(code: Instructions) -> dict[str, set[int]]:
    """The instructions where the threads of each convergence barrier meet."""
    found: dict[str, set[int]] = defaultdict(set)
    for i, instruction in enumerate(code):
        text = instruction.text
        if text.root == "BSSY" and text.jump is not None:
            found[text.operands.partition(",")[0]].add(i + text.jump // INSTRUCTION_BYTES)
    return found


def _following(
    i: int, instruction: Instruction, meetings: Mapping[str, set[int]]
) -> tuple[int, ...]:
    text = instruction.text
    if text.root == "BSYNC":
        targets = meetings.get(text.operands.rpartition(",")[2], {i + 1})
        return (i + 1,) if i + 1 in targets else tuple(sorted(targets))
    if text.root in _ENDS:
        return (i + 1,) if text.guard else ()
    if text.jump is None:
        goals = tuple(sorted({goal // INSTRUCTION_BYTES for goal in instruction.goals}))
        return (i + 1, *goals) if text.guard else goals
    target = i + text.jump // INSTRUCTION_BYTES
    return (i + 1, target) if _is_conditional(text) else (target,)


def _is_conditional(text: Text) -> bool:
    """Whether a branch may also not be taken: it has a predicate, or names one beside its goal."""
    return bool(text.guard) or "," in text.operands
