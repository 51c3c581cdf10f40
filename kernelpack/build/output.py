"""Where a bundle may go: asked before anything is compiled, so that nothing else is overwritten."""

from collections.abc import Sequence
from pathlib import Path

from kernelpack.bundle.format import MAGIC
from kernelpack.bundle.reader import twin_of
from kernelpack.errors import BundleError, ManifestError

SUFFIX = ".kpk"
TWIN_SUFFIX = ".ptx.kpk"


def check_output(output: Path) -> None:
    """Refuse an output that would replace something other than an earlier bundle.

    Raises:
        BundleError: the output has another suffix than a bundle's; or it, or its PTX twin, is a
            device, a folder, an input, or another file.

    """
    if output.name.endswith(TWIN_SUFFIX):
        what = "is the name of a bundle's PTX, which is written beside it"
        raise BundleError(what, where=str(output), hint="give a name like `X.kpk`")
    for path in (output, twin_of(output)):
        _check(path)
    if output.suffix != SUFFIX:
        what = f"does not end in `{SUFFIX}` as a bundle's name does"
        raise BundleError(what, where=str(output), hint=f"give `{output}{SUFFIX}`")


def check_names(manifests: Sequence[Path]) -> None:
    """Refuse two manifests of one name: a bundle's provenance knows each by its name.

    Raises:
        ManifestError: says which one comes twice.

    """
    seen: dict[str, Path] = {}
    for path in manifests:
        if path.name in seen:
            what = f"has the name of {seen[path.name]}"
            hint = "name each manifest once, by a file name of its own"
            raise ManifestError(what, where=str(path), hint=hint)
        seen[path.name] = path


def _check(path: Path) -> None:
    if not path.exists():
        return
    if not path.is_file():
        what = "is there and is not a file; it would be replaced"
        raise BundleError(what, where=str(path), hint="give the path of a `.kpk` file")
    with path.open("rb") as file:
        head = file.read(len(MAGIC))
    if head and head != MAGIC:
        what = "is there and is not a bundle; it would be overwritten"
        raise BundleError(what, where=str(path), hint="give another path, or remove the file")
