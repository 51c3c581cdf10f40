"""What a run of a host program may be told."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelpack.emulate.devices import DEVICES, Device
from kernelpack.emulate.expected import Expectation
from kernelpack.emulator.faults import Level
from kernelpack.emulator.run import STEP_LIMIT

MEMORY_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The device it finds, how its kernels are run, which findings are no news.

    `schedule`, `seed`, `level` and `step_limit` are as for `emulator.run`, for every launch;
    `environment` is all of the program's, to which the stand-in's own words are added. Kernels
    whose names do not match the pattern `kernels` run eagerly and unchecked: references, fills.
    """

    device: Device = DEVICES["b200"]
    memory_bytes: int = MEMORY_BYTES
    kernels: str = "*"
    schedule: str = "eager"
    seed: int = 0
    level: Level = Level.WARN
    step_limit: int = STEP_LIMIT
    expected: tuple[Expectation, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
