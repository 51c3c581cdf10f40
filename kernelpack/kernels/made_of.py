"""The sources of an oracle: its file, its own imported modules, and files it names.

The key of a verified run depends on all of it. Packages that are installed count as they are,
but for the oracle's own; a file counts where its name is in the source as a whole string, and
it lies in the folder of that source.
"""

import ast
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType

from kernelpack.installed import PROJECT
from kernelpack.spec.artifact import digest

_INSTALLED = tuple(
    Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


def version(path: Path, text: bytes, package: str = "") -> str:
    """The digest of all that an oracle is made of, once it is imported.

    Args:
        path: its file.
        text: what that holds.
        package: the package that it is a module of, if it is of one.

    """
    found = {path: text}
    left = [(path, package)]
    while left:
        source, around = left.pop()
        for file, its_package in _named(source, found[source], around):
            if file not in found:
                found[file] = file.read_bytes()
                left.append((file, its_package))
    digests = sorted(digest(each) for each in found.values())
    return digest(" ".join(digests)) if len(digests) > 1 else digest(text)


def _named(source: Path, text: bytes, package: str) -> Iterator[tuple[Path, str]]:
    """The files that a source names, each with the package that it is a module of."""
    for node in _nodes(source, text):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((file, "") for file in _beside(source, node.value))
        for name in _imports(node, package):
            module = sys.modules.get(name)
            file = Path(getattr(module, "__file__", None) or "")
            if module and file.is_file() and _is_own(module, file, package):
                yield file, module.__package__ or ""


def _beside(source: Path, name: str) -> Iterator[Path]:
    """The file of a name in a source's folder, if the name is one."""
    file = source.parent / name
    with suppress(OSError, ValueError):
        if file.is_file():
            yield file


def _nodes(source: Path, text: bytes) -> Iterator[ast.AST]:
    """The nodes of a file of Python; none of any other."""
    if source.suffix == ".py":
        with suppress(SyntaxError, ValueError):
            yield from ast.walk(ast.parse(text))


def _imports(node: ast.AST, package: str) -> Iterator[str]:
    """The modules that a statement may import, and the packages that they are in."""
    if isinstance(node, ast.Import):
        names = [each.name for each in node.names]
    elif isinstance(node, ast.ImportFrom):
        base = _absolute("." * node.level + (node.module or ""), package)
        names = [base, *(f"{base}.{each.name}" for each in node.names)]
    else:
        return
    for name in names:
        parts = name.split(".")
        yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def _absolute(name: str, package: str) -> str:
    """A module's name, which may begin with dots; empty where these lead nowhere."""
    try:
        return resolve_name(name, package)
    except ImportError:
        return ""


def _is_own(module: ModuleType, file: Path, package: str) -> bool:
    """Whether a module may change without being installed anew, or is of the oracle's package."""
    top = module.__name__.partition(".")[0]
    if top == PROJECT:  # whose code is part of every key
        return False
    is_installed = any(file.is_relative_to(folder) for folder in _INSTALLED)
    return not is_installed or top == package.partition(".")[0]
