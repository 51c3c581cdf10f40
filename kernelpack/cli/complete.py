"""Completions beyond verbs, options and paths: names of kernels, and words of `-k`.

A line that is being typed may be wrong yet: what cannot be read completes to nothing.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import rich_click as click

from kernelpack.bundle.reader import open_entries
from kernelpack.cli import settings
from kernelpack.errors import KernelpackError
from kernelpack.kernels.folder import folders
from kernelpack.kernels.registry import known
from kernelpack.spec.filter import words_of

_MANIFESTS = (".yaml", ".yml")
_NAMED = ("bundle", "what", "manifests", "kernels")
"""The words of a line that name variants."""


def kernels(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Kernels whose meaning is known, those in the folders named first among them."""
    named = _paths(context.params.get("kernels")) or list(settings.read().kernels)
    try:
        return [stem for stem in known(tuple(named)) if stem.startswith(begun)]
    except KernelpackError:
        return []


def keep(context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """Words of the ids of what the line names; the last word of an expression is completed."""
    before, blank, last = begun.rpartition(" ")
    words = words_of(set(_ids(context)))
    return [f"{before}{blank}{word}" for word in words if word.startswith(last)]


def _ids(context: click.Context) -> Iterator[str]:
    """The ids of the variants that the line names; kernelpack's own where it names none."""
    given = [path for name in _NAMED for path in _paths(context.params.get(name))]
    given += [path for path in _paths(context.args) if path.exists()]  # of a line cut at an option
    for path in given or settings.manifests():
        try:
            yield from _ids_of(path)
        except (KernelpackError, OSError, ImportError):  # ImportError: there is no builder
            continue


def _ids_of(path: Path) -> Iterable[str]:
    if path.is_dir():
        return [i for folder in folders([path]) for i in _ids_of(folder.manifest)]
    if path.suffix not in _MANIFESTS:
        return [variant.id for variant in open_entries(path).variants()]
    from kernelpack.manifest.expand import expand  # noqa: PLC0415 - of the builder
    from kernelpack.manifest.schema import load  # noqa: PLC0415

    return [variant.id for variant in expand(load(path), None)]


def _paths(given: object) -> list[Path]:
    """The paths of a parameter, which may be one, several or none."""
    listed = given if isinstance(given, tuple | list) else [given]
    return [Path(path) for path in listed if isinstance(path, str | Path)]
