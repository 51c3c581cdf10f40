"""`.loc` directives: the line of the source that an instruction comes from, and who called it.

A directive names one call; the position of that call came before, with its own call (PTX ISA
9.1, 11.5.1), and so on up to the kernel. Inside loops nvcc leaves the call out, and what it adds by
itself it gives line 0: there the latest known one counts.
"""

import re
from collections.abc import Mapping

from kernelpack.emulator.ptx.lexer import natural
from kernelpack.emulator.ptx.syntax import Location

MAX_CALLS = 64
"""Calls up to the kernel that a line remembers; more are a circle."""
_LOC = re.compile(
    r"\.loc\s+(?P<here>\d+\s+\d+\s+\d+)"
    r"(?:\s*,\s*function_name\s+[^,]+,\s*inlined_at\s+(?P<call>\d+\s+\d+\s+\d+))?"
)
Position = tuple[int, int, int]
"""The number of a file, a line, a column."""


class Locations:
    """The directives of a body, in order. `now` is where its next instruction comes from."""

    def __init__(self, files: Mapping[int, str]) -> None:
        self.files = files
        self.now: Location | None = None
        self.told: dict[Position, Location] = {}
        """The latest of each position."""

    def take(self, text: str) -> None:
        """Read a directive; one that is no `.loc` says nothing."""
        match = _LOC.match(text)
        if match is None:
            return
        here = _numbers(match["here"])
        outer = self._latest(_numbers(match["call"])) if match["call"] else None
        if here[1] == 0:
            self.now = outer or self.now
        else:
            self.now = self._new(here, outer) if outer else self._latest(here)
            self.told[here] = self.now

    def _latest(self, position: Position) -> Location:
        """The known facts of a position; a line of nobody's call where there are none."""
        known = self.told.get(position)
        return known if known and len(list(known.calls)) < MAX_CALLS else self._new(position)

    def _new(self, position: Position, outer: Location | None = None) -> Location:
        file, line, _ = position
        return Location(self.files.get(file, f"file {file}"), line, outer)


def _numbers(text: str) -> Position:
    file, line, column = map(natural, text.split())
    return file, line, column
