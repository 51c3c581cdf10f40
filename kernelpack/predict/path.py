"""The critical path of a replay: from the end of its first cluster back to the start.

A warp's time goes to its instructions back to its last wait. The wait's time goes to the operation
that ended it, or to the warp that did; the path goes on with who started that operation. So the
shares of a path add up to the cluster's time.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kernelpack.predict.blocks import Costs
from kernelpack.predict.recording import Operation, Step
from kernelpack.predict.replay import Replay, Wait

START, WAKE, LOADS = "the start of a CTA", "barriers between warps", "loads of memory"
ISSUE, SPECIAL, SHARED = "turns at the issue slots", "special functions", "shared memory"
_LOOKED_BACK = 64
"""Steps before one in which the loads that it waits for are looked for."""


class Link(NamedTuple):
    """A part of the path: cycles, what they went to, of which warp, and at which instruction."""

    cycles: float
    what: str
    warp: int
    at: int


def path(replay: Replay, costs: Costs) -> Iterator[Link]:
    """The links of a replay's critical path, the last one first."""
    return _Path(replay, costs).links()


OF_WARPS = ("instructions", ISSUE, LOADS, SPECIAL, SHARED)
"""What a path goes to in a warp itself."""


@dataclass(slots=True)
class _Path:
    """A walk back through a replay."""

    replay: Replay
    costs: Costs
    waits: Mapping[int, list[Wait]] = field(init=False)
    queues: dict[int, list[Operation]] = field(init=False)
    issued: dict[int, tuple[int, int]] = field(init=False)
    """Operation → the warp that issued it, and the place of the step in what it ran."""

    def __post_init__(self) -> None:
        self.waits, self.queues, self.issued = defaultdict(list), defaultdict(list), {}
        for wait in self.replay.waits:
            self.waits[wait.agent].append(wait)
        for operation in self.replay.recording.operations.values():
            if operation.queue is not None and operation.number in self.replay.spans:
                self.queues[operation.queue].append(operation)
        for agent, ran in self.replay.ran.items():
            for place, (_, _, step) in enumerate(ran):
                self.issued.update(dict.fromkeys(step.issues, (agent, place)))

    def links(self) -> Iterator[Link]:
        """Walk back from the warp that ended last."""
        ran = self.replay.ran
        if not ran:
            return
        agent = max(ran, key=lambda one: ran[one][-1][1])
        place = len(ran[agent]) - 1
        while place >= 0:
            begin = ran[agent][place][0]
            yield from self._instructions(agent, place)
            wait = self._wait(agent, place)
            if wait is not None:
                yield from self._gap(agent, place, begin - wait.end)
                agent, place, links = self._ended(wait, agent, place)
                yield from links
                continue
            before = ran[agent][place - 1][1] if place else 0.0
            if place:
                yield from self._gap(agent, place, begin - before)
            else:
                yield Link(begin, START, agent, ran[agent][0][2].first)
            place -= 1

    def _wait(self, agent: int, place: int) -> Wait | None:
        """The wait that a step was held up by: each is met once."""
        begin = self.replay.ran[agent][place][0]
        before = self.replay.ran[agent][place - 1][1] if place else 0.0
        waits = self.waits[agent]
        while waits and waits[-1].end > begin:
            waits.pop()
        if waits and waits[-1].end > before:
            return waits.pop()
        return None

    def _instructions(self, agent: int, place: int) -> Iterator[Link]:
        """A step: what its instructions take, and what it stood still for."""
        begin, end, step = self.replay.ran[agent][place]
        cost = self.costs.of(step.first, step.count)
        own = min(end - begin, max(cost.slots, cost.length))
        yield Link(own, "instructions", agent, step.first)
        if end - begin > own:
            yield Link(end - begin - own, _stall(step, bool(cost.waits)), agent, step.first)

    def _gap(self, agent: int, place: int, cycles: float) -> Iterator[Link]:
        """The time before a step: its loads, or the turns of other warps."""
        if cycles <= 0:
            return
        ran = self.replay.ran[agent]
        uses = set(self.costs.of(ran[place][2].first, ran[place][2].count).uses)
        for earlier in range(place - 1, max(place - 1 - _LOOKED_BACK, -1), -1):
            step = ran[earlier][2]
            if uses & self.costs.of(step.first, step.count).loads.keys():
                yield Link(cycles, LOADS, agent, step.first)
                return
        yield Link(cycles, ISSUE, agent, ran[place][2].first)

    def _ended(self, wait: Wait, agent: int, place: int) -> tuple[int, int, list[Link]]:
        """Who ended a wait, the step that did it, and the links between."""
        cause = wait.cause
        if cause.operation in self.issued and cause.operation in self.replay.spans:
            return self._operation(cause.operation, wait.end)
        ran = self.replay.ran.get(cause.agent, [])
        ends = [end for _, end, _ in ran]
        found = bisect_right(ends, wait.end) - 1
        if found < 0 or cause.agent == agent:
            return agent, place - 1, [Link(wait.end - wait.begin, WAKE, agent, -1)]
        at = ran[found][2].first
        return cause.agent, found, [Link(wait.end - ends[found], WAKE, cause.agent, at)]

    def _operation(self, number: int, until: float) -> tuple[int, int, list[Link]]:
        """Back through the operations of a queue that waited for one another, to an issue."""
        links: list[Link] = []
        operation = self.replay.recording.operations[number]
        while True:
            begin = self.replay.spans[operation.number][0]
            agent, place = self.issued[operation.number]
            before = self._before(operation)
            end = self.replay.spans[before.number][1] if before else 0.0
            held = before is not None and end > begin and before.number in self.issued
            since = min(end, until) if held else begin
            named = before if before and _is_commit(operation) and held else operation
            links.append(self._link(named, until - since))
            if not held or before is None:
                return agent, place, links
            operation, until = before, since

    def _before(self, operation: Operation) -> Operation | None:
        """The operation before it in its queue, if it has one."""
        if operation.queue is None:
            return None
        queue = self.queues[operation.queue]
        place = next(n for n, one in enumerate(queue) if one.number == operation.number)
        return queue[place - 1] if place else None

    def _link(self, operation: Operation, cycles: float) -> Link:
        agent, place = self.issued[operation.number]
        step = self.replay.ran[agent][place][2]
        words = operation.name.split(".")
        at = step.first
        for index in range(step.first, step.first + step.count):
            one = self.costs.instructions[index]
            if [one.opcode, *one.modifiers][: len(words)] == words:
                at = index
        return Link(cycles, f"waits for {short(operation.name)}", agent, at)


def _is_commit(operation: Operation) -> bool:
    return ".commit" in operation.name


def _stall(step: Step, is_loading: bool) -> str:
    if step.sectors_read and is_loading:
        return LOADS
    return SHARED if step.wavefronts else SPECIAL


_FINER = ("sync", "aligned", "weak", "global", "shared")


def short(name: str) -> str:
    """An instruction's name without the finer points: `cp.async.bulk.tensor`."""
    words = []
    for word in name.split("."):
        if "::" in word or word in _FINER or word[:1].isdigit():
            break
        words.append(word)
    return ".".join(words)
