"""Source that would make machine code depend on where or when it was built.

`__DATE__`, `__TIME__` and `__TIMESTAMP__` are the clock's, also where `##` pastes their names
together. A device variable with internal linkage
(`static`, or in a namespace without a name) gets a symbol that holds a digest of the source's path:
two folders would give two bundles.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from kernelpack.errors import RenderError
from kernelpack.render.code import without_words
from kernelpack.render.lines import origin_of

_CLOCK = re.compile(r"\b__(?:DATE|TIME|TIMESTAMP)__\b")
_CLOCKS = ("__DATE__", "__TIME__", "__TIMESTAMP__")
_WORD = re.compile(r"[A-Za-z_]+")
_PASTE = re.compile(r"##|%:%:")
_SPACE = re.compile(r"\b__(?:device|constant|managed)__\b")
_WITH_ARGUMENTS = re.compile(r"\b(?:alignas|__align__|__attribute__|__declspec)\s*\([^()]*\)")
_VARIABLE = re.compile(r"(\w+)\s*(?:\[[^\[\]]*\]\s*)*(?:=.*)?$", re.DOTALL)
_STATEMENT = re.compile(r"[^;{}]*[;{}]")
_SUSPECT = re.compile(
    r"\bnamespace\s*\{|\bstatic\b[^;{}]*\b__(?:device|constant|managed)__\b"
    r"|\b__(?:device|constant|managed)__\b[^;{}(]*\bstatic\b"
)
"""Text that every such declaration has, so that most sources need not be parsed."""
_NAMELESS = re.compile(r"\bnamespace\s*\{$")


def check(text: str, name: str) -> None:
    """Refuse device variables with internal linkage, and the time of the build.

    Raises:
        RenderError: names the variable, at the line where its declaration ends; or the macro.

    """
    if _CLOCK.search(text) and (macro := _CLOCK.search(code := without_words(text))):
        line = code.count("\n", 0, macro.start())
        raise RenderError(
            f"`{macro[0]}` is another text in each build",
            where=str(origin_of(text, name, line)),
            hint="machine code must follow from its sources alone: give a constant",
        )
    for variable, offset in _internal_variables(text):
        line = text.count("\n", 0, offset)
        raise RenderError(
            f"device variable `{variable}` has internal linkage",
            where=str(origin_of(text, name, line)),
            hint="its symbol would hold a digest of the build's folder: drop `static`, "
            "and give its namespace a name",
        )


def check_pasted(texts: Sequence[tuple[str, str]]) -> None:
    """Refuse texts that hold the pieces of a clock's macro and paste pieces together.

    No front end says what a macro came to, nor lets the clock be a constant: whoever has all the
    pieces, and `##`, is refused though nothing may be pasted of them.

    Args:
        texts: of the source and its headers, each with its name.

    Raises:
        RenderError: at the first `##`.

    """
    pasting = [(text, name) for text, name in texts if _PASTE.search(without_words(text))]
    if not pasting:
        return
    words = frozenset[str]().union(*(_pieces(text) for text, _ in texts))
    for macro in _CLOCKS:
        if _joins(macro, words):
            text, name = pasting[0]
            code = without_words(text)
            found = _PASTE.search(code)
            line = code.count("\n", 0, found.start()) if found else 0
            raise RenderError(
                f"`##` may make `{macro}`, which is another text in each build",
                where=str(origin_of(text, name, line)),
                hint="machine code must follow from its sources alone: give a constant",
            )


@lru_cache(maxsize=512)
def _pieces(text: str) -> frozenset[str]:
    """The words of a text that are a part of a clock's macro."""
    found = _WORD.findall(without_words(text)) if "_" in text else []
    return frozenset(word for word in found if any(word in macro for macro in _CLOCKS))


def _joins(macro: str, words: frozenset[str]) -> bool:
    """Whether words, one after another, are the macro's name."""
    reached = {0}
    for end in range(1, len(macro) + 1):
        if any(macro[begin:end] in words for begin in reached):
            reached.add(end)
    return len(macro) in reached


@lru_cache(maxsize=512)
def _internal_variables(text: str) -> tuple[tuple[str, int], ...]:
    """The name of each, and where its declaration ends."""
    code = without_words(text)
    return tuple(_walk(code)) if _SUSPECT.search(code) else ()


def _walk(code: str) -> Iterator[tuple[str, int]]:
    nameless: list[bool] = []  # of the braces that are open
    for statement in _STATEMENT.finditer(code):
        declaration = _WITH_ARGUMENTS.sub(" ", statement[0]).strip()
        if _SPACE.search(declaration) and (any(nameless) or re.search(r"\bstatic\b", declaration)):
            variable = _VARIABLE.search(declaration[:-1].rstrip())
            if variable and "(" not in declaration[: variable.start()]:
                yield variable[1], statement.end() - 1
        if declaration.endswith("{"):
            nameless.append(bool(_NAMELESS.search(declaration)))
        elif declaration.endswith("}") and nameless:
            nameless.pop()
