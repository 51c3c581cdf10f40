"""State of hardware units for a warp, a CTA, a launch or a run: one of each type.

The machine holds these states and knows nothing of them. A unit asks for its own by its type.
"""

from typing import Any, TypeVar

State = TypeVar("State")


class Units:
    """The states of units by their types."""

    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: dict[type[Any], Any] = {}

    def of(self, kind: type[State]) -> State:
        """The state of a type, made when it is first asked for."""
        state: State | None = self._states.get(kind)
        if state is None:
            state = self._states[kind] = kind()
        return state
