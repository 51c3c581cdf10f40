"""The warps of a warpgroup run the same `wgmma` instructions, one after the other (9.7.15.7).

Where a warp runs one that the others do not, the manual leaves open what happens. Hardware was seen
to let a warp wait alone; compute-sanitizer's synccheck never comes back from it.
"""

from collections import deque
from dataclasses import dataclass, field

from kernelpack.emulator import rules
from kernelpack.emulator.machine.warp import Warp

_WARPS = 4


@dataclass(slots=True)
class Steps:
    """Instructions that the warps of a warpgroup ran: the places from the one that is last on.

    The first of them remembers it.
    """

    places: deque[int] = field(default_factory=deque)
    dropped: int = 0
    done: list[int] = field(default_factory=lambda: [0] * _WARPS)
    is_told: bool = False
    """After the first difference nothing is in step."""


def step(warp: Warp) -> None:
    """A warp runs one of these instructions, which is the same as the others' of that number."""
    first = warp.cta.warps[warp.index // _WARPS * _WARPS]
    steps = first.units.of(Steps)
    number = steps.done[warp.index % _WARPS] - steps.dropped
    steps.done[warp.index % _WARPS] += 1
    if number == len(steps.places):
        steps.places.append(warp.at)
    elif steps.places[number] != warp.at and not steps.is_told:
        steps.is_told = True
        warp.cta.machine.misuse(
            rules.WGMMA_APART, "others of its warpgroup run another one at this turn"
        )
    if min(steps.done) > steps.dropped:
        steps.places.popleft()
        steps.dropped += 1
