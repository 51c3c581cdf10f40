"""The rules of targets and families: each target has a block, and each block a target."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from kernelpack.errors import ManifestError
from kernelpack.manifest.model import Manifest
from kernelpack.manifest.reader import Location


def check_blocks(manifest: Manifest) -> None:
    """Check targets, blocks, and what says `for`; ManifestError otherwise."""
    for index, target in enumerate(manifest.targets):
        at: Location = ("targets", index)
        if target in manifest.targets[:index]:
            raise _error(manifest, at, f"target `{target}` is given twice")
        if target.family not in manifest.families:
            what = f"target `{target}` is of the family {target.family}, which has no block"
            hint = f"add `{target.family}:` with its `template` under `for`"
            raise _error(manifest, at, what, hint)
    _check_families(manifest)
    for family, block in manifest.families.items():
        path = PurePosixPath(block.template)
        if path.is_absolute() or ".." in path.parts:
            what = f"`{block.template}` leaves the folder of templates"
            hint = "give its path below that folder"
            raise _error(manifest, ("for", family, "template"), what, hint)


def _check_families(manifest: Manifest) -> None:
    """A block, or a parameter, of a family that nothing is built for would never be checked."""
    built = {target.family for target in manifest.targets}
    for at, family in _named(manifest):
        if family not in built:
            what = f"no target of this manifest is of the family {family}"
            raise _error(manifest, at, what, "remove it, or add such a target", key=at[0] == "for")


def _named(manifest: Manifest) -> Iterator[tuple[Location, str]]:
    """The families that a manifest speaks of, and where."""
    for family in manifest.families:
        yield ("for", family), family
    for name, argument in manifest.arguments.items():
        if argument.family:
            yield ("arguments", name, "for"), argument.family
    for index, param in enumerate(manifest.params):
        if param.family:
            yield ("params", index, "for"), param.family


def _error(
    manifest: Manifest, at: Location, what: str, hint: str = "", *, key: bool = False
) -> ManifestError:
    return ManifestError(what, where=manifest.at(*at, key=key), hint=hint)
