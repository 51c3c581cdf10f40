"""The options of a run of a host program."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from kernelpack.emulate.arena import Arena
from kernelpack.emulate.devices import DEVICES, Device
from kernelpack.emulate.expected import Expectation
from kernelpack.emulate.names import matches, shorten
from kernelpack.emulate.report import Launch
from kernelpack.emulate.source_lines import SourceLines
from kernelpack.emulator.faults import Level
from kernelpack.emulator.run import STEP_LIMIT, Result, run
from kernelpack.emulator.schedule import Schedule

MEMORY_BYTES = 1 << 30

Native = Callable[[Arena, bytes], None]
"""Does what a kernel does, given device memory and the parameters as the program packed them."""
Run = Callable[..., Result]
"""As `emulator.run`, which is called with a launch's program, plan and memory, and words."""
TextOf = Callable[[bytes], str | None]
"""The PTX that machine code was made of, if it is known."""


def _unknown(_image: bytes) -> None:
    """No machine code is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The device it finds, how its kernels are run, which findings are no news.

    `schedule`, `level` and `step_limit` are as for `emulator.run`, for every launch;
    `environment` is all of the program's, to which the stand-in's own words are added. Kernels
    whose names do not match the pattern `kernels` run eagerly and unchecked: references, fills.
    Those that match a pattern of `natives` do not run at all: the function does their work.
    Machine code runs by its `text_of`. Places show their `lines`. `run` is asked in place of the
    emulator for launches on trial: it may look at them and run none.
    """

    device: Device = DEVICES["b200"]
    memory_bytes: int = MEMORY_BYTES
    kernels: str = "*"
    natives: Mapping[str, Native] = field(default_factory=dict)
    schedule: Schedule = field(default_factory=Schedule)
    level: Level = Level.WARN
    step_limit: int = STEP_LIMIT
    expected: tuple[Expectation, ...] = ()
    text_of: TextOf = _unknown
    run: Run = run
    environment: Mapping[str, str] = field(default_factory=dict)
    lines: SourceLines = field(default_factory=SourceLines)

    def unmet(self, launches: Sequence[Launch]) -> Iterator[str]:
        """Expected findings of launches that ran, not found: mended, or misnamed."""
        for each in self.expected:
            asked = [
                launch
                for launch in launches
                if launch.on_trial
                and matches(launch.kernel, each.kernel)
                and fnmatchcase(launch.schedule, each.schedule)
            ]
            if asked and not any(
                each.covers(trouble, launch.schedule)
                for launch in asked
                for trouble in launch.troubles
            ):
                yield f"`{each.rule}` is expected of `{each.kernel}` and was not found"

    def missed(self, launches: Sequence[Launch]) -> Iterator[str]:
        """Options that matched no launch, such as a mistyped name."""
        names = sorted({launch.kernel for launch in launches})
        for option, patterns in (("kernels", (self.kernels,)), ("native", tuple(self.natives))):
            for pattern in patterns:
                if pattern != "*" and not any(matches(name, pattern) for name in names):
                    known = ", ".join(map(shorten, names)) or "none"
                    yield f"--{option} `{pattern}` matches no launch; launched: {known}"
        tried = {launch.schedule for launch in launches if launch.on_trial}
        if tried and self.schedule.name not in tried:
            yield f"--schedule `{self.schedule.name}` names a warp that no launch on trial has"
