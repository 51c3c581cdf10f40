"""A row's drawing: its bars, and the arrows to and from it, as lines of SVG.

1200 units wide. Bars that cannot be distinguished are drawn as one, so that the file stays small
however long the launch was.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from xml.sax.saxutils import escape

from kernelpack.emulator.trace import Position
from kernelpack.verify.timeline.bars import Bar, Kind
from kernelpack.verify.timeline.chart import Arrow, Row
from kernelpack.verify.timeline.ticks import STEPS, Ticks

WIDTH, LEFT, RIGHT = 1200, 180, 16
HEADER, GAP = 24, 4
TALL, LOW, STRIP = 15, 11, 3.5
"""Heights of bars: of a warp or a pipe, of copies, of a warp's own operations."""
ARROWS_LIMIT = 400
"""More arrows than this hide the bars; then those of issues are left out, then all."""
_NARROW, _NEAR, _NOTCH, _TITLED = 2, 0.7, 0.5, 3
_LETTER = 5.4
"""Width of a letter of a bar's name."""

COLOURS = {
    Kind.RUN: "#2f6db3",
    Kind.MBARRIER: "#f6d588",
    Kind.MEET: "#dcdfe5",
    Kind.MULTIPLY: "#7d4fb8",
    Kind.COMMIT: "#c8a6ea",
    Kind.LOAD: "#2a9d6a",
    Kind.STORE: "#1d7f91",
    Kind.REMOTE: "#dd7430",
    Kind.TENSOR: "#c0478f",
    Kind.OTHER: "#8b919b",
}
_PALE = {Kind.MBARRIER, Kind.MEET, Kind.COMMIT}
"""Kinds whose names are dark."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row is drawn."""

    row: Row
    y: float

    @property
    def bar_height(self) -> float:
        """A pipe's is as tall as a warp's; copies have many rows, so theirs are low."""
        return LOW if self.row.note and not self.row.is_warp else TALL

    @property
    def height(self) -> float:
        """With the strip of a warp's own operations and the gap to the next row."""
        return self.bar_height + GAP + (STRIP if self.row.is_warp else 0)

    @property
    def middle(self) -> float:
        """Where arrows begin and end."""
        return self.y + self.bar_height / 2


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the ticks from `begin` to `end` are."""

    begin: int
    end: int
    ticks: Ticks = STEPS

    def shows(self, begin: int, end: int) -> bool:
        """Whether any of that is between the first and the last step."""
        return begin <= self.end and end >= self.begin

    def x(self, step: float) -> float:
        """Where a step is; those outside are at the edge."""
        inside = min(max(step, self.begin), self.end) - self.begin
        return LEFT + inside * (WIDTH - LEFT - RIGHT) / max(self.end - self.begin, 1)


def places(rows: Sequence[Row], shown: Collection[Position], top: float) -> Iterator[Place]:
    """The rows of some CTAs, one below the other; above each CTA's is room for its name."""
    y, last = top, None
    for row in rows:
        if row.cta not in shown:
            continue
        if row.cta != last:
            y, last = y + HEADER, row.cta
        place = Place(row, y)
        y += place.height
        yield place


def row(place: Place, scale: Scale) -> Iterator[str]:
    """A row: its ground, its name, its bars."""
    drawn, y, size = place.row, place.y, WIDTH - LEFT - RIGHT
    yield f'<rect x="{LEFT}" y="{y:g}" width="{size}" height="{place.bar_height:g}" class="b"/>'
    base, right = place.middle + 4, LEFT - 10
    yield f'<text x="16" y="{base:g}">{escape(drawn.name)}</text>'
    if drawn.note:
        note = escape(drawn.note)
        yield f'<text x="{right}" y="{base:g}" class="s" text-anchor="end">{note}</text>'
    for bar in _merged(drawn.bars, scale):
        yield from _bar(bar, scale, y, place.bar_height)
    for bar in _merged(drawn.own, scale):
        yield from _bar(bar, scale, y + place.bar_height + 0.5, STRIP)


def _merged(bars: Iterable[Bar], scale: Scale) -> Iterator[Bar]:
    """Bars of a kind that cannot be distinguished, as one."""
    last: Bar | None = None
    for bar in (bar for bar in bars if scale.shows(bar.begin, bar.end)):
        if last and _blur(last, bar, scale):
            name = last.name if last.name == bar.name else f"{last.name} …"
            last = replace(last, end=max(last.end, bar.end), name=name.replace("… …", "…"))
            continue
        if last:
            yield last
        last = bar
    if last:
        yield last


def _blur(last: Bar, bar: Bar, scale: Scale) -> bool:
    """Whether two bars are of a kind, side by side, and one of them too narrow to be seen."""
    narrow = min(scale.x(one.end) - scale.x(one.begin) for one in (last, bar)) < _NARROW
    near = scale.x(bar.begin) - scale.x(last.end) < _NEAR
    return last.kind is bar.kind and narrow and near


def _bar(bar: Bar, scale: Scale, y: float, height: float) -> Iterator[str]:
    x = scale.x(bar.begin)
    width = max(scale.x(bar.end) - x - _NOTCH, 1)
    when = f"{scale.ticks.many} {bar.begin} to {bar.end}"
    title = f"<title>{escape(bar.name)}, {when}</title>"
    yield (
        f'<rect x="{x:.1f}" y="{y:g}" width="{width:.1f}" height="{height:g}" '
        f'class="{bar.kind.name}"' + (f">{title}</rect>" if width >= _TITLED else "/>")
    )
    if height > STRIP and bar.kind is not Kind.RUN and len(bar.name) * _LETTER + 6 < width:
        look = "n" if bar.kind in _PALE else "w"
        base = y + height / 2 + 3.3
        yield f'<text x="{x + 4:.1f}" y="{base:g}" class="{look}">{escape(bar.name)}</text>'


def arrows(found: Iterable[Arrow], rows: Iterable[Place], scale: Scale) -> Iterator[str]:
    """The arrows between rows that are shown, as many as leave the bars to be seen."""
    at = {place.row.key: place for place in rows}
    shown = [
        arrow
        for arrow in found
        if {arrow.source, arrow.target} <= at.keys()
        and scale.begin <= arrow.begin <= arrow.end <= scale.end
    ]
    for kept in (shown, [arrow for arrow in shown if arrow.wakes and arrow.bar]):
        if len(kept) <= ARROWS_LIMIT:
            yield from (_arrow(arrow, at[arrow.source], at[arrow.target], scale) for arrow in kept)
            return


def _arrow(arrow: Arrow, source: Place, target: Place, scale: Scale) -> str:
    x1, x2, y1, y2 = scale.x(arrow.begin), scale.x(arrow.end), source.middle, target.middle
    bend = min(max((x2 - x1) / 2, 4), 30)
    way, look = f"V{y2:g}", "i"
    if arrow.wakes:
        way, look = f"C{x1 + bend:.1f} {y1:g} {x2 - bend:.1f} {y2:g} {x2:.1f} {y2:g}", "k"
    return f'<path d="M{x1:.1f} {y1:g}{way}" class="{look} {arrow.kind.name}"/>'
