"""Watches a launch: says how far a long one is, stops one that nobody waits for any more."""

import time
from collections.abc import Callable

from kernelpack import process
from kernelpack.emulate.names import shorten
from kernelpack.emulator.faults import EmulationError

TELL_SECONDS = 5.0
"""Between two lines that say how far a launch is."""
_LOOK_SECONDS = 0.1
SLOWER = "the Python engine runs it from its start, 20 to 60 times as slowly"


class Abandoned(EmulationError):  # noqa: N818 - nobody erred: a GPU, too, drops the kernels of a program that ends
    """The program that launched it has ended."""


class Watching:
    """One launch's watch."""

    def __init__(
        self, entry: str, tell: Callable[[str], None], is_wanted: Callable[[], bool]
    ) -> None:
        self.entry, self.tell, self.is_wanted = shorten(entry), tell, is_wanted
        self.begin = self.told = self.looked = time.monotonic()
        self.why = ""
        """The reason why the compiled engine does not run it, until it was said."""

    def look(self, steps: int, place: Callable[[], str]) -> None:
        """Say how far it is, every few seconds.

        Raises:
            Abandoned: the program has ended.
            SystemExit: we were asked to end.
        """
        now = time.monotonic()
        if now - self.looked < _LOOK_SECONDS:
            return
        self.looked = now
        process.obey()
        if not self.is_wanted():
            raise Abandoned("the program that launched it has ended")
        if now - self.told >= TELL_SECONDS:
            self.told = now
            seconds = f"{now - self.begin:.0f} s"
            if self.why:
                self.tell(f"{self.entry}: {SLOWER}: {self.why}")
                self.why = ""
            self.tell(f"{self.entry}: {steps} warp instructions in {seconds}; now {place()}")

    def again(self, why: str) -> None:
        """Remember why it takes longer, for whoever waits."""
        self.why = why

    def stopped(self, steps: int, stands: tuple[str, ...]) -> None:
        """Say where every warp was."""
        where = "\n  ".join(stands)
        self.tell(
            f"{self.entry}: stopped after {steps} warp instructions; warps are at:\n  {where}"
        )
