"""How long work shows itself: a bar on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from kernelpack.cli import console
from kernelpack.spec.counted import counted

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

SECONDS_BETWEEN_LINES = 5.0
SECONDS_OF_COMPILING, SECONDS_OF_PACKING = 4.0, 0.04  # an entry, about
LINES_OF_PACE = 12


class Told(Protocol):
    """The line for a finished piece of work."""

    @property
    def variant_id(self) -> str:
        """The variant it is about."""


class Watcher(Protocol):
    """Whoever watches: a build's progress, and a verification's, which packs nothing."""

    def begin(self, total: int, seconds: float = 0) -> None:
        """So many will be reported; the expected seconds, where they are known."""

    def compile(self, count: int) -> None:
        """So many of a build's are compiled; a verification compiles nothing."""

    def tell(self, outcome: Told) -> None:
        """One is done."""

    def at(self, what: str) -> None:
        """Work on the next one has come so far."""

    def pack(self) -> None:
        """All are done, and become files."""


@contextmanager
def watch() -> Iterator[Watcher]:
    """The progress that suits stderr."""
    if sys.stderr.isatty():
        with _bar() as progress:
            yield progress
    else:
        yield Lines()


class Lines:
    """A line every few seconds: `12/126, about 3 min left: lora_shrink_qkv[…]`."""

    def __init__(self) -> None:
        self._total, self._done = 0, 0
        self._spoke = time.monotonic()
        self._marks: deque[tuple[float, int]] = deque(maxlen=LINES_OF_PACE)
        """The time of the latest lines, and how many were done then."""

    def begin(self, total: int, seconds: float = 0) -> None:
        """So many will be reported; work of some seconds is announced."""
        self._total = total
        if seconds >= SECONDS_BETWEEN_LINES:
            console.say(f"0/{total}{_in_words(seconds)}")

    def compile(self, count: int) -> None:
        """Say at once how many are compiled, for the first may take a while."""
        if count * SECONDS_OF_COMPILING >= SECONDS_BETWEEN_LINES:
            console.say(f"compiling {count} of {counted(self._total, 'variant')}")

    def tell(self, outcome: Told) -> None:
        """One is done."""
        self._done += 1
        now = time.monotonic()
        if now - self._spoke >= SECONDS_BETWEEN_LINES:
            console.say(f"{self._done}/{self._total}{self._left(now)}: {outcome.variant_id}")
            self._marks.append((now, self._done))
            self._spoke = now

    def at(self, what: str) -> None:
        """Say how far the next one is, where nothing was said for long."""
        now = time.monotonic()
        if now - self._spoke >= SECONDS_BETWEEN_LINES:
            console.say(what)
            self._spoke = now

    def pack(self) -> None:
        """All are done; where their files take more than seconds, that is announced."""
        if self._total * SECONDS_OF_PACKING >= SECONDS_BETWEEN_LINES:
            console.say(f"packing {self._total} entries")

    def _left(self, now: float) -> str:
        """The rest at the pace of the latest lines: the cache gives what it has at another one."""
        if not self._marks:
            return ""
        since, done = self._marks[0]
        pace = (now - since) / (self._done - done)
        return _in_words(pace * (self._total - self._done))


def _in_words(seconds: float) -> str:
    """How long that is left, for people; nothing where it is under a minute."""
    minutes = round(seconds / 60)
    if minutes < 1:
        return ""
    if minutes < 120:
        return f", about {minutes} min left"
    return f", about {round(minutes / 60)} h left"


@contextmanager
def _bar() -> Iterator[Watcher]:
    from rich import progress  # noqa: PLC0415 - a bar alone needs it
    from rich.console import Console  # noqa: PLC0415

    columns = (
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.description}", markup=False),  # ids have brackets
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Bar(bar)


class _Bar:
    def __init__(self, bar: "RichProgress") -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None)

    def begin(self, total: int, seconds: float = 0) -> None:
        foreseen = _in_words(seconds).removeprefix(", ")
        self._bar.update(self._task, total=total, description=foreseen)

    def compile(self, count: int) -> None:
        self._bar.update(self._task, description=f"compiling {count}")

    def tell(self, outcome: Told) -> None:
        self._bar.update(self._task, advance=1, description=outcome.variant_id[-60:])

    def at(self, what: str) -> None:
        self._bar.update(self._task, description=what[-60:])

    def pack(self) -> None:
        self._bar.update(self._task, description="packing")
