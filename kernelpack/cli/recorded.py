"""Says how far the recording of a launch is, for whoever waits for a prediction."""

import time
from collections.abc import Callable

from kernelpack import process

_SECONDS = 0.2
"""Between two words: the emulator asks far more often."""


class Recorded:
    """Watches the runs of a launch's clusters, one after another.

    Args:
        tell: is given a line now and then.

    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self.clusters, self.steps = 1, 0
        self.told = time.monotonic()

    def look(self, steps: int, _place: Callable[[], str]) -> None:
        """Say which cluster it is, and how long that is by now.

        Raises:
            SystemExit: we were asked to end.

        """
        self.clusters += steps < self.steps
        self.steps = steps
        now = time.monotonic()
        if now - self.told >= _SECONDS:
            process.obey()
            self.told = now
            self.tell(f"cluster {self.clusters}, {steps:,} warp instructions")

    def again(self, why: str) -> None:
        """A recording says nothing of engines."""

    def stopped(self, steps: int, stands: tuple[str, ...]) -> None:
        """Nobody asked where the warps are."""
