"""As much of C++'s lexical rules as finding a declaration or a safe line needs."""

import re
from functools import lru_cache

_TOKEN = re.compile(
    r"""(?=["'/R])(?:  # only here can one begin: most of a text is passed over quickly
      (?P<comment> //[^\n\\]*(?:\\.[^\n\\]*)* | /\*.*?(?:\*/|\Z) )
    | (?P<raw> R"(?P<delimiter>[^()\\\s]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z) )
    | (?P<string> "[^"\\\n]*(?:\\.[^"\\\n]*)*" )
    | (?P<separator> (?<=[0-9a-fA-F])'(?=[0-9a-fA-F]) )
    | (?P<character> '[^'\\\n]*(?:\\.[^'\\\n]*)*' )
    )""",
    re.DOTALL | re.VERBOSE,
)


@lru_cache(maxsize=512)
def without_comments(text: str) -> str:
    """The text with every comment as a blank; its lines stay where they are."""
    return _TOKEN.sub(lambda t: _blank(t[0]) if t["comment"] else t[0], text)


@lru_cache(maxsize=512)
def without_words(text: str) -> str:
    """The text with every comment, string and character as a blank; lines stay where they are."""
    return _TOKEN.sub(lambda t: t[0] if t["separator"] else _blank(t[0]), text)


def _blank(token: str) -> str:
    return " " + "\n" * token.count("\n")


def whole_line_breaks(text: str) -> set[int]:
    """The lines (from 0) before which a directive may come.

    Not those that a backslash joins to the line before, nor those that begin within a comment or a
    raw string.
    """
    inside: set[int] = set()
    for token in _TOKEN.finditer(text):
        first = text.count("\n", 0, token.start())
        inside.update(range(first + 1, first + 1 + token[0].count("\n")))
    lines = text.split("\n")
    joined = {index + 1 for index, line in enumerate(lines) if line.endswith("\\")}
    return set(range(len(lines))) - inside - joined
