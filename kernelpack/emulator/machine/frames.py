"""The stack of calls of each lane of a warp (PTX ISA 7.1).

Lanes that call together share a frame. The values of a function that is already active in its
registers and parameters is kept in the frame of the call that enters it again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelpack.emulator.machine.lanes import WIDTH, Lanes

MAX_DEPTH = 512
"""Calls within each other; a GPU's stack of 1 KB a thread ends long before."""
Key = tuple[str, int]
"""A parameter by its name, and the byte in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One call: who is called, where it returns to, and where its results go."""

    callee: str
    back: int
    results: tuple[tuple[str, str], ...]
    """(the name that the callee has for a result, that of the caller)."""
    registers: Mapping[int, Lanes] = field(default_factory=dict)
    parameters: Mapping[Key, Lanes] = field(default_factory=dict)


class Stack:
    """The frames of each lane, the innermost last."""

    def __init__(self) -> None:
        self.lanes: list[list[Frame]] = [[] for _ in range(WIDTH)]

    def is_active(self, callee: str, lanes: list[int]) -> bool:
        """Whether any of these lanes runs the function already."""
        return any(frame.callee == callee for lane in lanes for frame in self.lanes[lane])

    def push(self, frame: Frame, lanes: list[int]) -> int:
        """Enter a function; how deep the deepest lane is now."""
        for lane in lanes:
            self.lanes[lane].append(frame)
        return max(len(self.lanes[lane]) for lane in lanes)

    def pop(self, lanes: list[int]) -> dict[Frame, list[int]]:
        """Leave the innermost function: the lanes that return together, by their frame."""
        found: dict[Frame, list[int]] = {}
        for lane in lanes:
            found.setdefault(self.lanes[lane].pop(), []).append(lane)
        return found

    @property
    def depths(self) -> tuple[int, ...]:
        """How deep each lane is."""
        return tuple(map(len, self.lanes))
