"""How long work shows itself: a bar on a terminal, a plain line now and then elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from kernelpack.cli import console

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

SECONDS_BETWEEN_LINES = 5.0


class Told(Protocol):
    """What is told when a piece of work is done."""

    @property
    def variant_id(self) -> str:
        """The variant it is about."""


class Watcher(Protocol):
    """Whoever watches: a build's progress, and a verification's."""

    def begin(self, total: int) -> None:
        """So many will be told of."""

    def tell(self, outcome: Told) -> None:
        """One is done."""


@contextmanager
def watch() -> Iterator[Watcher]:
    """The progress that suits stderr."""
    if sys.stderr.isatty():
        with _bar() as progress:
            yield progress
    else:
        yield Lines()


class Lines:
    """A line every few seconds: `12/126 lora_shrink_qkv[…]`."""

    def __init__(self) -> None:
        self._total, self._done, self._spoke = 0, 0, time.monotonic()

    def begin(self, total: int) -> None:
        """So many will be told of."""
        self._total = total

    def tell(self, outcome: Told) -> None:
        """One is done."""
        self._done += 1
        now = time.monotonic()
        if now - self._spoke >= SECONDS_BETWEEN_LINES:
            self._spoke = now
            console.say(f"{self._done}/{self._total} {outcome.variant_id}")


@contextmanager
def _bar() -> Iterator[Watcher]:
    from rich import progress  # noqa: PLC0415 - a bar alone needs it
    from rich.console import Console  # noqa: PLC0415

    columns = (
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.description}", markup=False),  # ids have brackets
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield _Bar(bar)


class _Bar:
    def __init__(self, bar: "RichProgress") -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None)

    def begin(self, total: int) -> None:
        self._bar.update(self._task, total=total)

    def tell(self, outcome: Told) -> None:
        self._bar.update(self._task, advance=1, description=outcome.variant_id[-60:])
