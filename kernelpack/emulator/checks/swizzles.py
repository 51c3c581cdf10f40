"""The swizzle of a box in shared memory against that of the MMA which reads it (PTX ISA 5.5.7).

A tensor map permutes a box as it arrives, and a descriptor undoes that: the two must name the same
pattern. Bytes that were written in another way since are nobody's box.
"""

from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator import rules
from kernelpack.emulator.events import Access, Bus, Exited, Swizzled, Unit
from kernelpack.emulator.faults import Level

_NO_BOX = 0


class Swizzles:
    """The pattern by which each cell of a shared memory was last written."""

    level = Level.WARN

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report
        self.cells: dict[Unit, NDArray[np.uint8]] = {}
        self.patterns: list[Hashable] = [None]
        """By number; the first is that of no box."""

    def listen(self, bus: Bus) -> None:
        """Hear of boxes and operands, and of what else is written."""
        bus.listen(Access, self.on_access)
        bus.listen(Swizzled, self.on_swizzled)
        bus.listen(Exited, self.on_exit)

    def on_access(self, event: Access) -> None:
        """Written cells belong to no box; a copy's box comes next."""
        if event.write and event.unit in self.cells:
            self.cells[event.unit][event.cells] = _NO_BOX

    def on_swizzled(self, event: Swizzled) -> None:
        """Note a box, or check an operand against the boxes it lies in."""
        if event.write:
            fresh = np.zeros(event.unit.cells, np.uint8)
            self.cells.setdefault(event.unit, fresh)[event.cells] = self._number(event.pattern)
        elif event.unit in self.cells:
            self._compare(event, self.cells[event.unit][event.cells])

    def on_exit(self, event: Exited) -> None:
        """Forget the memories of a CTA."""
        for unit in event.units:
            self.cells.pop(unit, None)

    def _number(self, pattern: Hashable) -> int:
        if pattern not in self.patterns:
            self.patterns.append(pattern)
        return self.patterns.index(pattern)

    def _compare(self, event: Swizzled, found: NDArray[np.uint8]) -> None:
        others = found[(found != _NO_BOX) & (found != self._number(event.pattern))]
        if others.size:
            self.report(
                rules.SWIZZLE_OF_MAP,
                f"{event.what} reads shared memory with swizzle {event.pattern}, and the tensor "
                f"map that filled it has {self.patterns[int(others[0])]}",
            )
