"""Bundles that were installed as packages: what a wheel of kernels announces, and nothing else.

A wheel of kernels is a package of data files. Its entry point in the group `kernelpack.bundles`
names that package; it is looked for where the wheel was installed, never imported and never
searched for on Python's path, so that no other folder of that name takes its place.
"""

from importlib.metadata import EntryPoint
from pathlib import Path

from kernelpack.errors import BundleError
from kernelpack.installed import announced

GROUP = "kernelpack.bundles"
"""The entry point group."""


def find() -> tuple[Path, ...]:
    """The bundles of every installed package of kernels, sorted; their PTX twins left out.

    Raises:
        BundleError: a package announces a bundle and holds none; says which.

    """
    found = {path for point in announced(GROUP) for path in _bundles_of(point)}
    return tuple(sorted(found))


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
