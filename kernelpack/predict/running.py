"""Copies of clusters in a replay: how far each warp is, how often each channel was released."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kernelpack.predict.pieces import Piece
from kernelpack.predict.recording import Recording, Track
from kernelpack.predict.replay import NOBODY, Cause
from kernelpack.predict.servers import Multiprocessor


@dataclass(slots=True)
class Channel:
    """How often a channel was released, by whom last, and who waits for how many releases."""

    count: int = 0
    cause: Cause = NOBODY
    waiting: list[tuple[int, "Warp"]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Warp:
    """A warp of a copy of a cluster, and how far it is."""

    track: Track
    pieces: Sequence[Piece]
    copy: "Copy"
    sm: Multiprocessor
    scheduler: int
    place: int = 0
    awaited: int = 0
    """How many of the waits of its step are over."""
    began: float = -1.0
    pending: dict[int, float] = field(default_factory=dict)
    """A register that a load will fill → when."""
    stretch: float = 0.0
    """When the code began in which ptxas moves loads ahead."""
    loaded: set[int] = field(default_factory=set)
    """Registers that were loaded since."""
    copied: float = 0.0
    """When all cp.async that it started are done."""


@dataclass(slots=True, eq=False)
class Copy:
    """A cluster that runs: its channels, and how many of its warps are left."""

    number: int
    recording: Recording
    sms: Mapping[int, Multiprocessor]
    is_first: bool
    """Whether it begins with the grid."""
    channels: dict[int, Channel] = field(default_factory=dict)
    left: int = 0
    done: dict[int, float] = field(default_factory=dict)
    """Queue → when the last operation in it is done."""

    def channel(self, number: int) -> Channel:
        """One of its channels."""
        return self.channels.setdefault(number, Channel())
