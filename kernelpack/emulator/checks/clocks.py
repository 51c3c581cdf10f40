"""Who knows what: vector clocks over agents (happens-before).

Each agent counts its own steps. Its clock is an array: entry b is the last step of agent b that is
known to have happened before what the agent does now. A release puts an agent's clock into a
channel, an acquire takes it out. A second array says up to where generic accesses are ordered
before asynchronous ones by a proxy fence.
Source: Flanagan and Freund, "FastTrack", PLDI 2009.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.events import (
    Acquire,
    AgentStarted,
    Began,
    Bus,
    Channel,
    Ended,
    Exited,
    Fenced,
    Issued,
    ProxyFence,
    Release,
)

Clock = NDArray[np.int64]
Fences = dict[str, Clock]
"""Per kind of memory the clock up to which generic accesses are ordered before async ones."""
_NOTHING: Clock = np.zeros(1, np.int64)
_CHANNELS_KEPT = 32_768  # a ring of stages may wait long for its reader
NO_SLOT = -1


def join(a: Clock, b: Clock) -> Clock:
    """The later of both, entry by entry."""
    if len(a) < len(b):
        a, b = b, a
    joined = a.copy()
    np.maximum(joined[: len(b)], b, out=joined[: len(b)])
    return joined


def join_fences(a: Fences, b: Fences) -> Fences:
    """The later of both, kind by kind; neither is changed."""
    if not a or a is b:
        return b
    joined = dict(a)
    for kind, clock in b.items():
        joined[kind] = join(joined[kind], clock) if kind in joined else clock
    return joined


class Clocks:
    """The clocks of every agent, kept up to date by listening.

    An agent has a *slot*, its place in every clock. When a CTA ends, its slots go to agents that
    come later, which count on from where the last owner stopped: what others know of the old one
    is nothing about the new one. Of an ended agent nobody knows anything, unless one of its CTA
    released something through global memory: then its slots are kept.
    """

    def __init__(self) -> None:
        self.known: list[Clock] = []
        self.fenced: list[Fences] = []
        self.names: list[str] = []
        self.slots: NDArray[np.intp] = np.full(64, NO_SLOT)
        """Slot by agent; the last entry is no agent's, so that agent -1 has none."""
        self.last_steps: list[int] = []
        """Per slot: the last step of its owners so far."""
        self.free: list[int] = []
        self.outward: set[int] = set()
        """Agents that released to a channel outside their CTA's memories."""
        self.channels: dict[Channel, tuple[Clock, Fences]] = {}
        self.behind_fence: dict[int, Clock] = {}
        """Agent → what it knew at its last fence."""
        self.issued: dict[int, tuple[Clock, Fences]] = {}

    def listen(self, bus: Bus) -> None:
        """Hear of everything that orders."""
        bus.listen(AgentStarted, self.on_start)
        bus.listen(Release, self.on_release)
        bus.listen(Acquire, self.on_acquire)
        bus.listen(ProxyFence, self.on_proxy_fence)
        bus.listen(Fenced, self.on_fence)
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, self.on_begin)
        bus.listen(Ended, self.on_end)
        bus.listen(Exited, self.on_exit)

    def on_start(self, event: AgentStarted) -> None:
        """A new agent knows nothing but itself."""
        agent = event.agent
        assert agent == len(self.known)
        if agent >= len(self.slots) - 1:
            self.slots = np.concatenate([self.slots, np.full(len(self.slots), NO_SLOT)])
        if self.free:
            slot = self.free.pop()
        else:
            slot = len(self.last_steps)
            self.last_steps.append(0)
        self.slots[agent] = slot
        clock = np.zeros(len(self.last_steps), np.int64)
        clock[slot] = self.last_steps[slot] + 1
        self.known.append(clock)
        self.fenced.append({})
        self.names.append(event.name)

    def step(self, agent: int) -> int:
        """The step an agent is at."""
        return int(self.known[agent][self.slots[agent]])

    def at(self, clock: Clock, agents: NDArray[np.integer[Any]]) -> Clock:
        """A clock's entries; 0 for agents it has never heard of, ended ones, and -1."""
        slots = self.slots[agents]
        heard = (slots >= 0) & (slots < len(clock))
        steps: Clock = clock[np.where(heard, slots, 0)] * heard
        return steps

    def known_step(self, agent: int, other: int) -> int:
        """The last step of `other` that `agent` knows of; 0 for one it has never heard of."""
        clock, slot = self.known[agent], self.slots[other]
        return int(clock[slot]) if 0 <= slot < len(clock) else 0

    def _tick(self, agent: int) -> None:
        self.known[agent][self.slots[agent]] += 1

    def on_release(self, event: Release) -> None:
        """What the agent knows goes into the channel; what it does next is not part of it."""
        agent, channel = event.agent, event.channel
        known, fenced = self.known[agent], self.fenced[agent]
        told = self.behind_fence.get(agent, _NOTHING) if event.relaxed else known
        before = self.channels.pop(channel, None)
        if before is None:
            before = told.copy(), fenced
        else:
            before = join(before[0], told), join_fences(before[1], fenced)
        self.channels[channel] = before
        self._tick(agent)
        if isinstance(channel, tuple) and channel[0] == "word":
            self.outward.add(agent)
        if len(self.channels) > _CHANNELS_KEPT:
            del self.channels[next(iter(self.channels))]

    def on_acquire(self, event: Acquire) -> None:
        """The agent learns what is in the channel."""
        content = self.channels.get(event.channel)
        if content is not None:
            agent = event.agent
            self.known[agent] = join(self.known[agent], content[0])
            self.fenced[agent] = join_fences(self.fenced[agent], content[1])

    def on_fence(self, event: Fenced) -> None:
        """Remember what a relaxed release will make known."""
        self.behind_fence[event.agent] = self.known[event.agent].copy()
        self._tick(event.agent)

    def on_proxy_fence(self, event: ProxyFence) -> None:
        """Everything the agent knows of is ordered before asynchronous accesses."""
        known = self.known[event.agent].copy()
        fences = dict(self.fenced[event.agent])
        for kind in event.kinds:
            fences[kind] = known
        self.fenced[event.agent] = fences

    def on_issue(self, event: Issued) -> None:
        """An operation starts with what its issuer knows; what the issuer does next is not part."""
        parent = event.parent
        self.issued[event.operation] = (self.known[parent].copy(), self.fenced[parent])
        self._tick(parent)

    def on_begin(self, event: Began) -> None:
        """The unit takes over what the operation knows; a pipe also keeps what it knew."""
        known, fenced = self.issued[event.operation]
        agent, slot = event.agent, self.slots[event.agent]
        own = self.known[agent]
        if event.ordered:
            self.known[agent] = join(own, known)
            self.fenced[agent] = join_fences(self.fenced[agent], fenced)
            return
        clock = np.zeros(max(len(known), int(slot) + 1), np.int64)
        clock[: len(known)] = known
        clock[slot] = own[slot]
        self.known[agent], self.fenced[agent] = clock, fenced

    def on_end(self, event: Ended) -> None:
        """Forget the operation."""
        del self.issued[event.operation]

    def on_exit(self, event: Exited) -> None:
        """Give the slots of an ended CTA's agents to those who come."""
        kept = any(agent in self.outward for agent in event.agents)
        for agent in event.agents:
            slot, step = int(self.slots[agent]), self.step(agent)
            self.behind_fence.pop(agent, None)
            self.fenced[agent] = {}
            if not kept:
                self.last_steps[slot] = step
                self.free.append(slot)
                self.slots[agent] = NO_SLOT
                self.known[agent] = _NOTHING
