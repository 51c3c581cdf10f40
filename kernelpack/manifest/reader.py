"""YAML text as plain values with the line and column of each: the door of ruamel.yaml.

The language is a part of YAML 1.2 in which a word has one meaning: `no` is a word, integers are
decimal, `0x` or `0o`. Ambiguous text is refused where it is: `010`, tags, anchors,
duplicate keys; `1e3` too, but for a number's default, where it can mean one thing alone.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from kernelpack.errors import ManifestError

Location = tuple[str | int, ...]
"""The keys and indices that lead to a value."""

MAX_CHARACTERS = 1 << 20
MAX_BYTES = 4 * MAX_CHARACTERS
MAX_DEPTH = 32
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,18}|0x[0-9a-fA-F]{1,16}|0o[0-7]{1,21})")
_AMBIGUOUS = {
    re.compile(r"[-+]?0[0-9_]+"): "drop the leading zero; write `0o` before an octal number",
    re.compile(r"[-+]?(\.[0-9]+|[0-9][0-9_]*(\.[0-9]*)?)([eE][-+]?[0-9]+)?"): "write an integer",
    re.compile(r"[-+]?\.(inf|nan)", re.IGNORECASE): "write an integer",
}
_COLLECTION_TAGS = {"tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"}
_SCALAR_TAGS = {
    f"tag:yaml.org,2002:{kind}"
    for kind in ("str", "int", "float", "bool", "null", "timestamp", "merge", "value")
}
"""The type that ruamel.yaml gives a plain scalar; the rules below decide here."""

_WORDS: dict[str, bool | None] = {
    "true": True,
    "false": False,
    "null": None,
    "~": None,
    "": None,
}


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in the text; line and column count from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """YAML as `dict`, `tuple`, `str`, `int`, `bool` and `None`, and where each value was."""

    path: str
    value: object
    values: Mapping[Location, Mark] = field(repr=False)
    keys: Mapping[Location, Mark] = field(repr=False)

    def at(self, *location: str | int, key: bool = False) -> str:
        """`path:line:column` of a value, or of its key; of the nearest value around it if absent.

        Parts of the location that are not in the document are passed over.
        """
        known: Location = ()
        for part in location:
            known = (*known, part) if (*known, part) in self.values else known
        mark = self.keys.get(known, self.values[known]) if key else self.values[known]
        return f"{self.path}:{mark.line}:{mark.column}"


def read(path: Path) -> Document:
    """Read a YAML file.

    Raises:
        ManifestError: the file cannot be read, is not YAML, or says something ambiguous.

    """
    try:
        if path.exists() and not path.is_file():  # a fifo would wait, a device may never end
            raise ManifestError("is not a regular file", where=str(path), hint="give a YAML file")
        if path.stat().st_size > MAX_BYTES:
            raise ManifestError(f"longer than {MAX_BYTES} bytes", where=str(path))
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        is_bundle = path.suffix == ".kpk"
        hint = "`kernelpack ls` shows what a bundle holds" if is_bundle else "save it as UTF-8"
        what = "it is a bundle" if is_bundle else f"it is not a text of UTF-8, {error.reason}"
        raise ManifestError(f"cannot be read: {what}", where=str(path), hint=hint) from error
    except OSError as error:
        raise ManifestError(f"cannot be read: {error.strerror}", where=str(path)) from error
    return parse(text, str(path))


def parse(text: str, path: str) -> Document:
    """Read YAML text; `path` is for messages. Errors as of `read`."""
    if len(text) > MAX_CHARACTERS:
        raise ManifestError(f"longer than {MAX_CHARACTERS} characters", where=path)
    root = _compose(text, path)
    if root is None:
        raise ManifestError("is empty", where=path, hint="start with `kernel: <name>`")
    reader = _Reader(path)
    value = reader.read(root, ())
    return Document(path=path, value=value, values=reader.values, keys=reader.keys)


def _compose(text: str, path: str) -> Node | None:
    try:
        return YAML(typ="safe", pure=True).compose(text)  # type: ignore[no-any-return]
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else path
        what = ", ".join(part for part in (error.context, error.problem) if part)
        raise ManifestError(f"is not YAML: {what}", where=where) from error
    except (YAMLError, ValueError, RecursionError) as error:
        what = str(error).partition("\n")[0]
        raise ManifestError(f"is not YAML: {what}", where=path) from error


class _Reader:
    """Turns nodes into values, and notes where each was."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.values: dict[Location, Mark] = {}
        self.keys: dict[Location, Mark] = {}
        self._seen: set[int] = set()

    def read(self, node: Node, location: Location) -> object:
        self.values[location] = _mark(node)
        if id(node) in self._seen or node.anchor:
            raise self._error(node, "anchors and aliases are not allowed", "repeat the value")
        if len(location) > MAX_DEPTH:
            raise self._error(node, f"is nested deeper than {MAX_DEPTH}", "a manifest is flat")
        self._seen.add(id(node))
        if isinstance(node, ScalarNode):
            return self._scalar(node, is_real=_is_default(location))
        if str(node.tag) not in _COLLECTION_TAGS:
            raise self._error(node, f"tag `{node.tag}` is not allowed", "remove the tag")
        if isinstance(node, MappingNode):
            return dict(self._entries(node, location))
        return tuple(self.read(item, (*location, i)) for i, item in enumerate(node.value))

    def _entries(self, node: MappingNode, location: Location) -> Iterator[tuple[str, object]]:
        seen: dict[str, Mark] = {}
        for key_node, value_node in node.value:
            key = self._scalar(key_node) if isinstance(key_node, ScalarNode) else None
            if not isinstance(key, str):
                raise self._error(key_node, "a key must be a word", "quote it if it is meant")
            if key in seen:
                what = f"`{key}` is given twice, first in line {seen[key].line}"
                raise self._error(key_node, what, "keep one of the two")
            self.keys[(*location, key)] = seen[key] = _mark(key_node)
            yield key, self.read(value_node, (*location, key))

    def _scalar(self, node: ScalarNode, *, is_real: bool = False) -> str | int | bool | None:
        text = str(node.value)
        if str(node.tag) not in _SCALAR_TAGS:
            raise self._error(node, f"tag `{node.tag}` is not allowed", "remove the tag")
        if node.style:
            return text
        if _INTEGER.fullmatch(text):
            return int(text, 0)
        if is_real:
            return text
        for pattern, hint in _AMBIGUOUS.items():
            if pattern.fullmatch(text):
                raise self._error(node, f"`{text}` is not a 64-bit integer", f"{hint}, or quote it")
        return _WORDS.get(text, text)

    def _error(self, node: Node, what: str, hint: str) -> ManifestError:
        mark = _mark(node)
        return ManifestError(what, where=f"{self.path}:{mark.line}:{mark.column}", hint=hint)


def _is_default(location: Location) -> bool:
    """Whether a value is what a number is where a call does not give it."""
    return location[:1] == ("numbers",) and location[2:] == ("default",)


def _mark(node: Node) -> Mark:
    return Mark(node.start_mark.line + 1, node.start_mark.column + 1)
