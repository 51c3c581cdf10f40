"""What a replay takes from the rest of the card, and what comes of it: values."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kernelpack.predict.recording import Recording, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the rest of the card leaves to a multiprocessor.

    Attributes:
        hbm: bytes a cycle from memory.
        ingest: bytes a cycle from L2.
        missing: of each allocation, the part of the bytes read that L2 does not have.
        cold: the same of the clusters that the grid begins with: what one of them reads for the
            first time no other has read much before.
        stored: of each allocation, the part of the bytes written that goes on to memory.
        pace: cycles between two clusters that the card starts on these multiprocessors.
        faster: a kind of server that is twice as fast as the device's.

    """

    hbm: float
    ingest: float
    missing: Sequence[float]
    cold: Sequence[float]
    stored: Sequence[float]
    pace: float = 0.0
    faster: str = ""


class Cause(NamedTuple):
    """Who released a channel: a warp, and the operation that did it for the warp, or 0."""

    agent: int
    operation: int


NOBODY = Cause(-1, 0)


@dataclass(slots=True)
class Wait:
    """A wait that took time: of a warp, from when to when, and what ended it."""

    agent: int
    begin: float
    end: float
    cause: Cause


@dataclass(slots=True, kw_only=True)
class Replay:
    """Times of a recording. All are cycles from the first CTA's start.

    Attributes:
        recording: of the first copy.
        clusters: how many copies ran.
        cycles: the end of the last warp and of the last operation.
        half: when half of the steps were run.
        steps: how many were run.
        waited: when the first warp had waited for the launch before, 0 where none does.
        triggered: when the last CTA let the next launch begin, 0 where none does.
        stuck: whether a warp waits for what never comes: the replay is not one of the recording.
        busy: cycles that each kind of server worked, on the busiest multiprocessor.
        waits: those that took time.
        spans: when each operation ran: number → begin, end. Of the first copy alone.
        ran: when each step ran, by agent, as begin, end and the step. Of the first copy alone.

    """

    recording: Recording
    clusters: int = 0
    cycles: float = 0.0
    half: float = 0.0
    steps: int = 0
    waited: float = 0.0
    triggered: float = 0.0
    stuck: bool = False
    busy: dict[str, float] = field(default_factory=dict)
    last: int = -1
    """The warp that ended last."""
    waits: list[Wait] = field(default_factory=list)
    spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    ran: dict[int, list[tuple[float, float, Step]]] = field(default_factory=dict)
