"""Operations of one pipe that several threads issue (PTX ISA 9.7.16.6.2).

A thread's operation runs after an earlier one of another thread, where the two kinds form a
pipeline: a product after copies, and after products of the same shape into the same accumulator.
Issued before it: the issue happened before, by what the later thread knows.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from kernelpack.emulator.events import Issued, Stage


@dataclass(slots=True)
class _Line:
    """Operations of one kind that one thread issued, in order: when each was issued, and ran."""

    issuer: int
    issued: list[int] = field(default_factory=list)
    ran: list[int] = field(default_factory=list)


class Pipelines:
    """Every operation of every pipe, by the steps of whoever issued it and of who ran it."""

    def __init__(self) -> None:
        self._lines: dict[tuple[object, object], dict[int, _Line]] = {}
        """(Pipe, kind) → agent → its operations."""
        self._issued: dict[int, tuple[Stage, int, int]] = {}
        """Operation → its stage, who issued it, and at which step."""

    def issue(self, event: Issued, step: int) -> None:
        """Remember at which of its steps a thread issued an operation."""
        if event.stage is not None:
            self._issued[event.operation] = event.stage, event.parent, step

    def run(
        self, operation: int, agent: int, step: int, knows: Callable[[int], int]
    ) -> Iterator[tuple[int, int]]:
        """The operation runs at a step of `agent`: other agents, and what of theirs it follows.

        `knows` is the last step of an issuer that the thread which issued the operation knew of.
        """
        stage, issuer, issued = self._issued.pop(operation, (None, 0, 0))
        if stage is None:
            return
        for kind in stage.behind:
            for other, line in self._lines.get((stage.pipe, kind), {}).items():
                before = 0 if other == agent else bisect_right(line.issued, knows(line.issuer))
                if before:
                    yield other, line.ran[before - 1]
        lines = self._lines.setdefault((stage.pipe, stage.kind), {})
        line = lines.setdefault(agent, _Line(issuer))
        line.issued.append(issued)
        line.ran.append(step)

    def forget(self, agents: tuple[int, ...]) -> None:
        """Agents have ended."""
        for key, lines in list(self._lines.items()):
            for agent in agents:
                lines.pop(agent, None)
            if not lines:
                del self._lines[key]
