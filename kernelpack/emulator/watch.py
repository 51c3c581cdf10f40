"""Who watches a run from outside: how far it is, and where every warp was if it stops."""

from collections.abc import Callable
from typing import Protocol


class Watch(Protocol):
    """Looks at a run now and then; may end it by raising."""

    def look(self, steps: int, place: Callable[[], str]) -> None:
        """Between two rounds, after so many warp instructions; `place` says what runs now."""

    def again(self, why: str) -> None:
        """The Python engine runs it from its start: the compiled one does not, or gave up."""

    def stopped(self, steps: int, stands: tuple[str, ...]) -> None:
        """The run was stopped by somebody; where every warp is, those that are alike once."""
