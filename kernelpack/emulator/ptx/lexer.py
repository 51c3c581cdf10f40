"""PTX text cut into pieces: comments blanked, statements and scopes found, operand lists split.

Positions are kept: every piece knows its offset in the text, so that a line can be named later.
The grammar is that of PTX ISA 9.1, chapter 4; `.loc` and `.file` end with their line, everything
else with a semicolon or a brace.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kernelpack.emulator.faults import PtxError

_COMMENT_OR_STRING = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"?|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL)
_LINE_DIRECTIVE = re.compile(r"\s*(\.(?:loc|file|pragma|section)\b[^\n;]*);?")
_LABEL = re.compile(r"\s*([A-Za-z_$%][\w$]*)\s*:(?!:)")
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]+|0|[1-9]\d*)U?")
_PLAIN = re.compile(
    r"\s*((?:@!?\s*[%\w$]+\s+)?[A-Za-z_][\w.]*(?:::[\w.]+)*(?!\s*:)(?:\s[^;{}]*(?:\{[^;{}]*\}[^;{}]*)*)?);"
)
"""Most statements: an instruction, with no braces but those of vectors."""
_PUNCTUATION = re.compile(r"[;{}]")
_SEPARATOR = re.compile(r"[\[\](){},]")
_BRACKET = re.compile(r"[\[\](){}]")
_BRACE = re.compile(r"[{}]")
_VISIBLE = re.compile(r"\S")
MAX_DIGITS = 80
"""More characters than this are not a number; 64 bits in binary, the longest, take 68."""
MAX_NESTING = 64
"""Deepest nesting of scopes that is read; compilers emit two or three."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A statement without its semicolon, a label, a `.loc` line, or the edge of a scope."""

    kind: Literal["statement", "label", "directive", "open", "close"]
    text: str
    offset: int


class Lines:
    """Offsets of a text → line numbers, counted from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def line(self, offset: int) -> int:
        """The line that holds the character at `offset`."""
        return bisect_right(self._starts, offset)


def blank_comments(text: str) -> str:
    """The text with each comment replaced by blanks of the same length; strings stay.

    So does a comment that never ends: whoever reads on stumbles over it, and knows the line.
    """
    return _COMMENT_OR_STRING.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    piece = match.group()
    endless = piece.startswith("/*") and (len(piece) < 4 or not piece.endswith("*/"))
    return piece if endless or piece.startswith('"') else re.sub(r"[^\n]", " ", piece)


def pieces(body: str) -> Iterator[Piece]:
    """The pieces of the body of an entry or function, in order.

    Raises:
        PtxError: a brace without its partner, a statement without its end, nesting too deep.
    """
    start, scopes = 0, 0
    while True:
        if plain := _PLAIN.match(body, start):
            yield Piece("statement", plain.group(1).rstrip(), plain.start(1))
            start = plain.end()
            continue
        found = _LINE_DIRECTIVE.match(body, start) or _LABEL.match(body, start)
        if found:
            kind: Literal["directive", "label"] = (
                "directive" if found.re is _LINE_DIRECTIVE else "label"
            )
            yield Piece(kind, found.group(1), found.start(1))
            start = found.end()
            continue
        end = _statement_end(body, start)
        if end is None:
            break
        text = body[start:end].strip()
        offset = start + len(body[start:end]) - len(body[start:end].lstrip())
        start = end + 1
        if body[end] == "{":
            scopes += 1
            yield Piece("open", "", end)
        elif body[end] == "}":
            scopes -= 1
            yield Piece("close", "", end)
        elif text:
            yield Piece("statement", text, offset)
        if not 0 <= scopes <= MAX_NESTING:
            raise PtxError(f"scopes nest {scopes} deep", hint=f"0 to {MAX_NESTING} are read")
    if scopes or body[start:].strip():
        raise PtxError(f"the body ends inside `{body[start:].strip()[:60]}`")


def _statement_end(body: str, start: int) -> int | None:
    """Where the piece that begins at `start` ends: its semicolon, or a brace that is a scope."""
    depth, visible = 0, _VISIBLE.search(body, start)
    for match in _PUNCTUATION.finditer(body, start):
        mark = match.group()
        if depth == 0 and (mark == ";" or (visible and visible.start() == match.start())):
            return match.start()
        depth += {"{": 1, "}": -1, ";": 0}[mark]
        if depth < 0 or mark == ";":
            raise PtxError(f"unbalanced braces in `{body[start : match.end()].strip()[:60]}`")
    return None


def split_operands(text: str) -> list[str]:
    """`a, {b, c}, [d+4]` → its three parts, stripped; commas inside brackets do not count."""
    if not _BRACKET.search(text):
        return [part.strip() for part in text.split(",")] if text.strip() else []
    parts: list[str] = []
    depth, begin = 0, 0
    for mark in _SEPARATOR.finditer(text):
        character = mark.group()
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif depth == 0:
            parts.append(text[begin : mark.start()].strip())
            begin = mark.end()
    if text[begin:].strip() or parts:
        parts.append(text[begin:].strip())
    return parts


def integer(text: str) -> int | None:
    """A literal such as `-0x1F`, `0b101`, `017` or `42U` (PTX ISA 4.5.1); None if it is not one.

    Raises:
        PtxError: it does not fit 64 bits.
    """
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.rstrip("U")
    is_octal = re.fullmatch(r"-?0[0-7]+", digits) is not None
    value = int(digits, 8 if is_octal else 0) if len(digits) <= MAX_DIGITS else 1 << 64
    if abs(value) >> 64:
        raise PtxError(f"`{text[:60]}` does not fit 64 bits")
    return value


def natural(digits: str) -> int:
    """The number that decimal digits of a directive stand for: a line, a count, a size.

    Raises:
        PtxError: it does not fit 32 bits.
    """
    value = int(digits) if len(digits) <= MAX_DIGITS else 1 << 32
    if value >> 32:
        raise PtxError(f"`{digits[:60]}` does not fit 32 bits")
    return value


def matching_brace(text: str, start: int) -> int:
    """The offset of the brace that closes the one at `start`.

    Raises:
        PtxError: there is none.
    """
    depth = 0
    for match in _BRACE.finditer(text, start):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.start()
    raise PtxError("the text ends inside a body", hint="is the PTX truncated?")
