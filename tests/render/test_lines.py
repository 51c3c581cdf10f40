"""Marks through the rendering, and the directives made of them."""

import pytest

from kernelpack.render.lines import Origin, mark, origin_of, origins, place


def marked(*lines: tuple[str, int, str]) -> str:
    return "\n".join(mark(name, line) + text for name, line, text in lines)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([("a", 1, "x"), ("a", 2, "y")], ['#line 1 "a"', "x", "y"]),
        ([("a", 2, "x"), ("a", 5, "y")], ['#line 2 "a"', "x", '#line 5 "a"', "y"]),
        ([("a", 1, "x"), ("b", 1, "y")], ['#line 1 "a"', "x", '#line 1 "b"', "y"]),
        ([("a", 1, "x \\"), ("a", 9, "y")], ['#line 1 "a"', "x \\", "y"]),
        (
            [("a", 1, "x \\"), ("a", 9, "y"), ("a", 10, "z")],
            ['#line 1 "a"', "x \\", "y", '#line 10 "a"', "z"],
        ),
        ([("a", 1, "/* x"), ("a", 9, "y */")], ['#line 1 "a"', "/* x", "y */"]),
        ([("a", 1, 'R"(x'), ("a", 9, 'y)"')], ['#line 1 "a"', 'R"(x', 'y)"']),
        ([("a", 1, "// /* x"), ("a", 9, "y")], ['#line 1 "a"', "// /* x", '#line 9 "a"', "y"]),
        ([("a", 1, '"/*" x'), ("a", 9, "y")], ['#line 1 "a"', '"/*" x', '#line 9 "a"', "y"]),
        ([("a", 1, "x"), ("a", 9, "")], ['#line 1 "a"', "x", ""]),
    ],
)
def test_place(lines, expected):
    """A directive comes wherever lines stop following one another, if it may."""
    assert "\n".join(expected) == place(marked(*lines))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (mark("a", 4) + mark("a", 5) + "x", "a:5"),
        (mark("a", 4) + "  " + mark("b", 1) + "x" + mark("a", 4) + ";", "b:1"),
        (mark("a", 4) + "x " + mark("b", 1) + "y", "a:4"),
    ],
)
def test_the_mark_of_what_is_seen_first(text, expected):
    """A line was written where its first visible character was."""
    (origin, line), *_ = origins(place(text), "")
    assert expected == str(origin)
    assert "\ue000" not in line


def test_a_value_of_many_lines():
    """Lines that a value brought along count as the line it was put in."""
    text = place(mark("a", 3) + "x\ny\n" + mark("a", 4) + "z")
    found = [(str(origin), line) for origin, line in origins(text, "")]
    assert found == [("a:3", "x"), ("a:3", "y"), ("a:4", "z")]


def test_origins_without_directives():
    """Until a directive says more, a text is its own."""
    assert list(origins("x\ny", "h")) == [(Origin("h", 1), "x"), (Origin("h", 2), "y")]


def test_origin_of():
    """A line of output, directives counted, is found where it was written."""
    assert origin_of('#line 7 "a"\nx\ny', "", 2) == Origin("a", 8)
