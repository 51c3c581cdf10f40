"""The picture for documents."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from kernelpack.verify.timeline.picture import Caption, svg
from kernelpack.verify.timeline.shapes import ARROWS_LIMIT
from tests.verify.timeline.made import drawn, timeline, warp

CAPTION = Caption(title="a < b", lines=("x[tile=1]", "m=4"))
SVG = "{http://www.w3.org/2000/svg}"


def elements(text, name):
    return list(ET.fromstring(text).iter(SVG + name))


def words(text):
    return [element.text for element in elements(text, "text")]


def bars(text, kind):
    return [e for e in elements(text, "rect") if e.get("class") == kind and e.get("width") != "12"]


def test_rows_have_names():
    """Roles, numbers, units and what was run are in it."""
    found = words(svg(drawn(), CAPTION))
    assert {"a < b", "x[tile=1]", "m=4", "load", "warp 0", "tensor pipe", "on 0x400"} <= {*found}


def test_time_is_explained():
    """The picture itself says that time is no time."""
    assert "it shows order and overlap, not nanoseconds" in svg(drawn(), CAPTION)


def test_the_legend_names_what_is_there():
    """A kind that is not in the picture is not in its legend."""
    found = words(svg(drawn(), CAPTION))
    assert "waits for an mbarrier" in found
    assert "store to another CTA" not in found


def test_bars_are_to_scale():
    """The copy of 25 steps of 50 is half as wide as the rows."""
    text = svg(drawn(), CAPTION)
    (copy,) = bars(text, "LOAD")
    assert float(copy.get("width")) == pytest.approx(
        float(bars(text, "b")[0].get("width")) / 2, 1e-2
    )


def test_a_window():
    """Only bars in the window are drawn, and cut at its edges."""
    text = svg(drawn(), CAPTION, window=(41, 50))
    assert [len(bars(text, kind)) for kind in ("RUN", "MBARRIER", "LOAD")] == [1, 0, 0]


def test_arrows():
    """Four arrows: two issues, two ends of waits."""
    looks = [path.get("class") for path in elements(svg(drawn(), CAPTION), "path")]
    assert sorted(look for look in looks if look != "g") == [
        "i LOAD", "i MULTIPLY", "k LOAD", "k MULTIPLY",
    ]  # fmt: skip


def test_many_arrows_hide_nothing():
    """With too many arrows those of issues are left out."""
    chart = drawn()
    many = replace(chart, arrows=chart.arrows[:1] * ARROWS_LIMIT + chart.arrows[1:])
    looks = [path.get("class") for path in elements(svg(many, CAPTION), "path")]
    assert sorted(look for look in looks if look != "g") == ["k LOAD", "k MULTIPLY"]


def test_a_long_launch_makes_a_small_picture():
    """Bars that cannot be distinguished are one."""
    runs = [(4 * step, 4 * step + 2) for step in range(50_000)]
    long = replace(timeline(), warps=(warp(0, 0, runs),), units=(), operations=(), steps=200_000)
    assert len(svg(drawn(long), CAPTION)) < 10_000


def test_ctas():
    """As many CTAs as asked for, and how many there were."""
    made = timeline()
    two = replace(made, warps=(*made.warps, warp(8, 0, [(45, 48)], cta=(1, 0, 0))))
    one, both = (svg(drawn(two), CAPTION, ctas=ctas) for ctas in (1, 2))
    assert "x[tile=1] · 1 of 2 CTAs" in words(one)
    assert {"CTA (0, 0, 0)", "CTA (1, 0, 0)", "x[tile=1]"} <= {*words(both)}


def test_nothing_happened():
    """A launch of no step has a picture too."""
    empty = replace(timeline(), warps=(), units=(), operations=(), steps=0)
    assert "a < b" in words(svg(drawn(empty), CAPTION))


def test_names_are_not_markup():
    """A name with `<` is shown, not read."""
    assert "a &lt; b" in svg(drawn(), CAPTION)
