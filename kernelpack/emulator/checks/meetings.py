"""When the lanes of a warp met last, and which of them fenced (PTX ISA 9.7.13.2, 9.7.13.4)."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH = 32
_PAIRS: NDArray[np.int64] = np.zeros((WIDTH, WIDTH), np.int64)
"""No two lanes have met."""


@dataclass(frozen=True, slots=True)
class Met:
    """When the lanes of a warp met last, when they learned of others, when one of them fenced."""

    met: int = 0
    """When all lanes met."""
    pairs: NDArray[np.int64] = field(default_factory=lambda: _PAIRS)
    """[a, b]: up to when lane a knows of lane b, where only some lanes met since."""
    heard: int = 0
    fence: int = 0
    fenced: NDArray[np.int64] = field(default_factory=lambda: np.zeros(WIDTH, np.int64))
    """Per lane: up to when its writes are fenced, by itself or by one that it met afterwards."""

    def knows(self, lanes: NDArray[Any], others: NDArray[Any]) -> NDArray[np.int64]:
        """Up to when lanes know of what others did."""
        known: NDArray[np.int64] = np.maximum(self.met, self.pairs[lanes, others])
        return known

    def known_to(self, lanes: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Up to when some lanes together know of each lane."""
        known: NDArray[np.int64] = np.maximum(self.met, self.pairs[lanes].max(axis=0, initial=0))
        return known

    def joined(self, lanes: NDArray[np.bool_], now: int) -> "Met":
        """Some lanes meet: each knows what any of them knew, and of all they did so far."""
        known = self.pairs[lanes].max(axis=0)
        pairs = self.pairs.copy()
        pairs[lanes] = np.where(lanes, now, known)
        return replace(self, pairs=pairs)


class Meetings:
    """Every warp's, by agent."""

    def __init__(self) -> None:
        self.warps: dict[int, Met] = {}

    def of(self, agent: int) -> Met:
        """Those of a warp."""
        return self.warps.get(agent) or Met()

    def meet(self, agent: int, lanes: NDArray[np.bool_] | None, now: int) -> None:
        """Lanes of a warp meet, all of them where none are given."""
        warp = self.of(agent)
        self.warps[agent] = replace(warp, met=now) if lanes is None else warp.joined(lanes, now)

    def hear(self, agent: int, now: int, *, meet: bool) -> None:
        """All lanes learn of other warps, and `meet` there or not."""
        warp = self.of(agent)
        self.warps[agent] = replace(warp, met=now if meet else warp.met, heard=now)

    def fence(self, agent: int, lanes: NDArray[np.bool_], now: int) -> None:
        """Some lanes fence what they wrote, and what the others wrote before all met."""
        warp = self.of(agent)
        fenced = np.where(lanes, now, np.maximum(warp.fenced, warp.known_to(lanes)))
        self.warps[agent] = replace(warp, fence=now, fenced=fenced)
