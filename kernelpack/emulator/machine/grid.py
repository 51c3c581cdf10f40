"""A grid: the memory that every CTA sees, the clusters that are resident or still to come.

Knows the shapes of the launches and nothing of instructions.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from kernelpack.emulator import rules
from kernelpack.emulator.events import AgentStarted, Bus, Exited, Misuse, Release
from kernelpack.emulator.faults import Rule
from kernelpack.emulator.machine.cluster import Cluster, Cta
from kernelpack.emulator.machine.engine import Engine, Operation, Tempo
from kernelpack.emulator.machine.launched import Launched, Triple
from kernelpack.emulator.machine.launches import Launches, channel
from kernelpack.emulator.machine.memory import GlobalMemory, OnBad
from kernelpack.emulator.machine.units import Units
from kernelpack.emulator.machine.warp import Warp, blank_registers, new_warp

Multiply: TypeAlias = Callable[..., Any]
"""How tensor cores add up: a function of `models.mma`."""


class Machine:
    """Shared by all CTAs of a run: those of a launch, or of several that overlap."""

    step: int
    """Instructions run so far, by all warps: the clock."""
    leapt: int
    """How far the time that kernels read is ahead of it: what passed while nobody did anything."""

    def __init__(
        self,
        launches: Sequence[Launched],
        memory: GlobalMemory,
        bus: Bus,
        *,
        on_bad: OnBad,
        multiply: Multiply,
        tempo: Tempo = Tempo.EAGER,
        seed: int = 0,
        only: Sequence[int] | None = None,
    ) -> None:
        self.launches, self.memory, self.multiply = launches, memory, multiply
        self.on_bad = on_bad
        memory.report_to(on_bad)
        self.bus, self.rng = bus, random.Random(seed)  # noqa: S311
        self.engine = Engine(bus, tempo, self.rng, lambda: self.step)
        self.step = self.leapt = 0
        self.changes = 0
        """Grows with every change that a waiting warp might see."""
        self.agents = 0
        self.current: Warp | None = None
        self.queue = Launches([launched.shape for launched in launches], only)
        self.resident: list[Cluster] = []
        self.printed: list[str] = []
        self.units = Units()
        """State of hardware units for the run."""

    @property
    def time(self) -> int:
        """The value of clocks and timers."""
        return self.step + self.leapt

    def steps_of(self) -> tuple[int, ...]:
        """Instructions of each launch so far."""
        steps = [launched.steps for launched in self.launches]
        for cluster in self.resident:
            steps[cluster.launch] += sum(warp.steps for cta in cluster.ctas for warp in cta.warps)
        return tuple(steps)

    # -- agents and events ------------------------------------------------------------------

    def new_agent(self, name: str, cta: Cta, *, is_warp: bool = False) -> int:
        """The next agent number, of something in a CTA."""
        number = self.agents
        self.agents += 1
        cluster = cta.cluster
        self.bus.emit(
            AgentStarted(
                number,
                f"{name} of cta {cta.position}{self._of_launch(cluster.launch)}",
                is_warp,
                cta.number,
                cluster.key,
                is_alone=len(cluster.ctas) == 1,
            )
        )
        return number

    def _of_launch(self, launch: int) -> str:
        """Which launch, where there are several: shown for those after the first."""
        if not launch:
            return ""
        name = self.launches[launch].name
        if name == self.launches[launch - 1].name:
            return " of the next launch"
        return f" of {name}, launched next"

    def misuse(
        self,
        rule: Rule,
        message: str,
        *,
        lane: int | None = None,
        once: bool = False,
    ) -> None:
        """Report to the checks that the running instruction broke a rule."""
        self.bus.emit(Misuse(rule, message, lane, once))

    # -- clusters ---------------------------------------------------------------------------

    def admit(self) -> Cluster:
        """Make the next cluster resident."""
        launch, first = self.queue.take()
        launched = self.launches[launch]
        cluster = Cluster(launched, first)
        x, y, z = first
        for i, j, k in _positions(launched.shape.cluster):
            cluster.ctas.append(Cta(self, cluster, (x + i, y + j, z + k)))
        threads = launched.shape.threads
        cluster.present = len(cluster.ctas) * threads
        blank = blank_registers(launched.widths)
        for cta in cluster.ctas:
            for index in range(-(-threads // 32)):
                agent = self.new_agent(f"warp {index}", cta, is_warp=True)
                warp = new_warp(cta, index, agent, list(blank), launched.local_bytes)
                cta.warps.append(warp)
        self.resident.append(cluster)
        return cluster

    def exited(
        self, cta: Cta, operations: list[Operation], place: Callable[[Operation], str]
    ) -> None:
        """Report to the checks what a CTA left: allocations, and operations in flight.

        `place` says where the instruction of an operation is.
        """
        left = [
            (rules.TENSOR_MEMORY_LEAK, f"{count} columns at {column} were never deallocated")
            for column, count in cta.tensor.allocations.items()
        ]
        left += [
            (
                _rule_of(operation),
                f"{_name(operation)} at {place(operation)} was still in flight",
            )
            for operation in operations
            if operation.warp.cta is cta
        ]
        left += [found for ask in cta.on_end for found in ask()]
        agents = (*(warp.agent for warp in cta.warps), *cta.agents.values())
        units = (cta.shared.unit, cta.tensor.unit, cta.tensor.uses, cta.tensor.ends)
        launch = cta.cluster.launch
        cta.launched.steps += sum(warp.steps for warp in cta.warps)
        if self.queue.count > 1:
            for agent in agents:
                self.bus.emit(Release(agent, channel(launch)))
        self.queue.end(launch, cta.number)
        self.changes += 1
        self.bus.emit(Exited(cta.position, tuple(left), agents, units))

    def retire(self, cluster: Cluster) -> None:
        """Forget a cluster whose threads have all exited."""
        self.resident.remove(cluster)


def _rule_of(operation: Operation) -> Rule:
    """Which rule an operation breaks by being in flight when its CTA ends.

    A copy may still read or write the CTA's memory; a commit nobody waits for does no harm.
    """
    return rules.IN_FLIGHT_AT_EXIT if operation.harmless else rules.STORE_IN_FLIGHT_AT_EXIT


def _name(operation: Operation) -> str:
    """Its instruction without the operands: a `wgmma` has a hundred of them."""
    words = operation.label.split()
    return next(word for word in words if not word.startswith("@"))


def _positions(shape: Triple) -> list[Triple]:
    """Every position of a box, x fastest."""
    x, y, z = shape
    return [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
