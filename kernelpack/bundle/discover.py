"""Bundles that were installed as packages: what a wheel of kernels announces, and nothing else.

A wheel of kernels is a package of data files. Its entry point in the group `kernelpack.bundles`
names that package; it is looked for where the wheel was installed, never imported and never
searched for on Python's path, so that no other folder of that name takes its place.
"""

from importlib.metadata import Distribution, EntryPoint, distributions, entry_points
from itertools import chain
from pathlib import Path

from kernelpack.errors import BundleError

GROUP = "kernelpack.bundles"
"""The entry point group."""


def find() -> tuple[Path, ...]:
    """The bundles of every installed package of kernels, sorted; their PTX twins left out.

    Raises:
        BundleError: a package announces a bundle and holds none; says which.

    """
    found = {path for point in _announced() for path in _bundles_of(point)}
    return tuple(sorted(found))


def _announced() -> tuple[EntryPoint, ...]:
    """The entry points of the group, whatever else lies on the path.

    An interrupted pip leaves folders without a name, such as `-umpy-1.0.dist-info`; with one of
    them `importlib.metadata.entry_points` fails, so then packages are asked one by one.
    """
    try:
        return tuple(entry_points(group=GROUP))
    except (TypeError, OSError):  # OSError: of newer versions of importlib.metadata
        named: dict[str, Distribution] = {}
        for package in distributions():
            if name := _name(package):
                named.setdefault(name.lower(), package)
        points = (package.entry_points.select(group=GROUP) for package in named.values())
        return tuple(chain.from_iterable(points))


def _name(package: Distribution) -> str | None:
    """The name in a package's metadata, if it has one."""
    try:
        return package.metadata["Name"]
    except OSError:
        return None


def _bundles_of(point: EntryPoint) -> list[Path]:
    paths = list(_folder(point).glob("*.kpk"))
    bundles = [path for path in paths if not path.name.endswith(".ptx.kpk")]
    if not bundles:
        raise BundleError(
            f"the package `{point.value}` announces a bundle and holds none",
            where=f"entry point `{point.name}` of {GROUP}",
            hint="install the wheel of kernels again",
        )
    return bundles


def _folder(point: EntryPoint) -> Path:
    """The folder of a top-level package, beside the metadata that announces it."""
    assert point.dist, "an entry point that was found belongs to a distribution"
    name = point.value if point.value.isidentifier() else GROUP
    return Path(str(point.dist.locate_file(name)))
