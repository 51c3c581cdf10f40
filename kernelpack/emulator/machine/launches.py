"""Launches that follow each other in one stream, and how far each is (PTX ISA 9.7.13.13).

A launch that depends on another may begin when each CTA of that one has run
`griddepcontrol.launch_dependents` or has ended; what the other wrote is known to a thread after
its `griddepcontrol.wait` alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from kernelpack.emulator.machine.launched import Shape, Triple

_CANCELED = -1
"""CTAs that do not run have numbers from here downwards."""


@dataclass(slots=True)
class _Part:
    """One launch: its clusters, how many of them began, and what its CTAs said."""

    shape: Shape
    counts: Triple
    chosen: Sequence[int]
    """The clusters that run, by number."""
    taken: int = 0
    loud: set[int] = field(default_factory=set)
    """CTAs, by number, that said that dependents may begin, or have ended; kept if any come."""
    unfinished: int = 0

    @property
    def left(self) -> int:
        return len(self.chosen) - self.taken

    def take(self) -> Triple:
        number, self.taken = self.chosen[self.taken], self.taken + 1
        columns, rows, _ = self.counts
        x, y, z = self.shape.cluster
        first = number % columns * x, number // columns % rows * y
        return (*first, number // (columns * rows) * z)


def _part(shape: Shape, only: Sequence[int] | None) -> _Part:
    x, y, z = (g // c for g, c in zip(shape.grid, shape.cluster, strict=True))
    chosen = range(x * y * z) if only is None else only
    return _Part(shape, (x, y, z), chosen, unfinished=len(chosen) * prod(shape.cluster))


class Launches:
    """The clusters still to come, in order: those of the first launch, then of the next.

    `only` are the clusters of a launch that run, by number; all of them where it is None.
    """

    def __init__(self, shapes: Sequence[Shape], only: Sequence[int] | None = None) -> None:
        self._parts = [_part(shape, only) for shape in shapes]
        self.count = len(self._parts)
        self.next = 0
        """The launch of the next cluster."""

    @property
    def left(self) -> int:
        """Clusters still to come."""
        return sum(part.left for part in self._parts)

    @property
    def may_begin(self) -> bool:
        """Whether the next cluster may: there is one, and its launch waits for nobody."""
        if self.next == self.count:
            return False
        before = self._parts[self.next - 1] if self.next else None
        return before is None or len(before.loud) == prod(before.shape.grid)

    def left_of(self, launch: int) -> int:
        """Clusters of one launch still to come."""
        return self._parts[launch].left

    def take(self) -> tuple[int, Triple]:
        """The next one: its launch, and its first CTA; x fastest."""
        launch, part = self.next, self._parts[self.next]
        first = part.take()
        self.next += not part.left
        return launch, first

    def cancel(self, launch: int) -> Triple:
        """The next one of a launch, which will not run: another one of it does its work."""
        part = self._parts[launch]
        size, number = prod(part.shape.cluster), part.taken
        first = part.take()
        self.next += not part.left
        part.unfinished -= size
        if self.count > 1:
            part.loud |= {_CANCELED - cta for cta in range(number * size, (number + 1) * size)}
        return first

    def trigger(self, launch: int, cta: int) -> None:
        """A CTA says that dependents may begin."""
        if self.count > 1:
            self._parts[launch].loud.add(cta)

    def end(self, launch: int, cta: int) -> None:
        """A CTA has ended."""
        self.trigger(launch, cta)
        self._parts[launch].unfinished -= 1

    def is_over(self, launch: int) -> bool:
        """Whether all of a launch has ended."""
        return not self._parts[launch].unfinished


def channel(launch: int) -> tuple[str, int]:
    """Through what a launch's end becomes known."""
    return ("grid", launch)
