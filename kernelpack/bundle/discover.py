"""Bundles that were installed as packages: what a wheel of kernels announces, and nothing else.

A wheel of kernels is a package of data files. Its entry point in the group `kernelpack.bundles`
names that package; the package is located, never imported, so nothing of it is executed.
"""

from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

from kernelpack.errors import BundleError

GROUP = "kernelpack.bundles"
"""The entry point group."""


def find() -> tuple[Path, ...]:
    """The bundles of every installed package of kernels, sorted; their PTX twins left out.

    Raises:
        BundleError: a package announces a bundle and holds none; says which.

    """
    found = {path for point in entry_points(group=GROUP) for path in _bundles_of(point)}
    return tuple(sorted(found))


def _bundles_of(point: EntryPoint) -> list[Path]:
    folders = _folders(point)
    paths = [path for folder in folders for path in Path(folder).glob("*.kpk")]
    bundles = [path for path in paths if not path.name.endswith(".ptx.kpk")]
    if not bundles:
        raise BundleError(
            f"the package `{point.value}` announces a bundle and holds none",
            where=f"entry point `{point.name}` of {GROUP}",
            hint="install the wheel of kernels again",
        )
    return bundles


def _folders(point: EntryPoint) -> list[str]:
    """The folders of a package; only of a top-level one, since finding others imports parents."""
    if "." in point.value or not point.value.isidentifier():
        return []
    spec = find_spec(point.value)
    return list(spec.submodule_search_locations or ()) if spec else []
