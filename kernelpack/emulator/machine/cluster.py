"""CTAs and clusters: shared memory, tensor memory, barriers, and who is still there."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelpack.emulator.events import Unit
from kernelpack.emulator.machine.launched import Launched
from kernelpack.emulator.machine.memory import Memory
from kernelpack.emulator.machine.units import Units
from kernelpack.spec.arch import SYSTEM_SHARED_BYTES, TARGETS

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from kernelpack.emulator.faults import Rule
    from kernelpack.emulator.machine.grid import Machine
    from kernelpack.emulator.machine.warp import Warp

RANK_SHIFT = 24
"""A shared address within a cluster holds the CTA's rank from this bit on."""
SHARED_START = SYSTEM_SHARED_BYTES
"""Shared memory below this is the system's, as on sm_90 and later."""
TENSOR_LANES = 128
TENSOR_COLUMNS = max(target.limits.tensor_memory_columns for target in TARGETS.values())
TENSOR_BLOCKS = TENSOR_COLUMNS // 32
"""The unit of allocations: 32 columns (PTX ISA 9.7.16.7.1)."""


@dataclass(slots=True, eq=False)
class NamedBarrier:
    """One of the sixteen barriers of a CTA: who has arrived, and how often it was completed."""

    arrived: int = 0
    generation: int = 0
    expected: int | None = None
    """Threads it waits for; None when it waits for every thread that has not exited."""
    place: tuple[int, bool] | None = None
    """An instruction at which warps wait for this generation, and whether it is aligned."""
    votes: list[Any] = field(default_factory=list)
    result: dict[int, Any] = field(default_factory=dict)


class TensorMemory:
    """128 lanes x 512 columns of 32 bits, and which columns are allocated."""

    def __init__(self, name: str) -> None:
        self.words: NDArray[np.uint32] = np.full(
            (TENSOR_LANES, TENSOR_COLUMNS), 0xFFFF_FFFF, np.uint32
        )
        self.written = np.zeros((TENSOR_LANES, TENSOR_COLUMNS), bool)
        self.busy = np.zeros(TENSOR_COLUMNS, bool)
        self.allocations: dict[int, int] = {}
        self.relinquished = False
        self.asked = 0
        """Columns that a warp of the CTA waits for; 0 when none does."""
        self.granted: int | None = None
        """First column of an allocation that the warp that asked for it has not read yet."""
        self.unit = Unit(f"tensor memory of {name}", "tensor", TENSOR_LANES // 16 * TENSOR_COLUMNS)
        self.uses = Unit(self.unit.name, "pair-use", TENSOR_BLOCKS)
        """Blocks of columns that somebody uses: the other CTA of a pair must know of it to free."""
        self.ends = Unit(self.unit.name, "pair-alloc", TENSOR_BLOCKS)
        """The same for blocks whose allocation is over."""
        self.is_used = False
        """Whether anything was ever allocated."""
        self.freed: dict[int, str] = {}
        """A block of columns that is free again → who deallocated it, and where."""

    def grant(self, start: int, columns: int) -> None:
        """Allocate columns to the warp that asked for them."""
        self.busy[start : start + columns] = True
        self.allocations[start] = columns
        self.is_used = True
        for block in self._blocks(start, columns):
            self.freed.pop(block, None)
        self.asked, self.granted = 0, start

    def free(self, start: int, columns: int, who: str) -> None:
        """Give columns back; what they held is gone."""
        del self.allocations[start]
        part = slice(start, start + columns)
        self.busy[part] = False
        self.written[:, part] = False
        self.words[:, part] = 0xFFFF_FFFF
        self.freed.update(dict.fromkeys(self._blocks(start, columns), who))

    @staticmethod
    def _blocks(start: int, columns: int) -> range:
        size = TENSOR_COLUMNS // TENSOR_BLOCKS
        return range(start // size, -(-(start + columns) // size))

    def taken(self) -> int:
        """The first column that was granted; its warp knows it now."""
        start, self.granted = self.granted, None
        assert start is not None
        return start


class Cta:
    """One thread block, resident."""

    machine: "Machine"
    cluster: "Cluster"
    position: tuple[int, int, int]
    number: int
    rank: int
    shared: Memory
    launched: Launched

    def __init__(
        self,
        machine: "Machine",
        cluster: "Cluster",
        position: tuple[int, int, int],
    ) -> None:
        self.machine, self.cluster, self.position = machine, cluster, position
        self.launched = launched = cluster.launched
        x, y, _ = launched.shape.grid
        self.number = launched.first_cta + position[0] + x * (position[1] + y * position[2])
        shared_bytes = launched.shared_bytes
        self.rank = len(cluster.ctas)
        self.rank_base_32 = np.uint32(self.rank << RANK_SHIFT)
        self.rank_base_64 = np.uint64(self.rank << RANK_SHIFT)
        name = f"cta {position}"
        self.shared = Memory(
            SHARED_START + shared_bytes + 64,
            name=f"shared memory of {name}",
            kind="shared",
            on_bad=machine.on_bad,
            allocations=launched.shared_names,
        )
        self.shared.open(SHARED_START, shared_bytes)
        most = launched.shape.target.multiprocessor.shared_bytes
        self.may_have_neighbour = 2 * (SHARED_START + shared_bytes) <= most
        """Whether another CTA like it fits on its multiprocessor."""
        self.tensor = TensorMemory(name)
        self.mbarriers: dict[int, Any] = {}
        """Byte offset → the state of the mbarrier there; kept by the mbarrier unit."""
        self.named: dict[int, NamedBarrier] = {}
        self.present = launched.shape.threads
        """Threads that have not exited."""
        self.warps: list[Warp] = []
        self.agents: dict[Any, int] = {}
        """Unit of this CTA → its agent number."""
        self.units = Units()
        """State of hardware units for this CTA."""
        self.on_leave: list[Callable[[], None]] = []
        self.on_end: list[Callable[[], list[tuple[Rule, str]]]] = []
        """Questions at the end of all threads: which rules were broken, and how."""

    def agent(self, key: Any, name: str) -> int:  # noqa: ANN401
        """The agent number of a unit of this CTA, given on first use."""
        if key not in self.agents:
            self.agents[key] = self.machine.new_agent(name, self)
        return self.agents[key]

    def leave(self, threads: int) -> None:
        """Threads exit: barriers that count all threads look again."""
        self.present -= threads
        for look in self.on_leave:
            look()


class Cluster:
    """CTAs that run at the same time and see each other's shared memory."""

    def __init__(self, launched: Launched, first: tuple[int, int, int]) -> None:
        self.launched, self.launch, self.first = launched, launched.index, first
        self.key = (self.launch, first)
        """Its identity among a run's clusters."""
        self.ctas: list[Cta] = []
        self.arrived = 0
        """Threads that have arrived at the cluster barrier and have not exited."""
        self.generation = 0
        self.present = 0
        """Threads that have not exited; `barrier.cluster` waits for these (PTX ISA 9.7.13.3)."""

    def arrive(self, threads: int) -> None:
        """Threads arrive at the cluster barrier."""
        self.arrived += threads
        self._look()

    def leave(self, threads: int, arrived: int) -> None:
        """Threads exit, `arrived` of which had arrived: nobody waits for them, nor do they count.

        An arrival that stayed would count for a thread that is still to come.
        """
        self.present -= threads
        self.arrived -= arrived
        self._look()

    def _look(self) -> None:
        """Complete the cluster barrier if everybody present has arrived."""
        if self.arrived and self.arrived >= self.present:
            self.arrived = 0
            self.generation += 1
