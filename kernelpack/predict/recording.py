"""What a few clusters of a launch did, in order: values that a replay gives times to.

A *step* is a block of instructions that a warp ran, an *operation* is what a unit does by itself.
Who waits for whom is kept as *channels*: a wait ends when so many releases of its channel have
happened. So an order in time follows from a recording and from a device, and from nothing else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Await(NamedTuple):
    """A wait: how many releases of a channel must have happened."""

    channel: int
    releases: int


@dataclass(slots=True)
class Step:
    """Instructions `first` to `first + count - 1` of the entry's body, run by a warp.

    Attributes:
        before: the channels that it releases before it waits: `bar.sync` arrives, then waits.
        awaits: the waits before it.
        issues: the operations that it starts, by number.
        releases: the channels that it releases at its end.
        wavefronts: cycles that its accesses take of shared memory's port.
        sectors_read: of 32 bytes, that it reads from global memory.
        sectors_written: the same, written.
        source: the allocation that it read most of, by its number.
        target: the same, written.

    """

    first: int
    count: int
    before: tuple[int, ...] = ()
    awaits: tuple[Await, ...] = ()
    issues: tuple[int, ...] = ()
    releases: tuple[int, ...] = ()
    wavefronts: int = 0
    sectors_read: int = 0
    sectors_written: int = 0
    source: int = -1
    target: int = -1


@dataclass(slots=True)
class Operation:
    """What a unit did by itself.

    Attributes:
        name: its instruction, without operands: `tcgen05.mma.cta_group::1.kind::f16`.
        warp: the agent that started it.
        queue: a queue whose operations are done in order; None where there is no order.
        releases: the channels that it releases when it is done.
        global_read: bytes that it reads from global memory.
        global_written: bytes that it writes there.
        shared_read: bytes that it reads from shared memory, by the number of the CTA.
        shared_written: bytes that it writes to shared memory, by the number of the CTA.
        columns: of tensor memory that it writes in a CTA.
        rows: separate runs of 16 bytes or more in global memory.
        source: the allocation that it read or wrote last, by its number.

    """

    number: int
    name: str
    warp: int
    queue: int | None
    releases: list[int] = field(default_factory=list)
    global_read: int = 0
    global_written: int = 0
    shared_read: dict[int, int] = field(default_factory=dict)
    shared_written: dict[int, int] = field(default_factory=dict)
    columns: int = 0
    rows: int = 0
    source: int = -1


@dataclass(slots=True)
class Track:
    """All steps of a warp. `cta` is the number of its CTA, `index` its number there."""

    agent: int
    cta: int
    index: int
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes of one allocation that a cluster moved, and the bytes that it has.

    `scattered` are those of `read` that came by lists of rows, not by boxes, and that it had not
    written itself. `lines` are the lines of 128 bytes that it read before it wrote them, in order;
    `written_lines` is how many it wrote.
    """

    name: str
    size: int
    read: int
    written: int
    scattered: int
    lines: NDArray[np.int64]
    written_lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A cluster that ran: its warps, what units did for them, and the bytes they moved.

    Attributes:
        tracks: warps, by agent.
        operations: by number.
        traffic: by allocation, at its number.
        ctas: the numbers of its CTAs.
        columns: of tensor memory that it allocates, in all its CTAs together.
        steps: warp instructions that were recorded.
        all_steps: those of the whole cluster; more, where recording ended before it.
        number: of the cluster in its grid, x fastest.

    """

    tracks: Mapping[int, Track]
    operations: Mapping[int, Operation]
    traffic: tuple[Traffic, ...]
    ctas: tuple[int, ...]
    columns: int
    steps: int
    all_steps: int
    number: int
