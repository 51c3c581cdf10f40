"""Lines of templates in what compilers write: paths in PTX, places in messages.

A path of ours is relative to `templates/`; one of the toolkit's headers starts with `toolkit/`,
any other with `host/`. So the same source gives the same PTX in every folder of every machine.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from posixpath import normpath

from kernelpack.errors import CompileError
from kernelpack.spec.artifact import Source

INCLUDE = "include"
"""The folder under `templates/` that headers are named from."""

TOOLKIT = "toolkit/"
"""The prefix of the toolkit's headers' names."""

SHOWN = 20
"""A message of a compiler shows so many problems and counts the rest."""

FILE = re.compile(r'^(\s*\.file\s+\d+\s+)"([^"]*)"[^\n]*$', re.MULTILINE)
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_MESSAGE = re.compile(  # of the device compiler: `path(line): error: what`
    r"^(?P<path>[^\s(:][^(:]*)\((?P<line>\d+)\): "
    r"(?P<kind>error|warning|catastrophic error|internal error)[^:]*: (?P<what>.*)$"
)
_HOST_MESSAGE = re.compile(  # of the host compiler: `path:line:column: error: what`
    r"^(?P<path>[^\s:][^:]*):(?P<line>\d+):\d+: (?P<kind>fatal error|error|warning): (?P<what>.*)$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a compiler: its place under `templates/`, and its text with the source."""

    where: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paths:
    """The meaning of the compiler's paths.

    Attributes:
        folders: where the compiler ran; in these, paths are relative to `templates/`.
        toolkit: the folders of the toolkit's headers.
        headers: the paths that a front end may write without their `include/`.

    """

    folders: tuple[str, ...]
    toolkit: tuple[str, ...]
    headers: frozenset[str]

    def name(self, path: str) -> str:
        """The name of a path in every artifact and message."""
        path = normpath(path)
        for folder in self.toolkit:  # before the folders: a toolkit may lie in one of these
            if path.startswith(f"{folder}/"):
                return f"{TOOLKIT}{path.removeprefix(f'{folder}/')}"
        for folder in self.folders:
            path = path.removeprefix(f"{folder}/")
        if not path.startswith("/"):
            return f"{INCLUDE}/{path}" if path in self.headers else path
        return f"host/{PurePath(path).name}"


def paths_of(source: Source, folders: Iterable[object], toolkit: Iterable[object]) -> Paths:
    """The meaning of paths while a source is compiled; the longest toolkit folder wins."""
    return Paths(
        folders=tuple(str(folder).rstrip("/") for folder in folders),
        toolkit=tuple(sorted(map(str, toolkit), key=len, reverse=True)),
        headers=frozenset(header.path for header in source.headers),
    )


def place_in_ptx(ptx: str, line: int) -> str:
    """`path:line` of the template that a line of PTX came from; `ptx:line` where none is known."""
    lines = ptx.splitlines()
    files = {found[1].split()[-1]: found[2] for found in FILE.finditer(ptx)}
    for text in reversed(lines[:line]):
        if found := _LOC.match(text):
            return f"{files.get(found[1], 'ptx')}:{found[2]}"
        if text.lstrip().startswith((".entry", ".visible .entry", ".func")):
            break
    return f"ptx:{line}"


def messages(log: str, paths: Paths) -> Iterator[Message]:
    """The messages of NVRTC or nvcc: errors and warnings, each with the lines that follow it.

    A warning about a header of the toolkit is left out: nobody here can mend it.
    """
    where, held = "", list[str]()
    for line in log.splitlines():
        if found := _MESSAGE.match(line) or _HOST_MESSAGE.match(line):
            yield from _message(where, held)
            where = f"{paths.name(found['path'])}:{found['line']}"
            is_theirs = found["kind"] == "warning" and where.startswith(TOOLKIT)
            held = [] if is_theirs else [found["what"]]
        elif not line.strip() or re.match(r"\d+ errors? detected|Remark: ", line):
            yield from _message(where, held)
            where, held = "", []
        elif held:
            held.append(line.rstrip())
    yield from _message(where, held)


def _message(where: str, held: Sequence[str]) -> Iterator[Message]:
    if held:
        yield Message(where=where, what="\n".join(held))


def refusal(found: Sequence[Message], variant_id: str, *, hint: str = "") -> CompileError:
    """The error for a source with problems: at the first one's place, with all their texts."""
    first, *rest = found
    shown = [f"{p.where}: {p.what}" for p in rest[: SHOWN - 1]]
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return CompileError(
        "\n".join([first.what, *shown, *more]),
        where=first.where,
        hint="\n".join(filter(None, [hint, f"while compiling {variant_id}"])),
    )
