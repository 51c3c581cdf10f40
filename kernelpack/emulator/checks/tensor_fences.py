"""Accesses to tensor memory by several threads, and the fences between them (PTX ISA 9.7.16.6).

One thread's access to tensor memory is ordered before another's only through
`tcgen05.fence::before_thread_sync`, an ordinary barrier, and `tcgen05.fence::after_thread_sync`.
A commit implies the first. Production kernels leave out some of them, hence `strict`.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator import rules
from kernelpack.emulator.checks.pipelines import Pipelines
from kernelpack.emulator.events import (
    Access,
    Acquire,
    AgentStarted,
    Began,
    Bus,
    Channel,
    Ended,
    Exited,
    Issued,
    Release,
    TensorFence,
    Unit,
)
from kernelpack.emulator.faults import Level

Clock = dict[int, int]
"""The last step of each agent that is known."""
_WAITS = ("tcgen05.ld", "tcgen05.st")
"""Channels of `wait::ld` and `wait::st`, which need no fence."""
_CHANNELS_KEPT = 4096


class _Cells:
    """Per cell: the agent that wrote last (plus one) and its step; per agent its last reads."""

    def __init__(self, cells: int) -> None:
        self.writer = np.zeros(cells, np.int32)
        self.step = np.zeros(cells, np.int64)
        self.reads: dict[int, NDArray[np.int64]] = {}


class TensorFences:
    """Clocks of tensor accesses alone; barriers pass them on only between fences."""

    level = Level.STRICT

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report
        self.names: dict[int, str] = {}
        self.warps: set[int] = set()
        self.step: dict[int, int] = {}
        self.seen: dict[int, Clock] = {}
        """The predecessors of an agent's accesses."""
        self.published: dict[int, Clock] = {}
        """The contents of a warp's next arrival."""
        self.heard: dict[int, Clock] = {}
        """News that a warp sees after its next fence."""
        self.channels: dict[Channel, Clock] = {}
        self.issued: dict[int, Clock] = {}
        self.issuer: dict[int, int] = {}
        """Of an operation's agent, the warp that issued the latest."""
        self.source: dict[tuple[int, int], Channel] = {}
        """Through what a warp last heard of another agent."""
        self.cells: dict[Unit, _Cells] = {}
        self.pipelines = Pipelines()

    def listen(self, bus: Bus) -> None:
        """Hear of accesses to tensor memory and of all that orders them."""
        bus.listen(AgentStarted, self.on_start)
        bus.listen(Release, self.on_release)
        bus.listen(Acquire, self.on_acquire)
        bus.listen(TensorFence, self.on_fence)
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, self.on_begin)
        bus.listen(Ended, self.on_end)
        bus.listen(Access, self.on_access)
        bus.listen(Exited, self.on_exit)

    def on_start(self, event: AgentStarted) -> None:
        """A new agent has seen nothing."""
        agent = event.agent
        self.names[agent], self.step[agent] = event.name, 1
        self.seen[agent], self.published[agent], self.heard[agent] = {}, {}, {}
        if event.is_warp:
            self.warps.add(agent)

    def on_release(self, event: Release) -> None:
        """Of a warp what it published goes out, of a unit all."""
        agent = event.agent
        known = self.published[agent] if self._needs_fence(event) else self._now(agent)
        if not known:
            return
        self.channels[event.channel] = _join(self.channels.pop(event.channel, {}), known)
        if len(self.channels) > _CHANNELS_KEPT:
            del self.channels[next(iter(self.channels))]

    def on_acquire(self, event: Acquire) -> None:
        """A warp learns it with its next fence, a unit at once."""
        clocks = self.heard if self._needs_fence(event) else self.seen
        content = self.channels.get(event.channel)
        if content:
            clocks[event.agent] = _join(clocks[event.agent], content)
            self.source.update(dict.fromkeys(((event.agent, a) for a in content), event.channel))

    def on_fence(self, event: TensorFence) -> None:
        """Before a barrier: publish. After it: learn."""
        agent = event.agent
        if event.is_before:
            self.published[agent] = self._now(agent)
        else:
            self.seen[agent] = _join(self.seen[agent], self.heard[agent])

    def on_issue(self, event: Issued) -> None:
        """An operation starts with what its issuer has seen."""
        self.pipelines.issue(event, self.step[event.parent])
        self.issued[event.operation] = self._now(event.parent)
        self.issuer[event.agent] = event.parent

    def on_begin(self, event: Began) -> None:
        """The unit takes it over; one that is ordered keeps what it knew."""
        agent, issued = event.agent, self.issued[event.operation]
        before = self.seen[agent] if event.ordered else {}
        self.step[agent] += 1
        behind = self.pipelines.run(
            event.operation, agent, self.step[agent], lambda issuer: issued.get(issuer, 0)
        )
        self.seen[agent] = _join(_join(before, issued), dict(behind))

    def on_end(self, event: Ended) -> None:
        """Forget the operation."""
        del self.issued[event.operation]

    def on_exit(self, event: Exited) -> None:
        """Forget a CTA's agents and its tensor memory."""
        for agent in event.agents:
            for clocks in (self.names, self.step, self.seen, self.published, self.heard):
                del clocks[agent]
            self.issuer.pop(agent, None)
        self.pipelines.forget(event.agents)
        gone = set(event.agents)
        self.source = {pair: told for pair, told in self.source.items() if not gone & {*pair}}
        self.warps -= gone
        for unit in event.units:
            self.cells.pop(unit, None)

    def on_access(self, event: Access) -> None:
        """Check it against the last accesses to its cells; an allocation is no asynchronous one."""
        if event.unit.kind != "tensor" or event.proxy == "generic":
            return
        cells = self.cells.setdefault(event.unit, _Cells(event.unit.cells))
        where, step = event.cells, self.step[event.agent]
        self._compare(event, cells.writer[where] - 1, cells.step[where])
        if event.write:
            for reader, steps in cells.reads.items():
                read = steps[where]
                self._compare(event, np.where(read > 0, reader, -1), read)
            cells.writer[where], cells.step[where] = event.agent + 1, step
        else:
            fresh = np.zeros(event.unit.cells, np.int64)
            cells.reads.setdefault(event.agent, fresh)[where] = step

    def _compare(self, event: Access, agents: NDArray[np.int32], steps: NDArray[np.int64]) -> None:
        seen = self.seen[event.agent]
        for agent in np.unique(agents[(agents >= 0) & (agents != event.agent)]).tolist():
            if steps[agents == agent].max() > seen.get(agent, 0):
                step = int(steps[agents == agent].max())
                missing = self._missing(self.issuer.get(event.agent, event.agent), agent, step)
                self.report(
                    rules.TENSOR_FENCE,
                    f"{event.what} and {self.names[agent]} use the same tensor memory: {missing}",
                )
                return

    def _missing(self, waiter: int, agent: int, step: int) -> str:
        """The side that has no fence: the warp that waited, or the one that others wait for."""
        if self.heard[waiter].get(agent, 0) >= step:
            source = _name(self.source[waiter, agent])
            return f"{self.names[waiter]} has no tcgen05.fence::after_thread_sync after {source}"
        return (
            "tcgen05.fence::before_thread_sync, or commit, is missing after the latter: "
            f"{self.names[waiter]} cannot see it"
        )

    def _needs_fence(self, event: Release | Acquire) -> bool:
        waits = isinstance(event.channel, tuple) and event.channel[0] in _WAITS
        return event.agent in self.warps and not waits

    def _now(self, agent: int) -> Clock:
        """An agent's clock; its next action is another step."""
        clock = self.seen[agent] | {agent: self.step[agent]}
        self.step[agent] += 1
        return clock


def _name(channel: Channel) -> str:
    """A warp's last wait, as far as a channel says it."""
    match channel:
        case ("mbarrier", _, int(offset), phase):
            return f"its wait for phase {phase} of mbarrier {hex(offset)}"
        case ("bar", _, number, _):
            return f"barrier {number}"
    return "the barrier"


def _join(a: Clock, b: Clock) -> Clock:
    """The later of both, agent by agent."""
    return {agent: max(a.get(agent, 0), b.get(agent, 0)) for agent in a | b}
