"""Announcements of installed packages: entry points of a group, as data; imports nothing.

A checkout of kernelpack announces what its `pyproject.toml` says, whether or when it was installed.
"""

import tomllib
from collections.abc import Iterable
from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from itertools import chain
from pathlib import Path

import kernelpack

PROJECT = "kernelpack"


def announced(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, whatever else lies on the path."""
    own = _checkout(group)
    others = _installed(group)
    return others if own is None else (*own, *(p for p in others if owner(p) != PROJECT))


def owner(point: EntryPoint) -> str:
    """The name of the package that announces it."""
    return PROJECT if point.dist is None else _name(point.dist) or ""


def _installed(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of installed packages.

    An interrupted pip leaves folders without a name, such as `-umpy-1.0.dist-info`; with one of
    them `importlib.metadata.entry_points` fails, so then packages are asked one by one.
    """
    try:
        return tuple(entry_points(group=group))
    except (TypeError, OSError):  # OSError: of newer versions of importlib.metadata
        points = (package.entry_points.select(group=group) for package in _named())
        return tuple(chain.from_iterable(points))


def _named() -> Iterable[Distribution]:
    """The installed packages that have a name, the first of each."""
    named: dict[str, Distribution] = {}
    for package in distributions():
        if name := _name(package):
            named.setdefault(name.lower(), package)
    return named.values()


def _name(package: Distribution) -> str | None:
    """The name in a package's metadata, if it has one."""
    try:
        return package.metadata["Name"]
    except OSError:
        return None


def _checkout(group: str) -> tuple[EntryPoint, ...] | None:
    """The announcements of the project file beside this package; None without a checkout."""
    file = Path(kernelpack.__file__).parents[1] / "pyproject.toml"
    if not file.is_file():
        return None
    project = tomllib.loads(file.read_text(encoding="utf-8")).get("project", {})
    if project.get("name") != PROJECT:
        return None
    points = project.get("entry-points", {}).get(group, {})
    return tuple(EntryPoint(name, value, group) for name, value in points.items())
