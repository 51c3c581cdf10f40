"""A warp's steps with their costs, those that only compute joined: what a replay runs through."""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from kernelpack.predict.blocks import Cost, Costs
from kernelpack.predict.recording import Recording, Step

MOST_SLOTS = 48
"""Issue slots of joined steps: more would keep a scheduler's other warps waiting for too long."""

Piece = tuple[Step, Cost]


class Pieces:
    """The pieces of recordings, each worked out once; equal ones are one object.

    Args:
        costs: of the entry's blocks.

    """

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.joined: dict[tuple[int, int, int, int], Piece] = {}
        self.known: dict[int, dict[int, list[Piece]]] = {}
        self.kept: list[Recording] = []

    def of(self, recording: Recording) -> dict[int, list[Piece]]:
        """By agent."""
        if id(recording) not in self.known:
            self.kept.append(recording)
            self.known[id(recording)] = {
                agent: list(self._join(track.steps)) for agent, track in recording.tracks.items()
            }
        return self.known[id(recording)]

    def _join(self, steps: Iterable[Step]) -> Iterator[Piece]:
        last: Piece | None = None
        for step in steps:
            piece = step, self.costs.of(step.first, step.count)
            if last and _computes(piece) and last[1].slots + piece[1].slots <= MOST_SLOTS:
                last = self._both(last, piece)
                continue
            if last:
                yield last
            last = piece if _computes(piece) else None
            if last is None:
                yield piece
        if last:
            yield last

    def _both(self, last: Piece, piece: Piece) -> Piece:
        (a, first), (b, after) = last, piece
        key = id(a), id(first), id(b), id(after)
        if key not in self.joined:
            self.joined[key] = Step(a.first, a.count + b.count), first.then(after)
        return self.joined[key]


@lru_cache(maxsize=4)
def pieces_of(costs: Costs) -> Pieces:
    """Those of an entry; kept for the next replay of the same recordings."""
    return Pieces(costs)


def _computes(piece: Piece) -> bool:
    """Whether a step touches nothing but registers."""
    step, cost = piece
    touches = step.awaits or step.issues or step.releases or step.wavefronts or step.sectors_read
    alone = cost.loads or cost.mark or cost.ends
    return not (touches or step.before or step.sectors_written or alone)
