"""Interleavings: which warp runs next, and when asynchronous operations take effect.

A kernel must give the same numbers under every schedule. `eager` lets operations take effect when
they are issued, `fair` soon after, `lazy` as late as possible; `starving` holds one warp back until
the others can do nothing without it. Deadlock is exact: no warp can run, nothing is in flight, no
cluster waits for a place, and a spurious wake-up of every `try_wait` changed nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kernelpack.emulator.events import Ran, Waited
from kernelpack.emulator.faults import Deadlock, Fault, StepLimit
from kernelpack.emulator.machine.cluster import SHARED_START
from kernelpack.emulator.machine.engine import Tempo
from kernelpack.emulator.machine.grid import Machine
from kernelpack.emulator.machine.lanes import EVERY
from kernelpack.emulator.machine.warp import Answer, Split, Warp
from kernelpack.emulator.models.fault import UnitFault
from kernelpack.emulator.semantics.tensor_memory import settle
from kernelpack.emulator.semantics.translate import Code, Node, compile_block, compile_control

SLICE = 200
"""Nodes a warp runs before the next one gets its turn."""
IDLE_ROUNDS = 3
"""Rounds without a visible change after which something asynchronous is let happen."""
SETTLING_ROUNDS = 8
"""Rounds in which warps that only poll come to rest, before their waits are reported."""
STUCK_ROUNDS = 40
"""Rounds in which every warp only polled after which this is a deadlock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """One way to interleave. `held` is the (CTA rank, warp) that is kept back, if any."""

    name: str = "eager"
    tempo: Tempo = Tempo.EAGER
    seed: int = 0
    held: tuple[int, int] | None = None
    resident: int = 1
    """Clusters that run at the same time, as long as nobody waits for another one."""

    @classmethod
    def parse(cls, name: str, seed: int = 0) -> "Schedule":
        """`eager`, `fair`, `lazy`, or `starving:RANK:WARP`.

        Raises:
            Fault: no such schedule.
        """
        head, _, rest = name.partition(":")
        tempo = {"eager": Tempo.EAGER, "fair": Tempo.PROMPT, "lazy": Tempo.LAZY}.get(head)
        if tempo is not None and not rest:
            return cls(name=name, tempo=tempo, seed=seed, resident=2 if head == "lazy" else 1)
        parts = rest.split(":")
        if head == "starving" and len(parts) == 2 and all(part.isdigit() for part in parts):
            held = (int(parts[0]), int(parts[1]))
            return cls(name=name, tempo=Tempo.LAZY, seed=seed, held=held)
        raise Fault(
            f"no schedule `{name}`", hint="schedules: eager, fair, lazy, starving:RANK:WARP"
        )


def schedules(cluster: int, warps: int, seed: int = 0) -> Iterator[Schedule]:
    """Every schedule of a launch: eager, fair, lazy, and each warp held back in turn."""
    for name in ("eager", "fair", "lazy"):
        yield Schedule.parse(name, seed)
    for rank in range(cluster):
        for warp in range(warps):
            yield replace(Schedule.parse(f"starving:{rank}:{warp}"), seed=seed)


class Runner:
    """Runs the code on the machine, one schedule, to the end."""

    def __init__(
        self, machine: Machine, code: Code, schedule: Schedule, *, step_limit: int
    ) -> None:
        self.machine, self.code, self.schedule = machine, code, schedule
        self.step_limit = step_limit
        self.live: list[Warp] = []
        self.watched = machine.bus.wants(Ran) or machine.bus.wants(Waited)

    def run(self) -> None:
        """Run the grid.

        Raises:
            Fault: the kernel cannot go on; a child of it says how.
        """
        with np.errstate(all="ignore"):
            self._admit(self.schedule.resident)
            idle = stuck = 0
            while self.live:
                before = self.machine.changes
                moved = self._round()
                self._retire()
                if self.schedule.tempo is Tempo.PROMPT:
                    self._some_operations()
                idle = 0 if self.machine.changes != before else idle + 1
                stuck = stuck + 1 if self._all_polling() and idle else 0
                if (moved and idle < IDLE_ROUNDS) or self._unstick():
                    stuck = 0 if self.machine.changes != before else stuck
                    continue
                if not moved and stuck == 0 and self._wake_spuriously():
                    continue
                if stuck > STUCK_ROUNDS or (not moved and not self._wake_spuriously()):
                    self._deadlock()
            self._drain()

    # -- rounds -----------------------------------------------------------------------------

    def _round(self) -> int:
        """Every warp that is not held back runs a slice; how many nodes were run."""
        order = list(self.live)
        if self.schedule.tempo is not Tempo.EAGER:
            self.machine.rng.shuffle(order)
        moved = 0
        for warp in order:
            if (warp.cta.rank, warp.index) != self.schedule.held:
                moved += self.slice(warp, SLICE)
        if not moved and self.schedule.held and not self.machine.engine.queues:
            for warp in order:
                if (warp.cta.rank, warp.index) == self.schedule.held:
                    moved += self.slice(warp, 4)
        return moved

    def _all_polling(self) -> bool:
        return all(split.wait or split.spins for warp in self.live for split in warp.splits)

    def _some_operations(self) -> None:
        engine = self.machine.engine
        while engine.queues and self.machine.rng.random() < 0.5:
            self._advance()

    def _advance(self) -> bool:
        self.machine.changes += 1
        try:
            return self.machine.engine.advance()
        except UnitFault as fault:
            raise self._fault(fault) from fault

    def _unstick(self) -> bool:
        """Let something happen that need not have happened yet."""
        if self.machine.engine.queues:
            return self._advance()
        held = self.schedule.held
        if held:
            ran = [
                self.slice(warp, 4)
                for warp in list(self.live)
                if (warp.cta.rank, warp.index) == held
            ]
            self._retire()
            if any(ran):
                return True
        if self.machine.queue:
            self._admit(1)
            return True
        return False

    def _wake_spuriously(self) -> bool:
        """Let every suspended `try_wait` answer "not yet", once between two changes."""
        woken = False
        for warp in self.live:
            for split in warp.splits:
                if split.wait is not None and split.wait.spurious and split.token is None:
                    split.wait, split.token = None, Answer.NOT_YET
                    woken = True
        return woken

    def _admit(self, count: int) -> None:
        """Make more clusters resident."""
        for _ in range(min(count, len(self.machine.queue))):
            cluster = self.machine.admit(
                max(self.code.layout.shared_end, SHARED_START),
                self.code.widths,
                self.code.layout.local_bytes,
            )
            self.machine.changes += 1
            for cta in cluster.ctas:
                self.live += cta.warps

    def _retire(self) -> None:
        """Let go of warps and clusters that have ended; bring in the next ones."""
        if all(warp.splits for warp in self.live):
            return
        self.live = [warp for warp in self.live if warp.splits]
        for cluster in list(self.machine.resident):
            if not any(warp.splits for cta in cluster.ctas for warp in cta.warps):
                self._end(cluster.ctas)
                self.machine.retire(cluster)
        missing = self.schedule.resident - len(self.machine.resident)
        if missing > 0:
            self._admit(missing)

    def _end(self, ctas: list) -> None:  # type: ignore[type-arg]
        """The CTAs of a cluster have ended: what they left in flight takes effect now."""
        mine = {id(cta) for cta in ctas}
        left = [o for o in self.machine.engine.in_flight if id(o.warp.cta) in mine]
        for operation in left:
            try:
                self.machine.engine.finish(operation)
            except UnitFault as fault:
                raise self._fault(fault) from fault
        for cta in ctas:
            self.machine.exited(cta, left)

    def _drain(self) -> None:
        while self.machine.engine.queues:
            self._advance()

    # -- one warp ---------------------------------------------------------------------------

    def slice(self, warp: Warp, budget: int) -> int:
        """Run a warp for at most `budget` nodes, or until it waits or lets the others run."""
        machine, nodes = self.machine, self.code.nodes
        machine.current = warp
        moved = 0
        try:
            while moved < budget and (split := warp.pick()) is not None:
                node = nodes[split.pc]
                alone = len(warp.splits) == 1
                if not self._node(warp, split, node):
                    if alone:
                        break
                    continue
                warp.steps += node.count
                if self.watched:
                    machine.bus.emit(Ran(warp.agent, node.first, node.count))
                machine.step += node.count
                moved += 1
                if node.yields and len(warp.splits) <= 1:
                    break
        except UnitFault as fault:
            raise self._fault(fault) from fault
        self._check_limit(warp)
        return moved

    def _check_limit(self, warp: Warp) -> None:
        if self.machine.step > self.step_limit:
            raise StepLimit(
                f"more than {self.step_limit} warp instructions",
                where=self.place(warp),
                hint="an endless loop, or a limit too low for this launch",
            )

    def _node(self, warp: Warp, split: Split, node: Node) -> bool:
        """Run a node; False when it waits."""
        if node.kind == "block":
            self._block(warp, split, node)
        elif node.kind == "branch":
            branch(warp, split, node)
        elif node.kind == "exit":
            leave(warp, split, node)
        else:
            return self._control(warp, split, node)
        return True

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
            self._watch(warp, split, done=done)
        return done

    def _watch(self, warp: Warp, split: Split, *, done: bool) -> None:
        """Tell of a wait when it is over."""
        if not done and split.wait is not None:
            split.waited_for = split.waited_for or (self.machine.step, split.wait.describe())
        elif done and split.waited_for is not None:
            begin, what = split.waited_for
            self.machine.bus.emit(Waited(warp.agent, begin, self.machine.step, what))
            split.waited_for = None

    # -- the end ----------------------------------------------------------------------------

    def place(self, warp: Warp) -> str:
        """CTA, warp and source line of what a warp runs."""
        instructions = self.code.entry.body.instructions
        at = min(warp.at, len(instructions) - 1)
        where = instructions[at].place if instructions else "(empty body)"
        return f"cta {warp.cta.position} warp {warp.index} — {where}"

    def _fault(self, fault: UnitFault) -> Fault:
        """A unit refused: tell the checks, and end the run."""
        broken = fault.misuse
        self.machine.bus.emit(broken)
        running = self.machine.engine.running
        warp = running.warp if running else self.machine.current
        where = self.place(warp) if warp else ""
        return Fault(f"{broken.message} [{broken.rule}, PTX ISA {broken.section}]", where=where)

    def _deadlock(self) -> None:
        """Name every wait and every mbarrier.

        Raises:
            Deadlock: always.
        """
        for _ in range(SETTLING_ROUNDS):
            if not self._round():
                break
        lines = ["no warp can go on and nothing is in flight:"]
        for warp in self.live:
            for split in warp.splits:
                node = self.code.nodes[split.pc]
                what = split.wait.describe() if split.wait else "polls without progress"
                if self.watched:
                    self._watch(warp, split, done=True)
                lanes = "" if split.mask is None else f" ({int(split.mask.sum())} lanes)"
                place = self._line(node)
                lines.append(
                    f"  cta {warp.cta.position} warp {warp.index}{lanes} — {place}: {what}"
                )
        for cluster in self.machine.resident:
            for cta in cluster.ctas:
                for offset, state in sorted(cta.mbarriers.items()):
                    lines.append(f"  cta {cta.position} mbarrier {hex(offset)}: {state}")
        raise Deadlock("\n".join(lines[:200]))

    def _line(self, node: Node) -> str:
        instructions = self.code.entry.body.instructions
        if node.first >= len(instructions):
            return "the end"
        return f"{instructions[node.first].place} `{instructions[node.first].text[:80]}`"


def branch(warp: Warp, split: Split, node: Node) -> None:
    """Move a split to a label; lanes whose guard is false stay behind as a split of their own."""
    if node.guard is None:
        split.pc = node.target
        return
    index, negated = node.guard
    predicate = warp.registers[index]
    lanes = EVERY if split.mask is None else split.mask
    taken = lanes & ~predicate if negated else lanes & predicate
    if not taken.any():
        split.pc += 1
    elif taken.sum() == lanes.sum():
        split.pc = node.target
    else:
        warp.splits.append(Split(node.target, taken, spins=split.spins))
        split.mask = lanes & ~taken
        split.pc += 1


def leave(warp: Warp, split: Split, node: Node) -> None:
    """`ret` and `exit` of an entry."""
    lanes = split.lanes
    if node.guard is not None:
        index, negated = node.guard
        predicate = warp.registers[index]
        lanes = lanes & ~predicate if negated else lanes & predicate
        if not lanes.any():
            split.pc += 1
            return
    settle(warp)
    warp.leave(split, lanes)
    warp.cta.machine.changes += 1
