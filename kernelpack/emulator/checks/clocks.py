"""Who knows what: vector clocks over agents (happens-before).

Each agent counts its own steps. Its clock has an entry for each agent b: the last step of b that is
known to have happened before what the agent does now. A release puts an agent's clock into a
channel, an acquire takes it out. There are three ways to know, each a row of the clock, and what a
row holds the rows below it hold too:

- `SCOPED`: by the memory model: fences, relaxed operations and scopes counted (PTX ISA 8.8, 8.5);
- `CAUSAL`: as hardware has it: whatever the scopes, and with no fence where there is none needed,
  after a relaxed read or before a relaxed arrival;
- `EXECUTED`: b got there first, which any synchronisation says. It orders tensor memory
  (9.7.16.6.4), and nothing else.

It also has what fences ordered. One that another thread ran counts for a relaxed release too,
if the other thread is known to have come: `__threadfence(); __syncthreads(); atomicAdd(…)`.
Source: Flanagan and Freund, "FastTrack", PLDI 2009.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.checks.channels import (
    ANY,
    Channels,
    Clock,
    Fences,
    Source,
    join,
    join_fences,
    learn,
)
from kernelpack.emulator.checks.pipelines import Pipelines
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
    Scope,
)

if TYPE_CHECKING:
    from collections.abc import Hashable
from enum import Enum

SCOPED, CAUSAL, EXECUTED = 0, 1, 2
ROWS = 3
NO_SLOT = -1
_LATEST_KEPT = 4096
Steps = NDArray[np.int64]
"""One row of a clock, or the steps that agents were at."""
_NOTHING: Clock = np.zeros((ROWS, 1), np.int64)


class Missing(Enum):
    """The gap of an order that hardware keeps and the memory model does not."""

    FENCE_BEHIND = "there is no fence after the relaxed or volatile read that saw it"
    FENCE_BEFORE = "there is no fence before a relaxed arrival or store on the way"
    SCOPE_OF_WAIT = "the wait has the scope of a CTA, and they are of different ones"
    SCOPE_BEFORE = "an arrival, store or fence has the scope of a CTA, they are of different ones"


class Clocks:
    """The clocks of every agent, kept up to date by listening.

    An agent has a *slot*, its place in every clock. When a CTA ends, its slots go to agents that
    come later, which count on from where the last owner stopped: what others know of the old one
    is nothing about the new one. Of an ended agent nobody knows anything, unless one of its CTA
    released something through global memory: then its slots are kept.
    """

    def __init__(self) -> None:
        self.agents: list[AgentStarted] = []
        self.clusters: dict[int, Hashable] = {}
        """CTA → its cluster."""
        self.known: list[Clock] = []
        """By agent, a clock of its own."""
        self.fenced: list[Fences] = []
        self.slots: NDArray[np.intp] = np.full(64, NO_SLOT)
        """Slot by agent; the last entry is no agent's, so that agent -1 has none."""
        self.last_steps: list[int] = []
        """Per slot: the last step of its owners so far."""
        self.free: list[int] = []
        self.outward: set[int] = set()
        """Agents that released to a channel outside their CTA's memories."""
        self.channels = Channels()
        self.heard: dict[int, dict[Source, tuple[Clock, Missing]]] = {}
        """Agent → what it acquired but does not know by the model, and why; a fence may help."""
        self.latest: dict[Channel, tuple[int, int]] = {}
        """Who released to a channel last, relaxed, and at which step."""
        self.saw: dict[int, dict[int, int]] = {}
        """Agent → the steps of others at which these released, relaxed, what it acquired."""
        self.issued: dict[int, tuple[Clock, Fences]] = {}
        self.pipelines = Pipelines()

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

    # -- what others ask --------------------------------------------------------------------

    def name(self, agent: int) -> str:
        """An agent in words."""
        return self.agents[agent].name

    def missing(self, agent: int, other: int, step: int) -> str:
        """The gap, by the memory model, between an agent and another's step."""
        for clock, why in self.heard.get(agent, {}).values():
            if self._entry(clock, other, CAUSAL) >= step:
                return why.value
        if self.agents[agent].cta == self.agents[other].cta:
            return Missing.FENCE_BEFORE.value
        return f"{Missing.SCOPE_BEFORE.value}, or {Missing.FENCE_BEFORE.value}"

    def saw_relaxed(self, agent: int, other: int, step: int) -> bool:
        """Whether a relaxed release by `other`, of this step or later, was acquired by an agent."""
        return self.saw.get(agent, {}).get(other, 0) >= step

    def step(self, agent: int) -> int:
        """The step an agent is at."""
        return int(self.known[agent][EXECUTED, self.slots[agent]])

    def at(self, clock: Steps, agents: NDArray[np.integer[Any]]) -> Steps:
        """A row's entries; 0 for agents it has never heard of, ended ones, and -1."""
        slots = self.slots[agents]
        heard = (slots >= 0) & (slots < len(clock))
        steps: Steps = clock[np.where(heard, slots, 0)] * heard
        return steps

    def known_step(self, agent: int, other: int, row: int) -> int:
        """The last step of `other` that `agent` knows of; 0 for one it has never heard of."""
        return self._entry(self.known[agent], other, row)

    def fenced_step(self, agent: int, other: int, kind: str) -> int:
        """The last step of `other` whose generic accesses come before async ones of `agent`."""
        fence = self.fenced[agent].get(kind)
        return 0 if fence is None else self._entry(fence, other, 0)

    def _entry(self, clock: Clock, other: int, row: int) -> int:
        slot = self.slots[other]
        return int(clock[row, slot]) if 0 <= slot < clock.shape[1] else 0

    def _tick(self, agent: int) -> None:
        self.known[agent][:, self.slots[agent]] += 1

    # -- events -----------------------------------------------------------------------------

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
        clock = np.zeros((ROWS, len(self.last_steps)), np.int64)
        clock[:, slot] = self.last_steps[slot] + 1
        self.known.append(clock)
        self.fenced.append({})
        self.agents.append(event)
        self.clusters[event.cta] = event.cluster

    def on_release(self, event: Release) -> None:
        """The agent's knowledge goes into the channel; its later steps do not."""
        agent, is_word = event.agent, _is_word(event.channel)
        mine, known, fences = self.agents[agent], self.known[agent], self.fenced[agent]
        if not mine.is_warp:
            self.channels.put(event.channel, (None, mine.cta), known, fences)
        elif not event.relaxed:
            self.channels.put(event.channel, _source(event.scope, mine, is_word), known, fences)
            if is_word or not mine.is_alone:
                for scope, clock in _by_scope(fences, event.scope):
                    told = _fenced_only(clock)
                    self.channels.put(event.channel, _source(scope, mine, is_word), told, fences)
        elif not self._release_relaxed(event, is_word=is_word):
            return
        self._tick(agent)
        if is_word or _is_grid(event.channel):
            self.outward.add(agent)

    def _release_relaxed(self, event: Release, *, is_word: bool) -> bool:
        """Make known what fences ordered, and that the agent got here; whether that is anything."""
        mine, fences = self.agents[event.agent], self.fenced[event.agent]
        ordered = _by_scope(fences, None)
        self.latest.pop(event.channel, None)
        self.latest[event.channel] = event.agent, self.step(event.agent)
        if len(self.latest) > _LATEST_KEPT:
            del self.latest[next(iter(self.latest))]
        if is_word and not ordered and not event.tolerated:
            return False
        told = self.known[event.agent].copy()
        told[: CAUSAL if event.tolerated else EXECUTED] = 0
        for scope, clock in ordered or [(event.scope, _NOTHING[:1])]:
            told = join(told, _fenced_only(clock))
            self.channels.put(event.channel, _source(scope, mine, is_word), told, fences)
            told = _NOTHING
        return True

    def on_acquire(self, event: Acquire) -> None:
        """The agent learns what is in the channel; some of it for good only at its next fence."""
        agent = event.agent
        last = self.latest.get(event.channel)
        if last is not None:
            self.saw.setdefault(agent, {})[last[0]] = last[1]
        for source, clock, fences in self.channels.get(event.channel):
            row = CAUSAL if event.relaxed else self._reached(agent, source, event.scope)
            self.known[agent] = learn(self.known[agent], clock, row)
            self.fenced[agent] = join_fences(self.fenced[agent], fences)
            if row != SCOPED:
                heard = self.heard.setdefault(agent, {})
                before = heard.get(source, (_NOTHING, None))[0]
                heard[source] = join(before, clock), self._why_not(event, source)

    def _reached(self, agent: int, source: Source, scope: Scope) -> int:
        """The row from which on an acquire of a scope knows what a source released."""
        mine, (reach, cta) = self.agents[agent], source
        if reach is None or cta == mine.cta or not mine.is_warp:
            return SCOPED
        is_near = cta != ANY and self.clusters[cta] == mine.cluster
        needed = Scope.CLUSTER if is_near else Scope.DEVICE
        return SCOPED if min(reach, scope) >= needed else CAUSAL

    def _why_not(self, event: Acquire, source: Source) -> "Missing":
        """The gap of an acquire that, by the model, does not know what it learns."""
        if event.relaxed:
            return Missing.FENCE_BEHIND
        would = self._reached(event.agent, source, Scope.DEVICE)
        return Missing.SCOPE_OF_WAIT if would == SCOPED else Missing.SCOPE_BEFORE

    def on_fence(self, event: Fenced) -> None:
        """Remember what a relaxed release will make known; know what relaxed acquires brought."""
        agent = event.agent
        if event.acquires:
            self._hear(agent, event.scope)
        if event.releases:
            ordered = self.known[agent][CAUSAL : CAUSAL + 1].copy()
            narrower: Fences = {scope: ordered for scope in Scope if scope <= event.scope}
            self.fenced[agent] = self.fenced[agent] | narrower
            self._tick(agent)

    def _hear(self, agent: int, scope: Scope) -> None:
        """Know what was acquired before a fence of this scope; keep what needs a wider one."""
        for source, (clock, why) in self.heard.pop(agent, {}).items():
            row = self._reached(agent, source, scope)
            self.known[agent] = learn(self.known[agent], clock, row)
            if row != SCOPED:
                self.heard.setdefault(agent, {})[source] = clock, why

    def on_proxy_fence(self, event: ProxyFence) -> None:
        """Everything the agent knows of is ordered before asynchronous accesses."""
        known = self.known[event.agent][CAUSAL : CAUSAL + 1].copy()
        fences = dict(self.fenced[event.agent])
        for kind in event.kinds:
            fences[kind] = known
        self.fenced[event.agent] = fences

    def on_issue(self, event: Issued) -> None:
        """An operation starts with what its issuer knows; what the issuer does next is not part."""
        parent = event.parent
        self.issued[event.operation] = (self.known[parent].copy(), self.fenced[parent])
        self.pipelines.issue(event, self.step(parent))
        self._tick(parent)

    def on_begin(self, event: Began) -> None:
        """The unit takes over what the operation knows; an ordered one also keeps what it knew."""
        known, fenced = self.issued[event.operation]
        agent, slot = event.agent, int(self.slots[event.agent])
        own = self.known[agent]
        if event.ordered:
            self._tick(agent)
            self.known[agent] = learn(own, known)
            self.fenced[agent] = join_fences(self.fenced[agent], fenced)
            self._pipeline(event, known)
            return
        clock = np.zeros((ROWS, max(known.shape[1], slot + 1)), np.int64)
        clock[:, : known.shape[1]] = known
        clock[:, slot] = own[:, slot]
        self.known[agent], self.fenced[agent] = clock, fenced

    def _pipeline(self, event: Began, issued: Clock) -> None:
        """Know of the operations of other threads that this one runs after."""
        agent = event.agent
        behind = self.pipelines.run(
            event.operation, agent, self.step(agent), lambda a: self._entry(issued, a, EXECUTED)
        )
        for other, step in behind:
            slot = int(self.slots[other])
            alone = np.zeros((ROWS, slot + 1), np.int64)
            alone[:, slot] = step
            self.known[agent] = learn(self.known[agent], alone)

    def on_end(self, event: Ended) -> None:
        """Forget the operation."""
        del self.issued[event.operation]

    def on_exit(self, event: Exited) -> None:
        """Give the slots of an ended CTA's agents to those who come."""
        kept = any(agent in self.outward for agent in event.agents)
        self.pipelines.forget(event.agents)
        for agent in event.agents:
            slot, step = int(self.slots[agent]), self.step(agent)
            self.saw.pop(agent, None)
            self.heard.pop(agent, None)
            self.fenced[agent] = {}
            if not kept:
                self.last_steps[slot] = step
                self.free.append(slot)
                self.slots[agent] = NO_SLOT
                self.known[agent] = _NOTHING.copy()


def _is_word(channel: Channel) -> bool:
    """Whether it is a word of memory; others are barriers and operations."""
    return isinstance(channel, tuple) and channel[0] == "word"


def _is_grid(channel: Channel) -> bool:
    """Whether it is the end of a launch."""
    return isinstance(channel, tuple) and channel[0] == "grid"


def _source(scope: Scope, agent: AgentStarted, is_word: bool) -> Source:
    """Where a release comes from: of a word that every CTA may count on, it makes no difference."""
    return scope, ANY if is_word and scope is Scope.DEVICE else agent.cta


def _by_scope(fences: Fences, beyond: Scope | None) -> list[tuple[Scope, Clock]]:
    """Orderings by fences, each for its widest scope beyond one; widest first."""
    found: list[tuple[Scope, Clock]] = []
    for scope in reversed(Scope):
        clock = fences.get(scope)
        is_wide = beyond is None or scope > beyond
        if clock is not None and is_wide and not (found and found[-1][1] is clock):
            found.append((scope, clock))
    return found


def _fenced_only(row: Clock) -> Clock:
    """A clock of what a fence ordered."""
    return np.concatenate([row, row, np.zeros_like(row)])
