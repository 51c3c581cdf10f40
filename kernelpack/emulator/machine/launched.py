"""One launch of a machine: its numbers, its parameters, and what each of its CTAs is made with."""

from dataclasses import dataclass, field
from math import prod

import numpy as np

from kernelpack.emulator.machine.memory import Memory, OnBad
from kernelpack.emulator.machine.units import Units
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

    @property
    def threads(self) -> int:
        """Of a block."""
        return prod(self.block)


@dataclass(slots=True, kw_only=True, eq=False)
class Launched:
    """A launch, and what hardware units remember of it."""

    name: str
    shape: Shape
    parameters: Memory
    shared_bytes: int
    """Of a CTA, its dynamic ones included, without those that the system keeps."""
    shared_names: dict[int, tuple[int, str]]
    """Variables in shared memory: offset → size and name."""
    widths: list[int]
    """Bits of each register."""
    local_bytes: int
    """Local memory of a thread."""
    workspace: int
    """Where the blocks of a cooperative launch meet; 0 in another one."""
    index: int
    """Which launch it is."""
    first_cta: int
    """The number of its first CTA among those of all launches."""
    steps: int = 0
    """Warp instructions that CTAs which have ended ran."""
    units: Units = field(default_factory=Units)


def parameter_memory(raw: bytes, on_bad: OnBad) -> Memory:
    """A parameter block as the kernel reads it."""
    memory = Memory(max(len(raw), 1), name="parameters", kind="param", on_bad=on_bad)
    memory.open(0, len(raw), written=True)
    memory.bytes[: len(raw)] = np.frombuffer(raw, np.uint8)
    return memory
