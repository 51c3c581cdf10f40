"""A warp's turn: its nodes run one after the other until it waits, yields or has had its share."""

import numpy as np

from kernelpack.emulator import calls
from kernelpack.emulator.events import Ran, Waited
from kernelpack.emulator.faults import Fault
from kernelpack.emulator.machine.grid import Machine
from kernelpack.emulator.machine.lanes import Mask
from kernelpack.emulator.machine.warp import Split, Warp
from kernelpack.emulator.ptx.syntax import Register
from kernelpack.emulator.semantics.tensor_memory import settle
from kernelpack.emulator.translate.generate import compile_block, compile_control
from kernelpack.emulator.translate.paths import behind
from kernelpack.emulator.translate.translate import Code, Node


class Turns:
    """Gives turns to the warps of a machine that run one code."""

    def __init__(self, machine: Machine, code: Code) -> None:
        self.machine, self.code = machine, code
        self.watched = machine.bus.wants(Ran) or machine.bus.wants(Waited)

    def take(self, warp: Warp, budget: int) -> int:
        """Run at most `budget` nodes of a warp; how many were run.

        This loop is half of what the emulator does: a warp that cannot go on is asleep until the
        machine changes, and a warp in one piece, the usual case, is not asked which split to run.
        """
        machine, nodes, splits = self.machine, self.code.nodes, warp.splits
        if warp.asleep_at == machine.changes:
            return 0
        machine.current = warp
        if len(splits) == 1 and _waits(splits[0]):
            warp.stop()
            return 0
        warp.waits_on = None
        warp.repeats, warp.dozes_on, warp.turn_began = False, (), machine.changes
        moved = 0
        split: Split | None = None
        while moved < budget:
            in_one_piece = len(splits) == 1 and splits[0].wait is None
            split = splits[0] if in_one_piece else self._pick(warp)
            if split is None:
                warp.stop()
                break
            node = nodes[split.pc]
            if not self._run(warp, split, node):
                if len(splits) == 1:
                    break
                continue
            warp.steps += node.count
            machine.step += node.count
            moved += 1
            if (node.yields or warp.repeats) and len(splits) <= 1:
                break
        if moved >= budget and len(splits) > 1 and split in splits:
            split.spins += 1  # lanes that only compute let the others of their warp go on, too
        return moved

    def _pick(self, warp: Warp) -> Split | None:
        """The split to run; lanes of another one that waits for it may see that it will not come.

        Where it only leaves, nothing was missed: threads that have exited need not come.
        """
        split = warp.pick()
        waited_for = warp.meetings or warp.apart
        if (
            split is None
            or not waited_for
            or self.code.nodes[split.pc].kind in ("exit", "branch", "table", "call", "return")
        ):
            return split
        for meeting in warp.meetings.values():
            if split.pc in behind(self.code, meeting.pc):
                meeting.passed = meeting.passed | split.lanes
        for pc, passed in warp.apart.items():
            if split.pc in behind(self.code, pc):
                warp.apart[pc] = passed | split.lanes
        return split

    def _run(self, warp: Warp, split: Split, node: Node) -> bool:
        """Run a node; False when it waits."""
        if node.kind == "block":
            self._block(warp, split, node)
        elif node.kind == "branch":
            branch(warp, split, node)
        elif node.kind == "table":
            self._branch_by_index(warp, split, node)
        elif node.kind == "call":
            self._call(warp, split, node)
        elif node.kind == "return":
            calls.leave(warp, split, _chosen(warp, split, node))
        elif node.kind == "exit":
            leave(warp, split, node)
        elif not self._control(warp, split, node):
            return False
        if self.watched:
            self.machine.bus.emit(Ran(warp.agent, node.first, node.count))
        return True

    def _call(self, warp: Warp, split: Split, node: Node) -> None:
        lanes = _chosen(warp, split, node)
        if np.count_nonzero(lanes):
            calls.call(self.code, warp, split, node, lanes)
        else:
            split.pc += 1

    def _branch_by_index(self, warp: Warp, split: Split, node: Node) -> None:
        """`brx.idx`: each lane goes to the target that its index names (PTX ISA 9.7.12.4).

        Raises:
            Fault: an index names none.
        """
        instruction = self.code.entry.body.instructions[node.first]
        register = instruction.operands[0]
        assert isinstance(register, Register)
        lanes, index = _chosen(warp, split, node), warp.registers[register.index]
        rest = split.lanes & ~lanes
        splits = [Split(split.pc + 1, rest, spins=split.spins)] if np.count_nonzero(rest) else []
        for each in np.unique(index[lanes]).tolist():
            if each >= len(node.targets):
                raise Fault(
                    f"index {each} of {len(node.targets)} branch targets: `{instruction.text}`",
                    where=f"cta {warp.cta.position} warp {warp.index} — {instruction.place}",
                )
            there = lanes & (index == each)
            mask = None if there.all() else there
            splits.append(Split(node.targets[each], mask, spins=split.spins))
        at = warp.splits.index(split)
        warp.splits[at : at + 1] = splits

    def _block(self, warp: Warp, split: Split, node: Node) -> None:
        if split.mask is None:
            if node.run is None:
                node.run = compile_block(self.code, node, masked=False)
            node.run(warp.registers, warp, None)
        else:
            if node.run_masked is None:
                node.run_masked = compile_block(self.code, node, masked=True)
            node.run_masked(warp.registers, warp, split.mask)
        split.pc += 1

    def _control(self, warp: Warp, split: Split, node: Node) -> bool:
        if node.run is None:
            node.run = compile_control(self.code, node)
        done: bool = node.run(warp.registers, warp, split, split.lanes)
        if self.watched:
            self.watch(warp, split, done=done)
        return done

    def watch(self, warp: Warp, split: Split, *, done: bool) -> None:
        """Report a wait when it is over."""
        if not self.watched:
            return
        if not done and split.wait is not None:
            split.waited_for = split.waited_for or (self.machine.step, split.wait.describe())
        elif done and split.waited_for is not None:
            begin, what = split.waited_for
            self.machine.bus.emit(Waited(warp.agent, begin, self.machine.step, what))
            split.waited_for = None


def _waits(split: Split) -> bool:
    """Whether a split cannot go on yet."""
    if split.wait is None:
        return False
    if not split.wait.ready():
        return True
    split.wait = None
    return False


def _chosen(warp: Warp, split: Split, node: Node) -> Mask:
    """The lanes of a split for which the node's guard is true."""
    if node.guard is None:
        return split.lanes
    index, negated = node.guard
    predicate = warp.registers[index]
    chosen = ~predicate if negated else predicate
    return chosen if split.mask is None else chosen & split.mask


def branch(warp: Warp, split: Split, node: Node) -> None:
    """Move a split to a label; lanes whose guard is false stay behind as a split of their own."""
    if node.guard is None:
        split.pc = node.target
        return
    taken = _chosen(warp, split, node)
    count = np.count_nonzero(taken)
    if count == 0:
        split.pc += 1
    elif count == (len(taken) if split.mask is None else np.count_nonzero(split.mask)):
        split.pc = node.target
    else:
        warp.splits.append(Split(node.target, taken, spins=split.spins))
        split.mask = split.lanes & ~taken
        split.pc += 1


def leave(warp: Warp, split: Split, node: Node) -> None:
    """`ret` and `exit` of an entry."""
    lanes = _chosen(warp, split, node)
    if np.count_nonzero(lanes):
        settle(warp)
        warp.leave(split, lanes)
        warp.cta.machine.changes += 1
    else:
        split.pc += 1
