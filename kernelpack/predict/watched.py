"""Watches the clusters of a recording: ends one that does not end, shows the others on.

The emulator's own limit would do, but what goes beyond it is run once more by the Python engine,
which says where it was: with so many warp instructions, for hours.
"""

from collections.abc import Callable

from kernelpack.emulator.faults import StepLimit
from kernelpack.emulator.watch import Watch

MOST_STEPS = 1 << 30
"""Warp instructions of a cluster after which it counts as endless: minutes of the compiled engine.
"""


class Watched:
    """A watch that ends a run.

    Args:
        most: warp instructions that a cluster may run.
        watch: is shown the run too.

    """

    def __init__(self, most: int, watch: Watch | None) -> None:
        self.most, self.watch = most, watch

    def look(self, steps: int, place: Callable[[], str]) -> None:
        """Let the run go on.

        Raises:
            StepLimit: it has had its time.

        """
        if steps > self.most:
            raise StepLimit(
                f"more than {self.most} warp instructions in a cluster",
                where=place(),
                hint="an endless loop, or a limit too low for this launch",
            )
        if self.watch:
            self.watch.look(steps, place)

    def again(self, why: str) -> None:
        """Pass it on."""
        if self.watch:
            self.watch.again(why)

    def stopped(self, steps: int, stands: tuple[str, ...]) -> None:
        """Show on where the warps were."""
        if self.watch:
            self.watch.stopped(steps, stands)
