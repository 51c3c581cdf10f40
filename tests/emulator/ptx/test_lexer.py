"""How a text is cut into pieces."""

import pytest

from kernelpack.emulator.faults import PtxError
from kernelpack.emulator.ptx.lexer import (
    Lines,
    blank_comments,
    matching_brace,
    pieces,
    split_operands,
)


def test_comments_become_blanks_of_the_same_length():
    """Offsets and lines stay; a string keeps what looks like a comment."""
    text = 'a /* x\ny */ b // c\n"//d"'
    blanked = blank_comments(text)
    assert (len(text), 'a     \n     b     \n"//d"') == (len(blanked), blanked)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a, b", ["a", "b"]),
        ("{a, b}, [c+4], d|e", ["{a, b}", "[c+4]", "d|e"]),
        ("[m, {x, y}], z", ["[m, {x, y}]", "z"]),
        ("", []),
    ],
)
def test_operands_are_split_outside_brackets(text: str, expected: list[str]):
    """Commas inside brackets belong to the operand."""
    assert expected == split_operands(text)


def test_pieces_of_a_body():
    """Labels, line directives, scopes and vectors are distinguished."""
    body = ".loc 1 2 3\n L: add.u32 a, b, c; { .reg .pred p; mov.b64 x, {a, b}; } M: ret;"
    kinds = [(piece.kind, piece.text) for piece in pieces(body)]
    assert kinds == [
        ("directive", ".loc 1 2 3"),
        ("label", "L"),
        ("statement", "add.u32 a, b, c"),
        ("open", ""),
        ("statement", ".reg .pred p"),
        ("statement", "mov.b64 x, {a, b}"),
        ("close", ""),
        ("label", "M"),
        ("statement", "ret"),
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("L :  add.u32 a, b;", [("label", "L"), ("statement", "add.u32 a, b")]),
        ("L:add.u32 a, b;", [("label", "L"), ("statement", "add.u32 a, b")]),
        ("L:\n@!p bra M;", [("label", "L"), ("statement", "@!p bra M")]),
        ("st.shared::cta.b32 [a], b;", [("statement", "st.shared::cta.b32 [a], b")]),
        ("x {a, {b}} ;y;", [("statement", "x {a, {b}}"), ("statement", "y")]),
    ],
)
def test_labels_and_instructions(body: str, expected: list[tuple[str, str]]):
    """A label has one colon, wherever it stands; a name in a modifier has two."""
    assert [(piece.kind, piece.text) for piece in pieces(body)] == expected


@pytest.mark.parametrize(
    "body", ["{", "}", "add a, {b;", "add a", "{" * 65 + "}" * 65, "mov x, {a; b};"]
)
def test_unbalanced_bodies_are_refused(body: str):
    """A brace or a semicolon without its partner is an error, not a guess."""
    with pytest.raises(PtxError):
        list(pieces(body))


def test_lines_are_counted_from_one():
    """An offset names the line that holds it."""
    lines = Lines("a\nb\n\nc")
    assert [lines.line(offset) for offset in (0, 2, 5)] == [1, 2, 4]


def test_a_truncated_body_is_named():
    """A brace that is never closed is an error."""
    with pytest.raises(PtxError, match="ends inside"):
        matching_brace("{ { }", 0)
