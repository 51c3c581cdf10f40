"""The contents of a release, lane by lane: the writes of lanes that the releasing one has met.

`if (t < 32) { s[t] = …; if (t == 0) arrive(bar); }`: whoever waits knows of lane 0's write, and of
the others' only if they met lane 0 in between (PTX ISA 9.7.13.2). The clocks of `checks.clocks` are
those of whole warps; here each has an entry a lane beside the warp's.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.checks.meetings import WIDTH, Meetings
from kernelpack.emulator.events import Acquire, Channel, Release

_KEPT = 32_768


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """Up to when a warp is known: as a whole, by its release, and of each of its lanes."""

    whole: int
    lanes: NDArray[np.int64]

    def joined(self, other: "Told | None") -> "Told":
        """The later of both."""
        if other is None or other is self:
            return self
        return Told(max(self.whole, other.whole), np.maximum(self.lanes, other.lanes))


Known = dict[int, Told]
"""By agent; never changed, but replaced."""


def _join(a: Known, b: Known) -> Known:
    return a | {agent: told.joined(a.get(agent)) for agent, told in b.items()} if a else b


class Handed:
    """Who knows what of which lanes."""

    def __init__(self, meetings: Meetings, tick: Callable[[], int]) -> None:
        self.meetings, self.tick = meetings, tick
        self.known: dict[int, Known] = {}
        self.channels: dict[Channel, Known] = {}

    def on_release(self, event: Release) -> None:
        """The releasing lanes' knowledge of their warp goes into the channel, and the warp's."""
        agent, now = event.agent, self.tick()
        if event.by is None:
            lanes = np.full(WIDTH, now)
        else:
            lanes = self.meetings.of(agent).known_to(event.by)
            lanes[event.by] = now
        content = _join(self.known.get(agent, {}), {agent: Told(now, lanes)})
        self.channels[event.channel] = _join(self.channels.pop(event.channel, {}), content)
        if len(self.channels) > _KEPT:
            del self.channels[next(iter(self.channels))]

    def on_acquire(self, event: Acquire) -> None:
        """The warp learns it."""
        content = self.channels.get(event.channel)
        if content:
            self.known[event.agent] = _join(self.known.get(event.agent, {}), content)

    def of(self, agent: int) -> Known:
        """An agent's knowledge now."""
        return self.known.get(agent, {})

    def forget(self, agents: tuple[int, ...]) -> None:
        """These have ended."""
        for agent in agents:
            self.known.pop(agent, None)


def unmet(
    known: Known,
    own: int,
    writers: NDArray[np.int32],
    times: NDArray[np.int64],
    lanes: NDArray[np.int8],
) -> int | None:
    """The first of some writes of other warps that a release publishes, not of its lane.

    Args:
        known: what the reader knows.
        own: its agent.
        writers: who made each write, an agent plus one; 0 for nobody.
        times: when each was made.
        lanes: by which lane.

    """
    for writer in np.unique(writers).tolist():
        told = known.get(writer - 1)
        if writer == 0 or writer - 1 == own or told is None:
            continue
        late = (writers == writer) & (times <= told.whole) & (times > told.lanes[lanes])
        if late.any():
            return int(late.argmax())
    return None
