"""What a critical path went to, in words: its links summed by what they were and where."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from kernelpack.emulator.ptx.syntax import Instruction
from kernelpack.predict.blocks import Costs
from kernelpack.predict.path import OF_WARPS, Link, path
from kernelpack.predict.replay import Replay


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A part of a path: `54 %: waits for cp.async.bulk.tensor at kernel.cu:120`."""

    part: float
    what: str
    place: str

    def __str__(self) -> str:
        """In words, for people."""
        where = f" at {self.place}" if self.place else ""
        return f"{100 * self.part:.0f} %: {self.what}{where}"


def shares(replay: Replay, costs: Costs) -> tuple[Share, ...]:
    """What a replay's path went to, the largest share first."""
    links = list(path(replay, costs))
    tracks = replay.recording.tracks
    whole = sum(link.cycles for link in links) or 1.0
    grouped: dict[tuple[str, str], list[Link]] = defaultdict(list)
    for link in links:
        is_own = link.what in OF_WARPS
        place = "" if is_own else _place(costs.instructions, link.at)
        group = f" of {_four(tracks[link.warp].index)}" if is_own else ""
        grouped[link.what + group, place].append(link)
    found = [
        Share(
            part=sum(link.cycles for link in each) / whole,
            what=what,
            place=place or _busiest(each, costs.instructions),
        )
        for (what, place), each in grouped.items()
    ]
    return tuple(sorted(found, key=lambda share: -share.part))


def _four(index: int) -> str:
    """The warpgroup of a warp, by its warps."""
    first = index // 4 * 4
    return f"warps {first} to {first + 3}"


def _place(instructions: Sequence[Instruction], at: int) -> str:
    """The source line of an instruction; empty where there is none."""
    if not 0 <= at < len(instructions) or instructions[at].location is None:
        return ""
    return instructions[at].place


def _busiest(links: Sequence[Link], instructions: Sequence[Instruction]) -> str:
    """The source line to which most of the cycles went."""
    cycles: dict[str, float] = defaultdict(float)
    for link in links:
        cycles[_place(instructions, link.at)] += link.cycles
    return max(cycles, key=cycles.__getitem__)
