"""A seeded fault: a replacement in one text of a kernel, and how the emulator notices it."""

import tomllib
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from kernelpack.emulator.faults import Level
from kernelpack.spec.artifact import Source

FAULTS = Path(__file__).parent / "faults"


class Caught(StrEnum):
    """How a fault shows, where no rule of the emulator names it."""

    NUMBERS = "wrong numbers"
    REFUSED = "refused before the launch"
    BUILD = "refused by the build"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault.

    Attributes:
        subject: the kernel and problem that it is seeded into.
        name: what is wrong, in words.
        file: the manifest, source or header that is changed.
        old: what is there, once.
        new: what is there instead.
        caught: the rule, the kind of error that ends the run, or a `Caught`; empty if nothing.
        schedule: the first interleaving that shows it.
        level: the level at which it is reported.
        because: why it is not caught at the default level.
        fast: whether it is among the few that run each time.

    """

    subject: str
    name: str
    file: str
    old: str
    new: str = ""
    caught: str
    schedule: str = "eager"
    level: Level = Level.WARN
    because: str = ""
    fast: bool = False

    @property
    def id(self) -> str:
        """The name of its tests."""
        return f"{self.subject}-{self.name}"

    def apply(self, text: str) -> str:
        """The text with the fault in it; it must fit exactly once."""
        fits = text.count(self.old)
        assert fits == 1, f"{self.id}: `{self.old}` occurs {fits} times in {self.file}"
        return text.replace(self.old, self.new)

    def apply_to_source(self, source: Source) -> Source:
        """The source with the fault in its text or in a header of it."""
        if self.file == source.name:
            return replace(source, text=self.apply(source.text))
        assert self.file in {h.path for h in source.headers}, f"{self.id}: no file {self.file}"
        headers = (
            replace(h, text=self.apply(h.text)) if h.path == self.file else h
            for h in source.headers
        )
        return replace(source, headers=tuple(headers))


def _read(path: Path) -> list[Fault]:
    """The faults of one subject, whose name is the file's."""
    entries = tomllib.loads(path.read_text())["fault"]
    return [
        Fault(subject=path.stem, **entry | {"level": Level[entry.get("level", "warn").upper()]})
        for entry in entries
    ]


def read_faults() -> list[Fault]:
    """Every fault there is, subject by subject."""
    return [fault for path in sorted(FAULTS.glob("*.toml")) for fault in _read(path)]
