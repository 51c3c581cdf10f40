"""The headers of ours that a source reaches, each once, in the order in which it reaches them.

They are kernelpack's, `<kp/…>`, and those in the folder of a kernel of one's own, which are named
with the folder: `<rms_norm/rows.cuh>`. Other headers in angle brackets (`<cuda/std/…>`,
`<cuda_bf16.h>`) are the toolkit's; they belong to the toolchain's digest. A source's inputs must
be known before it is compiled, because the key of the cache holds it. So a header has a plain name
in angle brackets: quotes, macros, whole paths and questions whether there is one of ours are
refused.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from kernelpack.errors import RenderError
from kernelpack.render.code import without_comments
from kernelpack.render.files import read_text
from kernelpack.render.lines import Origin, origins
from kernelpack.spec.artifact import Header
from kernelpack.spec.nearest import nearest

_INCLUDE = re.compile(r"[ \t]*(?:#|%:)[ \t]*(include\w*|import|embed)\b[ \t]*(.*)")
_NAME = re.compile(r"<([^>\n]+)>")
_HAS = re.compile(r"\b__has_(?:include|include_next|embed)\b[ \t]*\(?[ \t]*(<?)([^>)]*)")
_CONDITION = re.compile(r"[ \t]*(?:#|%:)[ \t]*(if\w*|el\w+|endif)\b")
_NEVER = re.compile(r"[ \t]*(?:#|%:)[ \t]*if[ \t]+0[ \t]*$")
_PLAIN = (
    "write #include <kp/…>, or <FOLDER/…> of a kernel's folder, with the whole name, on one line"
)
OURS = "kp/"


def closure(
    text: str, name: str, templates: Path, kernels: Sequence[Path] = ()
) -> tuple[Header, ...]:
    """Every header of ours that a text reaches.

    Args:
        text: the rendered source.
        name: its template's path.
        templates: the folder whose `include/` holds the headers.
        kernels: folders of kernels, whose headers are ours too.

    Raises:
        RenderError: a header is missing, or included in quotes; at the including line.

    """
    folder = templates / "include"
    found: dict[str, Header] = {}
    waiting = list(_included(text, name))[::-1]
    while waiting:
        origin, path = waiting.pop()
        beside = _beside(path, kernels)
        if path not in found and (beside or path.startswith(OURS)):
            text = read_text(beside, path) if beside else _read(folder, path, origin)
            found[path] = Header(path=path, text=text)
            waiting += list(_included(found[path].text, path))[::-1]
    return tuple(found.values())


@lru_cache(maxsize=512)
def _included(text: str, name: str) -> tuple[tuple[Origin, str], ...]:
    return tuple(_includes(text, name))


def _includes(text: str, name: str) -> Iterator[tuple[Origin, str]]:
    for origin, line in _compiled(origins(without_comments(text), name)):
        if (asked := _HAS.search(line)) and (not asked[1] or asked[2].startswith(OURS)):
            what = f"`{line.strip()}` asks for a header that may come and go"
            raise RenderError(what, where=str(origin), hint="ask for one of the toolkit, in <…>")
        if match := _INCLUDE.match(line):
            yield origin, _named(match[1], match[2], origin)


def _compiled(lines: Iterable[tuple[Origin, str]]) -> Iterator[tuple[Origin, str]]:
    """The lines that a compiler looks at: not those of an `#if 0`. Other conditions are its own."""
    depth = 0  # of the conditions that are open from an `#if 0` on
    for origin, line in lines:
        condition = _CONDITION.match(line)
        word = condition[1] if condition else ""
        if depth == 0:
            depth = int(bool(_NEVER.match(line)))
            if not depth:
                yield origin, line
        elif word.startswith("if"):
            depth += 1
        elif word == "endif" or (word and depth == 1):  # an #else, or an #elif that may hold
            depth -= 1


def _named(directive: str, rest: str, origin: Origin) -> str:
    """The header of a directive."""
    said, name = f"`#{directive} {rest.strip()}`", _NAME.match(rest)
    if directive != "include":
        raise RenderError(f"{said} is no #include", where=str(origin), hint=_PLAIN)
    if rest.startswith('"'):
        raise RenderError(f"{said} is in quotes", where=str(origin), hint=_PLAIN)
    if not name:
        raise RenderError(f"{said} names no header", where=str(origin), hint=_PLAIN)
    if name[1].startswith("/") or (".." in name[1].split("/") and not name[1].startswith(OURS)):
        raise RenderError(f"{said} is a path of this machine", where=str(origin), hint=_PLAIN)
    return name[1]


def _beside(path: str, kernels: Sequence[Path]) -> Path | None:
    """The file of a header in a kernel's folder; None of another header, the toolkit's perhaps."""
    first, _, rest = path.partition("/")
    files = (folder / rest for folder in kernels if folder.name == first)
    return next((f for f in files if ".." not in rest.split("/") and f.is_file()), None)


def _read(folder: Path, path: str, origin: Origin) -> str:
    file = folder / path
    if ".." in path.split("/") or not file.is_file():
        known = [str(p.relative_to(folder)) for p in sorted(folder.rglob("*.cuh"))]
        listed = ", ".join(known) or f"none in {folder}"
        hint = nearest(path, known) or f"headers: {listed}"
        raise RenderError(f"there is no header <{path}>", where=str(origin), hint=hint)
    return read_text(file, path)
