"""C++'s comments, strings and lines, as far as they matter here."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelpack.render.code import whole_line_breaks, without_comments, without_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a // b\nc", "a  \nc"),
        ("a /* b\nc */ d", "a  \n d"),
        ('"// a"', '"// a"'),
        ("'\"' // a", "'\"'  "),
        ("1'000 // a", "1'000  "),
        ('R"(/* a)" /* b */', 'R"(/* a)"  '),
        ('R"x()" // )x" // a', 'R"x()" // )x"  '),
        ("// a \\\n b\nc", " \n\nc"),
        ("/* never", " "),
        ('"a \\" // b"', '"a \\" // b"'),
    ],
)
def test_without_comments(text, expected):
    """Comments are gone, what only looks like one stays, and so do the lines."""
    assert expected == without_comments(text)


def test_without_words():
    """Strings and characters are gone too; a digit separator is no character."""
    assert without_words("f(\"a;\", ';', 1'000);") == "f( ,  , 1'000);"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\nb", {0, 1}),
        ("a \\\nb\nc", {0, 2}),
        ("/*\n\n*/\nx", {0, 3}),
        ('R"(\n)"\nx', {0, 2}),
    ],
)
def test_whole_line_breaks(text, expected):
    """A directive may come before every line that begins one of the preprocessor's."""
    assert expected == whole_line_breaks(text)


@settings(deadline=None)
@given(st.text(alphabet="ab\"'/*\\R()\n ", max_size=60))
def test_lines_are_kept(text):
    """Whatever is taken out, a line stays where it is."""
    assert text.count("\n") == without_comments(text).count("\n") == without_words(text).count("\n")
