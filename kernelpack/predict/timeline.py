"""A replay as a timeline whose steps are nanoseconds: what pictures and traces are drawn from.

It shows the first cluster of the replay.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kernelpack.emulator.ptx.syntax import Instruction
from kernelpack.emulator.trace import Cause, Position, Run, Timeline, Unit, Warp
from kernelpack.emulator.trace import Operation as Shown
from kernelpack.emulator.trace import Wait as Stood
from kernelpack.predict.recording import Operation, Recording, Step, Track
from kernelpack.predict.replay import Replay, Wait
from kernelpack.spec.launch import Dim3, Plan

TOGETHER = 2
"""Steps with no more nanoseconds between them are drawn as one."""
_WAITING = {
    "mbarrier": "mbarrier",
    "bar": "other warps",
    "barrier": "other warps",
    "cp": "its copies",
    "wgmma": "its wgmma",
    "tcgen05": "its tensor memory",
}


def timeline(
    replay: Replay, plan: Plan, instructions: Sequence[Instruction], clock_ghz: float
) -> Timeline:
    """The timeline of a replay.

    Args:
        replay: as `Estimate` has it.
        plan: the launch, with its cluster.
        instructions: the entry's body.
        clock_ghz: at which its cycles pass.

    """
    made = _Made(replay, instructions, clock_ghz, _positions(replay.recording, plan))
    tracks = replay.recording.tracks.values()
    warps = tuple(made.warp(track) for track in tracks if track.agent in replay.ran)
    operations = tuple(made.operations())
    ends = [run.end for warp in warps for run in warp.runs] + [one.done for one in operations]
    return Timeline(
        steps=max(ends, default=0),
        warps=warps,
        units=tuple(made.units.values()),
        operations=operations,
    )


def _positions(recording: Recording, plan: Plan) -> dict[int, Position]:
    """CTA → its place in the grid."""
    cluster, grid = plan.cluster, plan.grid
    counts = Dim3(grid.x // cluster.x, grid.y // cluster.y, grid.z // cluster.z)
    first = _place(recording.number, counts)
    found = {}
    for rank, cta in enumerate(recording.ctas):
        within = _place(rank, cluster)
        x, y, z = (f * c + w for f, c, w in zip(first, cluster, within, strict=True))
        found[cta] = x, y, z
    return found


def _place(number: int, sides: Dim3) -> Position:
    """A number as coordinates, x fastest."""
    rest, x = divmod(number, sides.x)
    z, y = divmod(rest, sides.y)
    return x, y, z


@dataclass(slots=True)
class _Made:
    """The parts of a timeline."""

    replay: Replay
    instructions: Sequence[Instruction]
    clock_ghz: float
    positions: dict[int, Position]
    units: dict[tuple[Position, str], Unit] = field(default_factory=dict)
    rows: dict[tuple[int, int], int] = field(init=False)
    """CTA and channel → the row of the copies that release it."""

    def __post_init__(self) -> None:
        self.rows = {}
        free: dict[int, list[float]] = defaultdict(list)
        spans = sorted(_filled(self.replay).items(), key=lambda each: each[1])
        for (cta, channel), (begin, end) in spans:
            ends = free[cta]
            row = next((n for n, last in enumerate(ends) if last <= begin), len(ends))
            ends[row:] = [end, *ends[row + 1 :]]
            self.rows[cta, channel] = row

    def warp(self, track: Track) -> Warp:
        """A warp: what it ran, and what it stood still for."""
        ran = self.replay.ran[track.agent]
        counts: Counter[int] = Counter()
        for _, _, step in ran:
            counts[step.first] += step.count
        waits = [wait for wait in self.replay.waits if wait.agent == track.agent]
        return Warp(
            agent=track.agent,
            cta=self.positions[track.cta],
            index=track.index,
            runs=tuple(self._runs(ran)),
            waits=tuple(self._wait(wait, ran) for wait in waits),
            counts=tuple(sorted(counts.items())),
        )

    def operations(self) -> Iterator[Shown]:
        """The operations in order, each on the unit that does it."""
        tracks = self.replay.recording.tracks
        for number, (begin, end) in sorted(self.replay.spans.items()):
            operation = self.replay.recording.operations[number]
            unit = self._unit(operation, tracks[operation.warp])
            yield Shown(
                number=number,
                label=operation.name,
                unit=unit.agent,
                issuer=operation.warp,
                issued=self._ns(begin),
                done=self._ns(end),
                ordered=operation.queue is not None,
            )

    def _ns(self, cycles: float) -> int:
        return round(cycles / self.clock_ghz)

    def _runs(self, ran: Sequence[tuple[float, float, Step]]) -> Iterator[Run]:
        """Steps that follow each other at once are one run, named by the longest of them."""
        begin = end = at = longest = -1
        for first, last, step in ran:
            since, until = self._ns(first), self._ns(last)
            if begin >= 0 and since - end > TOGETHER:
                yield Run(begin=begin, end=end, at=at)
                begin, longest = -1, -1
            begin = since if begin < 0 else begin
            if until - since > longest:
                longest, at = until - since, step.first
            end = max(end, until)
        if begin >= 0:
            yield Run(begin=begin, end=end, at=at)

    def _wait(self, wait: Wait, ran: Sequence[tuple[float, float, Step]]) -> Stood:
        place = bisect_left(ran, wait.end, key=lambda each: each[0])
        step = ran[min(place, len(ran) - 1)][2]
        cause, operations = wait.cause, self.replay.recording.operations
        agent = cause.agent
        if cause.operation in operations:
            operation = operations[cause.operation]
            agent = self._unit(operation, self.replay.recording.tracks[operation.warp]).agent
        at, what = self._waiting(step)
        return Stood(
            begin=self._ns(wait.begin),
            end=self._ns(wait.end),
            what=what,
            at=at,
            cause=Cause(agent=agent, step=self._ns(wait.end), operation=cause.operation),
        )

    def _waiting(self, step: Step) -> tuple[int, str]:
        """The instruction that waits, and what it waits for."""
        for at in range(step.first, min(step.first + step.count, len(self.instructions))):
            one = self.instructions[at]
            is_wait = one.opcode in ("bar", "barrier") or any("wait" in m for m in one.modifiers)
            if is_wait and one.opcode in _WAITING:
                line = one.place.partition(" ")[0].rpartition(":")[2]
                return at, f"{_WAITING[one.opcode]} at line {line}: {one.place}"
        return step.first, "others"

    def _unit(self, operation: Operation, track: Track) -> Unit:
        """The unit that does an operation: a pipe, or copies that are waited for together."""
        cta = self.positions[track.cta]
        name = self._name(operation, track)
        if (cta, name) not in self.units:
            number = -1 - len(self.units)
            self.units[cta, name] = Unit(agent=number, cta=cta, name=name)
        return self.units[cta, name]

    def _name(self, operation: Operation, track: Track) -> str:
        name = operation.name
        if name.startswith(("tcgen05.mma", "tcgen05.commit", "tcgen05.cp")):
            return "the tensor pipe"
        if operation.queue is not None or operation.global_written:
            return f"operations of warp {track.index}"
        row = self.rows.get((track.cta, operation.releases[0])) if operation.releases else None
        return "the copies" if row is None else f"the copies {row + 1}"


def _filled(replay: Replay) -> dict[tuple[int, int], tuple[float, float]]:
    """CTA and channel → from when to when copies are in flight that release it."""
    recording = replay.recording
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for number, (begin, end) in replay.spans.items():
        operation = recording.operations[number]
        if operation.queue is None and operation.releases and not operation.global_written:
            key = recording.tracks[operation.warp].cta, operation.releases[0]
            first, last = found.get(key, (begin, end))
            found[key] = min(first, begin), max(last, end)
    return found
