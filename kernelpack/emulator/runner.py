"""A launch, or several that overlap, run to the end under a schedule.

In rounds of turns; between them happens what need not have happened yet.
"""

from collections.abc import Sequence

import numpy as np

from kernelpack.emulator import deadlock
from kernelpack.emulator.faults import Fault, StepLimit
from kernelpack.emulator.machine.engine import Tempo
from kernelpack.emulator.machine.grid import Machine
from kernelpack.emulator.machine.polls import dozes
from kernelpack.emulator.machine.warp import NEVER, Answer, Warp
from kernelpack.emulator.models.fault import UnitFault
from kernelpack.emulator.rest import Rest
from kernelpack.emulator.schedule import Schedule
from kernelpack.emulator.translate.translate import Code
from kernelpack.emulator.turn import Turns
from kernelpack.emulator.watch import Watch

SLICE = 200
"""Nodes a warp runs before the next one gets its turn."""
HELD_SLICE = 4
"""The same for a warp that is held back."""
PATIENCE_ROUNDS = 300
"""Rounds without a change after which warps that are not at rest are taken to poll nevertheless."""
SETTLING_ROUNDS = 8
"""Rounds in which warps that only poll come to rest, before their waits are reported."""
FIRST_LEAP, LAST_LEAP = 1 << 10, 1 << 40
"""How far time leaps where all wait for it: each time as far as all the times before together.

The last one is 20 minutes by a clock of 1 GHz."""
STUCK_NODES = 20_000
"""Nodes of warps that all only poll after which this is a deadlock, though it is not certain."""


class Runner:
    """Runs the codes on the machine, one of each launch, under one schedule, to the end."""

    def __init__(
        self,
        machine: Machine,
        codes: Sequence[Code],
        schedule: Schedule,
        *,
        step_limit: int,
        watch: Watch | None = None,
    ) -> None:
        self.machine, self.codes, self.schedule = machine, codes, schedule
        self.step_limit, self.watch = step_limit, watch
        self.turns = [Turns(machine, code) for code in codes]
        """By launch."""
        self.live: list[Warp] = []
        self.held: list[Warp] = []
        """Those of `live` that the schedule keeps back."""
        self.ended = False
        """Whether a warp has ended since the ended ones were let go."""
        self.rest = Rest(machine)
        self.idle = 0
        """Rounds since something changed."""
        self.stuck = 0
        """Nodes run since then while every warp was at rest and nothing could be let happen."""
        self.leap = 0
        """By how much time leapt since then, all in all."""
        self.roused_at = NEVER
        """The machine's count of changes at which nobody may doze: nothing else is left to do."""
        self.clock_reads = 0
        """Of all warps, when it was last seen whether any of them waits for a time."""

    def run(self) -> None:
        """Run the grid.

        Raises:
            Fault: the kernel cannot go on; a child of it says how.
        """
        if self.machine.queue.left > self.step_limit:
            raise self._too_long(f"{self.machine.queue.left} clusters to run", where="")
        with np.errstate(all="ignore"):
            self._admit(self.schedule.resident)
            try:
                self._rounds()
            except (KeyboardInterrupt, SystemExit):
                if self.watch:
                    self.watch.stopped(self.machine.step, deadlock.stands(self.code_of, self.live))
                raise
            self._drain()

    def _rounds(self) -> None:
        """Round after round, until nobody is left."""
        while self.live:
            self._go_on()
            if self.watch:
                self.watch.look(self.machine.step, self._now)

    def code_of(self, warp: Warp) -> Code:
        """The code of a warp."""
        return self.codes[warp.cta.cluster.launch]

    def _now(self) -> str:
        """Where the warp is that ran last."""
        current = self.machine.current
        return self.place(current) if current else "nowhere"

    def _go_on(self) -> None:
        """A round; where nothing comes of it, something that need not have happened yet.

        What is pending or held back moves only when every other warp is at rest: a schedule that
        is late is as late as it may be.
        """
        before = self.machine.changes
        moved = self._round()
        self._retire()
        if self.machine.queue.next and self.machine.queue.may_begin:
            self._admit(self.schedule.resident - len(self.machine.resident))
        if self.schedule.tempo is Tempo.FAIR:
            self._some_operations()
        if self.machine.changes != before:
            self.idle = self.stuck = self.leap = 0
            return
        self.idle += 1
        restless = [warp for warp in self._free() if not self.rest.look(warp)] if moved else []
        if restless and self.idle < PATIENCE_ROUNDS:
            return
        self.rest.presume(restless)
        if self._release() or self._rouse() or (moved and self.rest.presumed) or self._pass_time():
            return
        self._stick(moved)

    # -- rounds -----------------------------------------------------------------------------

    def _round(self) -> int:
        """Every warp that is not held back has a turn; how many nodes were run."""
        order = list(self.live)
        if self.schedule.tempo is not Tempo.EAGER:
            self.machine.rng.shuffle(order)
        return sum(
            self._turn(warp, SLICE)
            for warp in order
            if self._is_awake(warp) and not self._stands(warp)
        )

    def _is_awake(self, warp: Warp) -> bool:
        """Whether a turn may be more than a look at what did not change."""
        changes = self.machine.changes
        if warp.asleep_at == changes or warp in self.held:
            return False
        return not (warp.dozes_on and dozes(warp))

    def _stands(self, warp: Warp) -> bool:
        """Whether a turn would find a warp waiting for what it waited for; many would."""
        try:
            stands = warp.stands()
        except UnitFault as fault:
            raise self._fault(fault) from fault
        if stands and self.roused_at == self.machine.changes:
            warp.dozes_on = ()
        return stands

    def _rouse(self) -> bool:
        """Whether warps doze: from now on these have turns as all others, until something changes.

        It is the last resort but time. Who counts its polls may give up, and do something else.
        """
        found = [warp for warp in self.live if warp.dozes_on]
        for warp in found:
            warp.dozes_on = ()
        self.roused_at = self.machine.changes
        return bool(found)

    def _turn(self, warp: Warp, budget: int) -> int:
        """Run a warp for at most `budget` nodes, or until it waits or lets the others run."""
        before = self.machine.changes
        try:
            moved = self.turns[warp.cta.cluster.launch].take(warp, budget)
        except UnitFault as fault:
            raise self._fault(fault) from fault
        if self.machine.changes != before:
            self.rest.forget(warp)
            warp.acts += 1
        if self.roused_at == self.machine.changes:
            warp.dozes_on = ()
        self.ended = self.ended or not warp.splits
        if self.machine.step > self.step_limit:
            self._give_up(warp)
        return moved

    def _free(self) -> list[Warp]:
        """The warps that are not held back."""
        return [warp for warp in self.live if warp not in self.held] if self.held else self.live

    def _held_move(self) -> bool:
        """The warps kept back have short turns until something changes; False if nothing will."""
        before = self.machine.changes
        while self.machine.changes == before:
            ran = sum(self._turn(warp, HELD_SLICE) for warp in list(self.held))
            looks = [self.rest.look(warp) for warp in self.held if warp.splits]
            if not ran or all(looks):
                break
        self._retire()
        return self.machine.changes != before

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

    def _release(self) -> bool:
        """Let something happen that need not have happened yet; False if there is nothing."""
        if self.machine.engine.queues:
            return self._advance()
        if self.held and self._held_move():
            return True
        if self.machine.queue.may_begin:
            self._admit(1)
            return True
        return False

    def _pass_time(self) -> bool:
        """Let time leap ahead, if anybody reads it, since nobody can do anything before then."""
        reads = sum(warp.clock_reads for warp in self.live)
        is_read, self.clock_reads = reads != self.clock_reads, reads
        if not is_read or self.leap > LAST_LEAP:
            return False
        leap = max(self.leap, FIRST_LEAP)
        self.machine.leapt += leap
        self.leap += leap
        return True

    def _stick(self, moved: int) -> None:
        """Nothing can come but from a `try_wait` that answers before its phase completes.

        Raises:
            Deadlock: from none of these either.
        """
        self.stuck += moved
        certain = all(self.rest.is_certain(warp) for warp in self.live)
        for warp in self.live:
            self.rest.watch(warp)
        woken = self._wake_spuriously()
        if certain or self.stuck > STUCK_NODES or not (moved or woken):
            self._deadlock()

    def _wake_spuriously(self) -> bool:
        """Let every suspended `try_wait` answer "not yet"."""
        woken = False
        for warp in self.live:
            for split in warp.splits:
                if split.wait is not None and split.wait.spurious and split.token is None:
                    split.wait, split.token = None, Answer.NOT_YET
                    warp.asleep_at, warp.waits_on = NEVER, None
                    woken = True
        return woken

    def _admit(self, count: int) -> None:
        """Make more clusters resident."""
        for _ in range(count):
            if not self.machine.queue.may_begin:
                return
            cluster = self.machine.admit()
            self.machine.changes += 1
            for cta in cluster.ctas:
                self.live += cta.warps
                self.held += [w for w in cta.warps if (cta.rank, w.index) == self.schedule.held]

    def _retire(self) -> None:
        """Let go of warps and clusters that have ended; bring in the next ones."""
        if not self.ended:
            return
        self.ended = False
        self.live = [warp for warp in self.live if warp.splits]
        self.held = [warp for warp in self.held if warp.splits]
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
            self.machine.exited(cta, left, lambda o: self._line(o.warp, o.at))

    def _drain(self) -> None:
        while self.machine.engine.queues:
            self._advance()

    def _give_up(self, warp: Warp) -> None:
        """Too many instructions.

        Raises:
            StepLimit: always.
        """
        raise self._too_long("an endless loop", where=self.place(warp))

    def _too_long(self, why: str, *, where: str) -> StepLimit:
        return StepLimit(
            f"more than {self.step_limit} warp instructions",
            where=where,
            hint=f"{why}, or a limit too low for this launch",
        )

    # -- the end ----------------------------------------------------------------------------

    def place(self, warp: Warp) -> str:
        """CTA, warp and source line of what a warp runs."""
        return f"cta {warp.cta.position} warp {warp.index} — {self._line(warp, warp.at)}"

    def _line(self, warp: Warp, at: int) -> str:
        """The source line of an instruction of what a warp runs."""
        instructions = self.code_of(warp).entry.body.instructions
        return instructions[min(at, len(instructions) - 1)].place if instructions else "(no body)"

    def _fault(self, fault: UnitFault) -> Fault:
        """A unit refused: report it to the checks, and end the run."""
        broken = fault.misuse
        self.machine.bus.emit(broken)
        running = self.machine.engine.running
        warp = running.warp if running else self.machine.current
        where = self.place(warp) if warp else ""
        return Fault(
            f"{broken.message} [{broken.rule.name}, PTX ISA {broken.rule.section}]", where=where
        )

    def _deadlock(self) -> None:
        """Name every wait, unless a warp changes something while they all come to rest.

        Raises:
            Deadlock: none does.
        """
        before = self.machine.changes
        for _ in range(SETTLING_ROUNDS):
            moved = self._round() + sum(self._turn(warp, SLICE) for warp in list(self.held))
            if self.machine.changes != before:
                return
            if not moved:
                break
        stuck = [(warp, split) for warp in self.live for split in warp.splits]
        for warp, split in stuck:
            self.turns[warp.cta.cluster.launch].watch(warp, split, done=True)
        raise deadlock.found(self.code_of, stuck)
