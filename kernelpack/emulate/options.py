"""What a run of a host program may be told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kernelpack.emulate.arena import Arena
from kernelpack.emulate.devices import DEVICES, Device
from kernelpack.emulate.expected import Expectation
from kernelpack.emulator.faults import Level
from kernelpack.emulator.run import STEP_LIMIT

MEMORY_BYTES = 1 << 30

Native = Callable[[Arena, bytes], None]
"""Does what a kernel does, given device memory and the parameters as the program packed them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The device it finds, how its kernels are run, which findings are no news.

    `schedule`, `seed`, `level` and `step_limit` are as for `emulator.run`, for every launch;
    `environment` is all of the program's, to which the stand-in's own words are added. Kernels
    whose names do not match the pattern `kernels` run eagerly and unchecked: references, fills.
    Those that match a pattern of `natives` do not run at all: the function does their work.
    """

    device: Device = DEVICES["b200"]
    memory_bytes: int = MEMORY_BYTES
    kernels: str = "*"
    natives: Mapping[str, Native] = field(default_factory=dict)
    schedule: str = "eager"
    seed: int = 0
    level: Level = Level.WARN
    step_limit: int = STEP_LIMIT
    expected: tuple[Expectation, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
