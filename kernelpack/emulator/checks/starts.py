"""CTAs of a cluster that reach into each other: the other one must have started.

The CTAs of a cluster get their multiprocessors together, but none knows when another's threads
begin. Until then its shared memory is not there to be accessed, nor can a pair allocate tensor
memory (PTX ISA 9.7.16.7.1). A CTA knows that another has started by whatever comes from the
other's threads: a cluster barrier, relaxed or not, or an arrival; what that one knew comes with it.
"""

from collections.abc import Callable

from kernelpack.emulator.events import (
    Acquire,
    AgentStarted,
    Began,
    Bus,
    Channel,
    Ended,
    Exited,
    Issued,
    Reached,
    Release,
)

Ctas = frozenset[int]
NONE: Ctas = frozenset()
_CHANNELS_KEPT = 32_768


class Starts:
    """Which CTAs each agent knows to have started.

    A warp knows its own. Agents of clusters of one CTA know nothing and need nothing: they cost a
    look into a dictionary.
    """

    def __init__(self, report: Callable[..., None]) -> None:
        self.report = report
        self.known: dict[int, Ctas] = {}
        self.channels: dict[Channel, Ctas] = {}
        self.issued: dict[int, Ctas] = {}

    def listen(self, bus: Bus) -> None:
        """Hear of what orders, and of who reaches where."""
        bus.listen(AgentStarted, self.on_start)
        bus.listen(Release, self.on_release)
        bus.listen(Acquire, self.on_acquire)
        bus.listen(Issued, self.on_issue)
        bus.listen(Began, self.on_begin)
        bus.listen(Ended, self.on_end)
        bus.listen(Reached, self.on_reach)
        bus.listen(Exited, self.on_exit)

    def on_start(self, event: AgentStarted) -> None:
        """A warp runs, so its CTA has started; of a unit nothing follows."""
        if event.is_warp and not event.is_alone:
            self.known[event.agent] = frozenset({event.cta})

    def on_release(self, event: Release) -> None:
        """An agent's knowledge goes into the channel; any arrival, relaxed or not, carries it."""
        known = self.known.get(event.agent)
        if known is None:
            return
        self.channels[event.channel] = self.channels.pop(event.channel, NONE) | known
        if len(self.channels) > _CHANNELS_KEPT:
            del self.channels[next(iter(self.channels))]

    def on_acquire(self, event: Acquire) -> None:
        """The agent learns what is in the channel."""
        told = self.channels.get(event.channel, NONE)
        known = self.known.get(event.agent, NONE)
        if not told <= known:
            self.known[event.agent] = known | told

    def on_issue(self, event: Issued) -> None:
        """An operation starts with what its issuer knows."""
        known = self.known.get(event.parent)
        if known is not None:
            self.issued[event.operation] = known

    def on_begin(self, event: Began) -> None:
        """The unit takes it over; a pipe keeps what it knew."""
        told = self.issued.get(event.operation, NONE)
        before = self.known.get(event.agent, NONE)
        if told or before:
            self.known[event.agent] = told | before if event.ordered else told

    def on_end(self, event: Ended) -> None:
        """Forget the operation."""
        self.issued.pop(event.operation, None)

    def on_exit(self, event: Exited) -> None:
        """Forget a CTA's agents."""
        for agent in event.agents:
            self.known.pop(agent, None)

    def on_reach(self, event: Reached) -> None:
        """An agent must know that the CTA it reaches into has started."""
        if event.cta in self.known.get(event.agent, NONE):
            return
        self.report(
            event.rule,
            f"{event.what} before anything orders it after the start of cta {event.position}: "
            "a cluster barrier, or an arrival from there",
        )
