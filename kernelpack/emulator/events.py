"""Events of a running kernel, as values. The machine emits them; checks and traces listen.

Who does something is an *agent*, a small integer: a warp, or a hardware unit that works on its own
(the tensor pipe of a CTA, the copies that complete on one mbarrier, the bulk groups of a warp …).
Where it is done is a *unit* of memory, cut into cells: 4-byte words of shared and global memory,
or the columns of each 16 lanes
of tensor memory.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.faults import Rule

Cells: TypeAlias = NDArray[np.intp]
Channel: TypeAlias = Hashable
"""A thing through which one agent's past becomes another's: an mbarrier phase, a bar.sync, …"""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A memory that can be accessed: its name for people, its kind, its number of cells."""

    name: str
    kind: str
    """`shared`, `global` or `tensor`."""
    cells: int


@dataclass(slots=True)
class Access:
    """An agent read or wrote cells of a unit.

    `bytes_mask` says which bytes of each 4-byte cell (bit i = byte i); 15 is all of them.
    `proxy` is `generic`, `async` (TMA, tensor cores' shared operands) or `tensor` (TMEM).
    """

    unit: Unit
    cells: Cells
    agent: int
    write: bool
    proxy: str
    bytes_mask: int | NDArray[np.uint8] = 15
    atomic: bool = False
    what: str = ""
    lanes: NDArray[np.intp] | None = None
    """The lanes of a warp that access it, if any: as many cells each, those of one together."""
    did: str = ""
    """How a later finding names it; `wrote` or `read` where it is empty."""
    unchanged: Callable[[], bool] | None = None
    """Of a store, whether memory holds these values already."""
    mbarrier: str = ""
    """The effect of an operation on an mbarrier: `init`, `use`, `inval`."""


@dataclass(slots=True)
class Swizzled:
    """A box was written to cells of shared memory by a swizzle pattern, or an MMA reads by one.

    It follows the `Access`. Two patterns are the same if they are equal; `str` names one.
    """

    unit: Unit
    cells: Cells
    write: bool
    pattern: Hashable
    what: str = ""


class Scope(IntEnum):
    """Whose threads an operation synchronises with (PTX ISA 8.5); the system is one device here."""

    CTA = 0
    CLUSTER = 1
    DEVICE = 2


@dataclass(slots=True)
class AgentStarted:
    """A new agent: a warp, or a unit, of the CTA numbered `cta`; `cluster` is that CTA's."""

    agent: int
    name: str
    is_warp: bool
    cta: int = 0
    cluster: Hashable = None
    is_alone: bool = True
    """Whether its CTA is all of its cluster."""


@dataclass(slots=True)
class Reached:
    """`agent` reached into another CTA of its cluster: the one of this number and position."""

    agent: int
    cta: int
    position: tuple[int, int, int]
    what: str
    rule: Rule
    """The rule that is broken if that CTA may not have started."""


@dataclass(slots=True)
class Release:
    """The past of `agent` becomes known to those who acquire `channel` later.

    A relaxed one makes known only what a `Fenced` before it ordered: else it says no more than
    that the agent got here. It is `tolerated` where hardware does the same for both. `scope` is
    that of a warp's; a unit's needs none.
    """

    agent: int
    channel: Channel
    relaxed: bool = False
    scope: Scope = Scope.DEVICE
    tolerated: bool = False
    by: NDArray[np.bool_] | None = None
    """The lanes of a warp that do it; all of them where it is None."""


@dataclass(slots=True)
class Acquire:
    """`agent` now knows what was released to `channel`; of a warp only `lanes`, where given.

    A relaxed one knows it, by the memory model, after the agent's next `Fenced`.
    """

    agent: int
    channel: Channel
    lanes: NDArray[np.bool_] | None = None
    relaxed: bool = False
    scope: Scope = Scope.DEVICE
    by: NDArray[np.bool_] | None = None
    """The lanes of a warp that do it; all of them where it is None."""


@dataclass(slots=True)
class Fenced:
    """A fence: relaxed releases after it release what came before it, if it `releases`.

    And what relaxed acquires before it took in is known after it, if it `acquires`.
    """

    agent: int
    scope: Scope = Scope.DEVICE
    acquires: bool = True
    releases: bool = True


@dataclass(slots=True)
class Arrived:
    """A warp arrives at a phase of a named barrier of its CTA, and `waits` for the others or not.

    It precedes the `Release`.
    """

    agent: int
    barrier: int
    phase: int
    waits: bool


@dataclass(slots=True)
class LanesMet:
    """Lanes of the warp `agent`, all of them where none are given, have met.

    It orders their accesses.
    """

    agent: int
    lanes: NDArray[np.bool_] | None = None


@dataclass(slots=True)
class TensorFence:
    """`tcgen05.fence` of a warp.

    `is_before` a barrier it publishes accesses to tensor memory, else it learns of those of others.
    """

    agent: int
    is_before: bool


@dataclass(slots=True)
class ProxyFence:
    """`fence.proxy.async`: generic accesses known to `agent` are ordered before async ones.

    `kinds` are the kinds of memory it speaks of, `lanes` those of the warp that fence.
    """

    agent: int
    kinds: tuple[str, ...]
    lanes: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Stage:
    """An operation's place among the others of a pipe, whichever thread issued them.

    It runs after those issued before it that are of a kind in `behind` (PTX ISA 9.7.16.6.2).
    """

    pipe: Hashable
    kind: Hashable
    behind: tuple[Hashable, ...]


@dataclass(slots=True)
class Issued:
    """`parent` started the asynchronous operation `operation`, which `agent` will do."""

    operation: int
    parent: int
    agent: int
    label: str
    stage: Stage | None = None


@dataclass(slots=True)
class Began:
    """The operation takes effect now; accesses of its agent up to `Ended` are its own.

    `ordered`: the agent does its operations in order of issue.
    """

    operation: int
    agent: int
    ordered: bool


@dataclass(slots=True)
class Ended:
    """The operation has taken effect."""

    operation: int
    agent: int


@dataclass(slots=True)
class Misuse:
    """A unit refused something, or noticed a wrong: `rule` is what was broken."""

    rule: Rule
    message: str
    lane: int | None = None
    once: bool = False
    """Whether one finding is enough for all instructions that do it, as they have one cause."""


@dataclass(slots=True)
class Exited:
    """A CTA ended; `leftovers` says what it left, and which rule forbids it."""

    cta: tuple[int, int, int]
    leftovers: tuple[tuple[Rule, str], ...]
    agents: tuple[int, ...] = ()
    units: tuple[Unit, ...] = ()
    """Its memories, which nobody will access any more."""


@dataclass(slots=True)
class Ran:
    """A warp ran `count` instructions of its entry's body, the first of them `first`."""

    agent: int
    first: int
    count: int


@dataclass(slots=True)
class Waited:
    """A warp stood still from step `begin` to step `end`, for `what`.

    It comes just before the `Ran` of the instruction that waited.
    """

    agent: int
    begin: int
    end: int
    what: str


Listener: TypeAlias = Callable[[Any], None]


@dataclass(slots=True)
class Bus:
    """Who listens to what. An event nobody listens to is not even built: ask `wants` first."""

    listeners: dict[type, list[Listener]] = field(default_factory=dict)

    def listen(self, kind: type, listener: Listener) -> None:
        """Call `listener` with each event of this kind from now on."""
        self.listeners.setdefault(kind, []).append(listener)

    def wants(self, kind: type) -> bool:
        """Whether anybody listens to events of this kind."""
        return kind in self.listeners

    def emit(self, event: object) -> None:
        """Hand the event to its listeners, in the order in which they came."""
        for listener in self.listeners.get(type(event), ()):
            listener(event)
