"""Servers that work through their requests one after another, as they come.

A request takes its size over the server's rate; it ends when those before it have. So a queue in
front of a busy unit comes by itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields

REQUEST = 64
"""Cycles that a warp asks its scheduler for at once, at most."""


@dataclass(slots=True)
class Server:
    """A unit that does one thing at a time.

    Attributes:
        name: its kind.
        free: when it has done all that it was asked for.
        busy: how many cycles it worked.
        slowness: the cycles that it takes for one that it is asked for.

    """

    name: str
    free: float = 0.0
    busy: float = 0.0
    slowness: float = 1.0

    def take(self, at: float, cycles: float) -> float:
        """Ask for so many cycles; when they end."""
        cycles *= self.slowness
        begin = max(self.free, at)
        self.free = begin + cycles
        self.busy += cycles
        return self.free

    def share(self, at: float, cycles: float) -> float:
        """Ask for cycles that are given in turns with others who ask; when the last one ends.

        Each of those before it may delay it by as many cycles as it has itself. How many they are
        follows from what they have asked for.
        """
        waiting = max(self.free - at, 0.0)
        self.take(at, cycles)
        cycles *= self.slowness
        others = 1 + waiting // REQUEST
        return at + cycles + min(waiting, cycles * others)


@dataclass(slots=True)
class Multiprocessor:
    """The servers of one multiprocessor."""

    schedulers: list[Server] = field(default_factory=lambda: _four("issue"))
    special: list[Server] = field(default_factory=lambda: _four("special functions"))
    tensor: list[Server] = field(default_factory=lambda: _four("tensor cores"))
    tensor_memory: list[Server] = field(default_factory=lambda: _four("tensor memory"))
    shared: Server = field(default_factory=lambda: Server("shared memory"))
    tma: Server = field(default_factory=lambda: Server("TMA"))
    ingest: Server = field(default_factory=lambda: Server("L2 to shared memory"))
    hbm: Server = field(default_factory=lambda: Server("HBM"))
    egress: Server = field(default_factory=lambda: Server("stores"))
    dsmem: Server = field(default_factory=lambda: Server("distributed shared memory"))

    @property
    def servers(self) -> Iterator[Server]:
        """All of them."""
        for each in fields(self):
            found = getattr(self, each.name)
            yield from [found] if isinstance(found, Server) else found


def _four(name: str) -> list[Server]:
    return [Server(name) for _ in range(4)]
