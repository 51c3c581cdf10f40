"""Asynchronous operations: when what was issued takes effect.

An operation belongs to a queue; those of one queue take effect in order, queues in any order. The
*tempo* decides when: `eager` at once; `fair` soon, in random order; `lazy` as late as possible,
when no warp can go on without, in random order.
"""

import random
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from kernelpack.emulator.events import Began, Bus, Ended, Issued, Stage

if TYPE_CHECKING:
    from kernelpack.emulator.machine.warp import Warp


class Tempo(StrEnum):
    """When asynchronous operations take effect."""

    EAGER = "eager"
    FAIR = "fair"
    LAZY = "lazy"


def _nothing() -> None:
    """The rest of an operation that has taken effect."""


@dataclass(slots=True, eq=False)
class Operation:
    """One operation in flight, and who issued it."""

    number: int
    label: str
    queue: Hashable
    agent: int
    ordered: bool
    effect: Callable[[], None]
    warp: "Warp"
    at: int
    issued: int
    harmless: bool
    """Whether it may be in flight when its CTA ends: it touches nothing of the CTA's."""
    done: bool = False


class Engine:
    """The operations in flight."""

    def __init__(
        self, bus: Bus, tempo: Tempo, rng: random.Random, clock: Callable[[], int]
    ) -> None:
        self.bus, self.tempo, self.rng, self.clock = bus, tempo, rng, clock
        self.queues: dict[Hashable, deque[Operation]] = {}
        self.count = 0
        self.running: Operation | None = None

    def issue(
        self,
        label: str,
        warp: "Warp",
        agent: int,
        effect: Callable[[], None],
        *,
        queue: Hashable | None = None,
        ordered: bool = True,
        at_once: bool = False,
        harmless: bool = False,
        stage: Stage | None = None,
    ) -> Operation:
        """Start an operation. Without a queue it is ordered with nothing.

        `stage` says what else of its queue it is ordered with, if other threads issue there too.
        """
        self.count += 1
        key = ("alone", self.count) if queue is None else queue
        operation = Operation(
            self.count, label, key, agent, ordered, effect, warp, warp.at, self.clock(), harmless
        )
        if self.bus.wants(Issued):
            self.bus.emit(Issued(self.count, warp.agent, agent, label, stage))
        self.queues.setdefault(key, deque()).append(operation)
        if at_once or self.tempo is Tempo.EAGER:
            self.finish(operation)
        return operation

    def finish(self, operation: Operation) -> None:
        """Let it, and everything before it in its queue, take effect now."""
        while not operation.done:
            self._run_first(operation.queue)

    def advance(self) -> bool:
        """Let one operation, chosen at random, take effect; False when none is in flight."""
        if not self.queues:
            return False
        self._run_first(self.rng.choice(list(self.queues)))
        return True

    def _run_first(self, key: Hashable) -> None:
        queue = self.queues[key]
        operation = queue.popleft()
        if not queue:
            del self.queues[key]
        outer, self.running = self.running, operation
        if self.bus.wants(Began):
            self.bus.emit(Began(operation.number, operation.agent, operation.ordered))
        try:
            operation.effect()
        finally:
            self.running = outer
            operation.done = True
            operation.effect = _nothing
        if self.bus.wants(Ended):
            self.bus.emit(Ended(operation.number, operation.agent))

    @property
    def in_flight(self) -> list[Operation]:
        """Every operation that has not taken effect."""
        return [operation for queue in self.queues.values() for operation in queue]
