"""Events of a run as words, for the checks of the core to hear them again (`replay.cpp` reads)."""

from typing import Any

import numpy as np

from kernelpack.emulator.events import (
    Access,
    Acquire,
    AgentStarted,
    Arrived,
    Began,
    Bus,
    Ended,
    Exited,
    Fenced,
    Issued,
    ProxyFence,
    Reached,
    Release,
    Swizzled,
)

_KINDS = {"shared": 0, "global": 1, "tensor": 2, "pair-use": 3, "pair-alloc": 4}
_PROXIES = {"generic": 0, "async": 1, "tensor": 2}
_USES = {"": 0, "init": 1, "use": 2, "inval": 3}
_WORD, _GRID, _OTHER = 0, 5, 8


class Recorder:
    """Listens before the checks do; they tell it of what they find."""

    def __init__(self) -> None:
        self.words: list[np.ndarray] = []
        self.count = 0
        self.first = -1
        """The number of the first event at which something was found."""
        self.rule = ""
        self._patterns: dict[Any, int] = {}
        self._numbers: dict[tuple[str, Any], int] = {}

    def found(self, rule: str) -> None:
        """A check has found something, at the event that was emitted last."""
        if self.first < 0:
            self.first, self.rule = self.count - 1, rule

    def listen(self, bus: Bus) -> None:
        """Hear of everything that the checks hear of."""
        for kind, words in (
            (AgentStarted, self._started), (Release, self._release), (Acquire, self._acquire),
            (Fenced, _fenced), (Arrived, _arrived), (ProxyFence, _proxy_fence),
            (Issued, self._issued), (Began, _began), (Ended, _ended), (Access, self._access),
            (Swizzled, self._swizzled), (Reached, _reached), (Exited, self._exited),
        ):  # fmt: skip
            bus.listen(kind, lambda event, words=words: self._note(words(event)))

    def _note(self, words: tuple[Any, ...]) -> None:
        self.words.append(np.concatenate([np.atleast_1d(word) for word in words]).astype(np.int64))
        self.count += 1

    def _number(self, of: str, thing: Any) -> int:
        return self._numbers.setdefault((of, thing), len(self._numbers))

    def _channel(self, channel: Any) -> tuple[int, int]:
        name = channel[0] if isinstance(channel, tuple) else ""
        of = {"word": _WORD, "grid": _GRID}.get(name, _OTHER)
        return of, self._number("channel", channel)

    def _unit(self, unit: Any) -> tuple[int, ...]:
        return self._number("unit", unit), _KINDS[unit.kind], unit.cells

    def _started(self, e: AgentStarted) -> tuple[Any, ...]:
        return 1, e.agent, e.is_warp, e.cta, self._number("cluster", e.cluster), e.is_alone

    def _release(self, e: Release) -> tuple[Any, ...]:
        return 2, e.agent, *self._channel(e.channel), e.relaxed, e.scope, e.tolerated

    def _acquire(self, e: Acquire) -> tuple[Any, ...]:
        return 3, e.agent, *self._channel(e.channel), e.relaxed, e.scope

    def _issued(self, e: Issued) -> tuple[Any, ...]:
        words = 7, e.operation, e.parent, e.agent, e.stage is not None
        if e.stage is None:
            return words
        behind = [self._number("kind", kind) for kind in e.stage.behind]
        pipe, kind = self._number("pipe", e.stage.pipe), self._number("kind", e.stage.kind)
        return *words, pipe, kind, len(behind), *behind

    def _access(self, e: Access) -> tuple[Any, ...]:
        unchanged = -1 if e.unchanged is None else e.unchanged()
        masks: Any = () if isinstance(e.bytes_mask, int) and e.bytes_mask == 15 else e.bytes_mask
        if isinstance(masks, int):
            masks = np.full(len(e.cells), masks)
        return (
            10, *self._unit(e.unit), e.agent, e.write, _PROXIES[e.proxy], e.atomic,
            _USES[e.mbarrier], unchanged, len(e.cells), e.cells, len(masks), masks,
        )  # fmt: skip

    def _swizzled(self, e: Swizzled) -> tuple[Any, ...]:
        pattern = self._patterns.setdefault(e.pattern, len(self._patterns))
        return 11, *self._unit(e.unit), e.write, pattern, len(e.cells), e.cells

    def _exited(self, e: Exited) -> tuple[Any, ...]:
        units = [self._unit(unit)[0] for unit in e.units]
        return 13, len(e.agents), *e.agents, len(units), *units


def _fenced(e: Fenced) -> tuple[Any, ...]:
    return 4, e.agent, e.scope, e.acquires, e.releases


def _arrived(e: Arrived) -> tuple[Any, ...]:
    return 5, e.agent, e.barrier, e.phase, e.waits


def _proxy_fence(e: ProxyFence) -> tuple[Any, ...]:
    return 6, e.agent, "shared" in e.kinds, "global" in e.kinds


def _began(e: Began) -> tuple[Any, ...]:
    return 8, e.operation, e.agent, e.ordered


def _ended(e: Ended) -> tuple[Any, ...]:
    return 9, e.operation, e.agent


def _reached(e: Reached) -> tuple[Any, ...]:
    return 12, e.agent, e.cta
