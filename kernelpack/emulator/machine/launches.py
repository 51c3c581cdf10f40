"""Launches that follow each other in one stream, and how far each is (PTX ISA 9.7.13.13).

A launch that depends on another may begin when each CTA of that one has run
`griddepcontrol.launch_dependents` or has ended; what the other wrote is known to a thread behind
its `griddepcontrol.wait` alone.
"""

from math import prod

Triple = tuple[int, int, int]
_CANCELED = -1
"""CTAs that do not run have numbers from here downwards."""


class Launches:
    """The clusters still to come, in order: those of the first launch, then of the next."""

    def __init__(self, grid: Triple, cluster: Triple, count: int) -> None:
        self._cluster = cluster
        self._counts = tuple(g // c for g, c in zip(grid, cluster, strict=True))
        self._each, self._ctas = prod(self._counts), prod(grid)
        self.count, self._taken = count, 0
        self._loud: list[set[int]] = [set() for _ in range(count)]
        """CTAs, by number, that said that dependents may begin, or have ended; kept if any come."""
        self._unfinished = [self._ctas] * count

    @property
    def left(self) -> int:
        """Clusters still to come."""
        return self._each * self.count - self._taken

    @property
    def next(self) -> int:
        """The launch of the next cluster."""
        return self._taken // self._each

    @property
    def may_begin(self) -> bool:
        """Whether the next cluster may: there is one, and its launch waits for nobody."""
        before = self.next - 1
        return self.left > 0 and (before < 0 or len(self._loud[before]) == self._ctas)

    def left_of(self, launch: int) -> int:
        """Clusters of one launch still to come."""
        return self._each - self._taken % self._each if self.left and self.next == launch else 0

    def take(self) -> tuple[int, Triple]:
        """The next one: its launch, and its first CTA; x fastest."""
        launch, number = divmod(self._taken, self._each)
        self._taken += 1
        columns, rows, _ = self._counts
        x, y, z = self._cluster
        first = number % columns * x, number // columns % rows * y
        return launch, (*first, number // (columns * rows) * z)

    def cancel(self) -> Triple:
        """The next one, which will not run: another one does its work."""
        launch, first = self.take()
        number = self._taken - 1 - launch * self._each
        self._unfinished[launch] -= prod(self._cluster)
        if self.count > 1:
            ctas = range(number * prod(self._cluster), (number + 1) * prod(self._cluster))
            self._loud[launch] |= {_CANCELED - cta for cta in ctas}
        return first

    def trigger(self, launch: int, cta: int) -> None:
        """A CTA says that dependents may begin."""
        if self.count > 1:
            self._loud[launch].add(cta)

    def end(self, launch: int, cta: int) -> None:
        """A CTA has ended."""
        self.trigger(launch, cta)
        self._unfinished[launch] -= 1

    def is_over(self, launch: int) -> bool:
        """Whether all of a launch has ended."""
        return not self._unfinished[launch]


def channel(launch: int) -> tuple[str, int]:
    """Through what a launch's end becomes known."""
    return ("grid", launch)
