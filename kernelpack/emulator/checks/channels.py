"""Releases to a channel by agent: the agent decides who may know of them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kernelpack.emulator.events import Channel, Scope

Clock = NDArray[np.int64]
"""Rows of clocks, a column for each slot of an agent: see `checks.clocks`."""
Fences = dict[str | Scope, Clock]
"""Orderings by fences, a row each, and never changed: by kind of memory up to where generic
accesses come before async ones; by scope what a relaxed release makes known that far."""
ANY = -1
"""Whatever CTA."""
Source = tuple[Scope | None, int]
"""How far a release reaches, None for that of a unit, and the CTA it came from."""
_KEPT = 32_768  # a ring of stages may wait long for its reader


def join(a: Clock, b: Clock, first: int = 0) -> Clock:
    """A copy of `a`, in which the rows from `first` on are the later of both, entry by entry."""
    return learn(a.copy(), b, first)


def learn(mine: Clock, b: Clock, first: int = 0) -> Clock:
    """A clock that is nobody else's, joined in place; a wider one where `b` knows of more."""
    width = b.shape[1]
    if mine.shape[1] < width:
        wider = np.zeros((len(mine), width), np.int64)
        wider[:, : mine.shape[1]] = mine
        mine = wider
    rows = mine[first:, :width]
    np.maximum(rows, b[first:], out=rows)
    return mine


def join_fences(a: Fences, b: Fences) -> Fences:
    """The later of both, kind by kind; neither is changed."""
    if not a or a is b:
        return b
    joined = dict(a)
    for kind, clock in b.items():
        mine = joined.get(kind)
        if mine is not clock:
            joined[kind] = clock if mine is None else join(mine, clock)
    return joined


class Channels:
    """The contents of every channel that somebody may still acquire."""

    def __init__(self) -> None:
        self._contents: dict[Channel, dict[Source, tuple[Clock, Fences]]] = {}

    def put(self, channel: Channel, source: Source, clock: Clock, fences: Fences) -> None:
        """Add what a source released."""
        content = self._contents.pop(channel, None)
        if content is None:
            content = {}
        before = content.get(source)
        if before is None:
            content[source] = clock.copy(), fences
        else:
            content[source] = learn(before[0], clock), join_fences(before[1], fences)
        self._contents[channel] = content
        if len(self._contents) > _KEPT:
            del self._contents[next(iter(self._contents))]

    def get(self, channel: Channel) -> Iterator[tuple[Source, Clock, Fences]]:
        """The releases of each source."""
        for source, (clock, fences) in self._contents.get(channel, {}).items():
            yield source, clock, fences
