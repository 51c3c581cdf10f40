"""The picture of a launch that `trace` and `predict` draw: its options, and the file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich_click as click

from kernelpack.cli import choices
from kernelpack.errors import KernelpackError
from kernelpack.verify.timeline.chart import Chart
from kernelpack.verify.timeline.picture import Caption, Window, svg

MAX_WINDOW = 32
"""Characters of a window at most; runs have fewer steps than ten digits count."""

Command = Callable[..., Any]


def options(ticks: str) -> Callable[[Command], Command]:
    """The options of a picture over `ticks`: its file, how many CTAs it shows, and which part."""

    def add(command: Command) -> Command:
        for option in (_window(ticks), _ctas, _svg):
            command = option(command)
        return command

    return add


_svg = click.option(
    "--svg",
    "picture",
    type=choices.SomePath(path_type=Path, dir_okay=False),
    help="Draw a picture.",
)
_ctas = click.option(
    "--ctas",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many CTAs the picture shows.",
)


def _window(ticks: str) -> Callable[[Command], Command]:
    shows = f"The {ticks} that the picture shows."
    return click.option("--window", metavar="FIRST:LAST", help=shows)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A picture that is asked for. `file` is None where none is."""

    file: Path | None
    ctas: int
    window: Window | None

    def draw(self, chart: Chart, caption: Caption) -> None:
        """Write the picture, if one is asked for.

        Raises:
            KernelpackError: the launch is over before the window begins, or there is no room.

        """
        if self.file is None:
            return
        if self.window and self.window[0] >= chart.steps:
            first, last = self.window
            what = (
                f"`{first}:{last}` shows nothing: the launch has {chart.steps} {chart.ticks.many}"
            )
            raise KernelpackError(what, where="--window")
        choices.write(self.file, svg(chart, caption, ctas=self.ctas, window=self.window))


def view(picture: Path | None, ctas: int, window: str | None) -> View:
    """What a person asked for.

    Raises:
        KernelpackError: the window is not two ticks in order.
        UsageError: a part is asked for of no picture.

    """
    part = _parse(window) if window else None
    if picture is None and (part or ctas != 1):
        raise click.UsageError("--ctas and --window are about a picture, which --svg draws")
    return View(file=picture, ctas=ctas, window=part)


def _parse(text: str) -> Window:
    """`700:2500` → (700, 2500)."""
    first, _, last = text.partition(":")
    is_numbers = text.isascii() and first.isdecimal() and last.isdecimal()
    if not (is_numbers and len(text) <= MAX_WINDOW and int(first) < int(last)):
        raise KernelpackError(
            f"`{text[:60]}` is not a window", where="--window", hint="such as 700:2500"
        )
    return int(first), int(last)
