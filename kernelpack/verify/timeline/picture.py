"""A chart as an SVG for documents: rows of coloured bars, a legend, and what time means in it.

Here are the frame and the words; what is drawn of a row is in `shapes`.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from kernelpack.verify.timeline import shapes
from kernelpack.verify.timeline.bars import Kind
from kernelpack.verify.timeline.chart import Chart
from kernelpack.verify.timeline.shapes import COLOURS, WIDTH, Place, Scale

TOP, AXIS = 74, 28
_STYLE = """
text{font:12px ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2530}
.h{font-size:17px;font-weight:600}.c{font-weight:600}.s{font-size:11.5px;fill:#5b6472}
.n{font-size:9.5px;fill:#5b4a17}.w{font-size:9.5px;fill:#fff}path{fill:none}
.i{opacity:.4}.k{opacity:.75}.g{stroke:#e9ecf1}.b{fill:#f6f7f9}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """The words above the picture."""

    title: str
    lines: tuple[str, ...] = ()


Window = tuple[int, int]
"""The first and the last tick to show."""


def svg(chart: Chart, caption: Caption, *, ctas: int = 1, window: Window | None = None) -> str:
    """The picture of a chart's first `ctas` CTAs, from their start to their end or as said."""
    shown = chart.ctas[:ctas]
    places = list(shapes.places(chart.rows, shown, TOP))
    scale = Scale(*(window or _whole(places)), chart.ticks)
    bottom = places[-1].y + places[-1].height if places else TOP
    bars = [bar for place in places for bar in (*place.row.bars, *place.row.own)]
    seen = {bar.kind for bar in bars if scale.shows(bar.begin, bar.end)}
    body = [
        *_caption(caption, len(shown), len(chart.ctas)),
        *_grid(scale, bottom),
        *(line for place in places for line in shapes.row(place, scale)),
        *_headers(places),
        *shapes.arrows(chart.arrows, places, scale),
        *_legend(seen, bottom, chart.ticks.note),
    ]
    height = round(bottom + AXIS + 56)
    size = f'width="{WIDTH}" height="{height}" role="img"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {height}">',
            f"<title>{escape(caption.title)}</title>",
            f"<style>{_STYLE}{''.join(_colours())}</style>",
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            *body,
            "</svg>\n",
        ]
    )


def _colours() -> Iterator[str]:
    """Style of what is of a kind."""
    for kind, colour in COLOURS.items():
        yield f"rect.{kind.name}{{fill:{colour}}}path.{kind.name}{{stroke:{colour}}}\n"


def _whole(places: Iterable[Place]) -> Window:
    bars = [bar for place in places for bar in place.row.bars]
    return min((bar.begin for bar in bars), default=0), max((bar.end for bar in bars), default=1)


def _caption(caption: Caption, shown: int, ctas: int) -> Iterator[str]:
    yield f'<text x="16" y="27" class="h">{escape(caption.title)}</text>'
    part = "" if shown == ctas else f" · {shown} of {ctas} CTAs"
    for index, line in enumerate(caption.lines):
        more = part if index == 0 else ""
        yield f'<text x="16" y="{46 + 17 * index}" class="s">{escape(line)}{more}</text>'


def _headers(places: Sequence[Place]) -> Iterator[str]:
    last = None
    for place in places:
        if place.row.cta != last:
            last = place.row.cta
            yield f'<text x="16" y="{place.y - 7:g}" class="c">CTA {last}</text>'


def _grid(scale: Scale, bottom: float) -> Iterator[str]:
    """Vertical lines at round steps, numbered below."""
    size = _round_step((scale.end - scale.begin) / 10)
    first = -(-scale.begin // size) * size
    for step in range(first, scale.end + 1, size):
        x = scale.x(step)
        yield f'<path d="M{x:.1f} {TOP + 14}V{bottom:g}" class="g"/>'
        yield (
            f'<text x="{x:.1f}" y="{bottom + 14:g}" class="s" text-anchor="middle">{step:,}</text>'
        )
    yield f'<text x="16" y="{bottom + 14:g}" class="s">{scale.ticks.one}</text>'


def _round_step(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20, … that is not below `least`."""
    size = 1
    while True:
        for factor in (1, 2, 5):
            if factor * size >= least:
                return factor * size
        size *= 10


def _legend(seen: Collection[Kind], bottom: float, note: str) -> Iterator[str]:
    x, y = 16.0, bottom + AXIS + 12
    for kind in (kind for kind in Kind if kind in seen):
        yield f'<rect x="{x:g}" y="{y - 10:g}" width="12" height="12" class="{kind.name}"/>'
        yield f'<text x="{x + 17:g}" y="{y:g}" class="s">{kind.value}</text>'
        x += 17 + len(kind.value) * 6.1 + 18
    yield f'<text x="16" y="{y + 24:g}" class="s">{note}</text>'
