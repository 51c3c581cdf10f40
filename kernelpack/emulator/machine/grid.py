"""A launch: the grid, the memories every CTA sees, the clusters that are resident or still to come.

Knows the shape of the launch and nothing of instructions.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelpack.emulator import rules
from kernelpack.emulator.events import AgentStarted, Bus, Exited, Misuse, Release
from kernelpack.emulator.faults import Rule
from kernelpack.emulator.machine.cluster import SHARED_START, Cluster, Cta
from kernelpack.emulator.machine.engine import Engine, Operation, Tempo
from kernelpack.emulator.machine.launches import Launches, channel
from kernelpack.emulator.machine.memory import NOWHERE, Bad, GlobalMemory, Memory
from kernelpack.emulator.machine.warp import Warp, blank_registers, new_warp
from kernelpack.spec.arch import Target

Triple = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The numbers of a launch. `dynamic_shared_bytes` come after the kernel's own variables."""

    grid: Triple
    block: Triple
    cluster: Triple = (1, 1, 1)
    dynamic_shared_bytes: int = 0
    explicit_cluster: bool = False
    target: Target
    registers: int | None = None
    """Of a thread at its start; None where nothing says how many, and `setmaxnreg` does nothing."""


_BAD = {
    "bounds": ("out-of-bounds", rules.BOUNDS),
    "misaligned": ("misaligned", rules.MISALIGNED),
    "uninitialised": ("uninitialised", rules.UNINITIALISED),
}
"""What is wrong with an access: in words, and the rule."""


class Machine:
    """What all CTAs of a launch share."""

    grid: Triple
    block: Triple
    cluster_shape: Triple
    block_threads: int
    dynamic_shared_bytes: int
    target: Target
    registers: int | None
    explicit_cluster: bool
    workspace: int
    """Where the blocks of a cooperative launch meet; 0 in another one."""
    step: int
    """Instructions run so far, by all warps: the clock."""
    leapt: int
    """How far the time that kernels read is ahead of it: what passed while nobody did anything."""

    def __init__(
        self,
        shape: Shape,
        memory: GlobalMemory,
        parameters: bytes,
        bus: Bus,
        *,
        tempo: Tempo = Tempo.EAGER,
        seed: int = 0,
        workspace: int = 0,
        launches: int = 1,
    ) -> None:
        self.grid, self.block, self.cluster_shape = shape.grid, shape.block, shape.cluster
        self.dynamic_shared_bytes = shape.dynamic_shared_bytes
        self.explicit_cluster = shape.explicit_cluster
        self.target, self.registers = shape.target, shape.registers
        self.block_threads = shape.block[0] * shape.block[1] * shape.block[2]
        self.memory, self.workspace = memory, workspace
        memory.on_bad = self.on_bad
        self.parameters = Memory(max(len(parameters), 1), name="parameters", kind="param")
        self.parameters.open(0, len(parameters), written=True)
        self.parameters.bytes[: len(parameters)] = np.frombuffer(parameters, np.uint8)
        self.parameters.on_bad = self.on_bad
        self.bus, self.rng = bus, random.Random(seed)  # noqa: S311
        self.engine = Engine(bus, tempo, self.rng)
        self.engine.clock = lambda: self.step
        self.step = self.leapt = 0
        self.changes = 0
        """Grows with every change that a waiting warp might see."""
        self.agents = 0
        self.current: Warp | None = None
        self.shared_names: dict[int, tuple[int, str]] = {}
        """Variables in shared memory: offset → size and name."""
        self.queue = Launches(shape.grid, shape.cluster, launches)
        self.resident: list[Cluster] = []
        self.printed: list[str] = []
        self.units: dict[str, Any] = {}
        """What hardware units remember of the launch."""
        self.multiply: Any = None
        """How tensor cores add up: a function of `models.mma`."""

    @property
    def time(self) -> int:
        """What clocks and timers show."""
        return self.step + self.leapt

    # -- agents and events ------------------------------------------------------------------

    def new_agent(self, name: str, cta: Cta, *, is_warp: bool = False) -> int:
        """The next agent number, of something in a CTA."""
        number = self.agents
        self.agents += 1
        cluster = cta.cluster
        self.bus.emit(
            AgentStarted(
                number,
                f"{name} of cta {cta.position}{' of the next launch' if cluster.launch else ''}",
                is_warp,
                cta.number,
                cluster.key,
                is_alone=len(cluster.ctas) == 1,
            )
        )
        return number

    def misuse(
        self,
        rule: Rule,
        message: str,
        *,
        lane: int | None = None,
        once: bool = False,
    ) -> None:
        """Tell the checks that a rule was broken by what runs now."""
        self.bus.emit(Misuse(rule, message, lane, once))

    def on_bad(self, memory: Memory, bad: Bad) -> None:
        """A memory saw an access that cannot be right."""
        if isinstance(memory, GlobalMemory):
            address = (memory.base + bad.offset) & (1 << 64) - 1
            where = f"{hex(address)}: {memory.describe(bad.offset)}"
        elif memory.allocations:
            where = f"{hex(bad.offset & NOWHERE - 1)}: {memory.describe(bad.offset)}"
        else:
            where = f"offset {hex(bad.offset & NOWHERE - 1)} of {memory.size} bytes"
        how, rule = _BAD[bad.what]
        did = f"write of {bad.size} bytes to" if bad.write else f"read of {bad.size} bytes from"
        text = f"{how} {did.replace(' 1 bytes', ' a byte')} {memory.unit.name} at {where}"
        self.misuse(rule, text, lane=bad.lane)

    # -- clusters ---------------------------------------------------------------------------

    def admit(self, static_shared_bytes: int, widths: list[int], local_bytes: int) -> Cluster:
        """Make the next cluster resident."""
        cluster = Cluster(*self.queue.take())
        size = static_shared_bytes - SHARED_START + self.dynamic_shared_bytes
        for offset in _positions(self.cluster_shape):
            position = (
                cluster.first[0] + offset[0],
                cluster.first[1] + offset[1],
                cluster.first[2] + offset[2],
            )
            cluster.ctas.append(Cta(self, cluster, position, size))
        cluster.present = len(cluster.ctas) * self.block_threads
        blank = blank_registers(widths)
        for cta in cluster.ctas:
            for index in range(-(-self.block_threads // 32)):
                agent = self.new_agent(f"warp {index}", cta, is_warp=True)
                cta.warps.append(new_warp(cta, index, agent, list(blank), local_bytes))
        self.resident.append(cluster)
        return cluster

    def exited(self, cta: Cta, operations: list[Operation], place: Callable[[int], str]) -> None:
        """Tell the checks what a CTA left behind: allocations, and operations in flight.

        `place` says where the instruction of an index stands.
        """
        left = [
            (rules.TENSOR_MEMORY_LEAK, f"{count} columns at {column} were never deallocated")
            for column, count in cta.tensor.allocations.items()
        ]
        left += [
            (
                _rule_of(operation),
                f"{_name(operation)} at {place(operation.at)} was still in flight",
            )
            for operation in operations
            if operation.warp.cta is cta
        ]
        left += [found for ask in cta.on_end for found in ask()]
        agents = (*(warp.agent for warp in cta.warps), *cta.agents.values())
        units = (cta.shared.unit, cta.tensor.unit, cta.tensor.uses, cta.tensor.ends)
        launch = cta.cluster.launch
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
    harmless = "tcgen05.commit" in operation.label
    return rules.IN_FLIGHT_AT_EXIT if harmless else rules.STORE_IN_FLIGHT_AT_EXIT


def _name(operation: Operation) -> str:
    """Its instruction without the operands: a `wgmma` has a hundred of them."""
    words = operation.label.split()
    return next(word for word in words if not word.startswith("@"))


def _positions(shape: Triple) -> list[Triple]:
    """Every position of a box, x fastest."""
    x, y, z = shape
    return [(i, j, k) for k in range(z) for j in range(y) for i in range(x)]
