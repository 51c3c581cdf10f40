"""Where each line of a rendered text was written, as `#line` directives.

While a template is filled, every line of template text carries a mark (`mark`); `place` takes the
marks away and says `#line N "path"` wherever the lines stop following one another. A directive
comes only between lines: never after a backslash, within a comment or within a raw string.
(Keep Jinja's blocks out of the arguments of a preprocessor macro: C++ allows no directive there.)
`origins` reads the directives back.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kernelpack.render.code import whole_line_breaks

OPEN, CLOSE = "\ue000", "\ue001"
"""Around a mark; private-use characters, which no source holds."""

_MARK = re.compile(f"{OPEN}([^{CLOSE}]*):([0-9]+){CLOSE}")
_DIRECTIVE = re.compile(r'#line ([0-9]+) "([^"]*)"')


@dataclass(frozen=True, slots=True)
class Origin:
    """The template and the line (from 1) that a line of output came from."""

    name: str
    line: int

    @property
    def next(self) -> "Origin":
        """The line after it."""
        return Origin(self.name, self.line + 1)

    def __str__(self) -> str:
        return f"{self.name}:{self.line}"


def mark(name: str, line: int) -> str:
    """The mark of one line of a template."""
    return f"{OPEN}{name}:{line}{CLOSE}"


def place(marked: str) -> str:
    """The text without marks, and a directive wherever its lines stop following one another."""
    lines = marked.split("\n")
    clean = [_MARK.sub("", line) for line in lines]
    breaks = whole_line_breaks("\n".join(clean))
    out: list[str] = []
    origin = expected = Origin("", 0)
    for index, (line, text) in enumerate(zip(lines, clean, strict=True)):
        origin = _origin(line) or origin
        if origin != expected and index in breaks and (text or index + 1 < len(lines)):
            out.append(f'#line {origin.line} "{origin.name}"')
            expected = origin
        out.append(text)
        expected = expected.next
    return "\n".join(out)


def _origin(line: str) -> Origin | None:
    """The last mark before the first visible character: what was written there, not its caller."""
    last = None
    end = 0
    for found in _MARK.finditer(line):
        if last is not None and line[end : found.start()].strip():
            break
        last, end = found, found.end()
    return Origin(last[1], int(last[2])) if last else None


def origins(text: str, name: str) -> Iterator[tuple[Origin, str]]:
    """Each line of a text with its origin; `name` is the text's own until a directive says more."""
    origin = Origin(name, 1)
    for line in text.split("\n"):
        directive = line.startswith("#line") and _DIRECTIVE.fullmatch(line)
        if directive:
            origin = Origin(directive[2], int(directive[1]))
        else:
            yield origin, line
            origin = origin.next


def origin_of(text: str, name: str, index: int) -> Origin:
    """Where a line of a text (from 0, directives counted) was written."""
    *_, (origin, _) = origins("\n".join(text.split("\n")[: index + 1]), name)
    return origin
