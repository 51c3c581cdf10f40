"""The `<kp/…>` headers that a source reaches, each once, in the order in which it reaches them.

Other headers in angle brackets (`<cuda/std/…>`, `<cuda_bf16.h>`) are the toolkit's; they belong to
the toolchain's digest. Headers are found by name alone, so an include in quotes is refused.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from kernelpack.errors import RenderError
from kernelpack.render.code import without_comments
from kernelpack.render.lines import Origin, origins
from kernelpack.spec.artifact import Header
from kernelpack.spec.nearest import nearest

_INCLUDE = re.compile(r"[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"\n]+)[>\"]")
OURS = "kp/"


def closure(text: str, name: str, templates: Path) -> tuple[Header, ...]:
    """Every header of ours that a text reaches.

    Args:
        text: the rendered source.
        name: its template's path.
        templates: the folder whose `include/` holds the headers.

    Raises:
        RenderError: a header is missing, or included in quotes; at the including line.

    """
    folder = templates / "include"
    found: dict[str, Header] = {}
    waiting = list(_included(text, name))[::-1]
    while waiting:
        origin, path = waiting.pop()
        if path not in found:
            found[path] = Header(path=path, text=_read(folder, path, origin))
            waiting += list(_included(found[path].text, path))[::-1]
    return tuple(found.values())


@lru_cache(maxsize=512)
def _included(text: str, name: str) -> tuple[tuple[Origin, str], ...]:
    return tuple(_includes(text, name))


def _includes(text: str, name: str) -> Iterator[tuple[Origin, str]]:
    for origin, line in origins(without_comments(text), name):
        match = _INCLUDE.match(line)
        if match and match[1] == '"':
            what = f'`#include "{match[2]}"` is in quotes'
            raise RenderError(what, where=str(origin), hint="write <kp/…> with the whole path")
        if match and match[2].startswith(OURS):
            yield origin, match[2]


def _read(folder: Path, path: str, origin: Origin) -> str:
    file = folder / path
    if ".." in path.split("/") or not file.is_file():
        known = [str(p.relative_to(folder)) for p in sorted(folder.rglob("*.cuh"))]
        listed = ", ".join(known) or f"none in {folder}"
        hint = nearest(path, known) or f"headers: {listed}"
        raise RenderError(f"there is no header <{path}>", where=str(origin), hint=hint)
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise RenderError(f"header <{path}> is not UTF-8: {error}", where=str(origin)) from error
