"""The arguments of `kernelpack verify`: bundles, manifests, folders, names of kernels."""

from collections.abc import Sequence
from pathlib import Path

from kernelpack.bundle.reader import open_entries
from kernelpack.cli import choices, settings
from kernelpack.cli.builder import needs_builder
from kernelpack.errors import BundleError, KernelpackError
from kernelpack.kernels.registry import KERNELS
from kernelpack.load.load import installed
from kernelpack.verify.verify import Options

MANIFESTS = (".yaml", ".yml")


def bundles(what: tuple[Path, ...], asked: Options, templates: Path | None) -> list[Path]:
    """The bundles named, and one made of the manifests named.

    Raises:
        KernelpackError: kernels are named among files, no installed bundle holds one, or a variant
            of a manifest does not build.

    """
    manifests = tuple(path for path in what if path.suffix in MANIFESTS or path.is_dir())
    stems = _stems(what)
    found = [path for path in what if path not in manifests and str(path) not in stems]
    if stems and (found or manifests):
        raise KernelpackError(f"`{stems[0]}` is a kernel, among files", hint="name it alone")
    found += _installed(stems)
    if manifests or not what:
        paths = choices.manifest_paths(manifests, asked.kernels)
        with needs_builder("verify MANIFEST"):
            from kernelpack.cli.built import built  # noqa: PLC0415 - a bundle needs no builder
        found.append(built(paths, asked, choices.templates_for(templates, paths)))
    return found


def of_kernels(what: Sequence[Path], keep: str) -> str:
    """The choice of variants, of the kernels named alone if there are any."""
    words = " or ".join(f"{stem}[" for stem in _stems(what))
    return f"({words}) and ({keep})" if words and keep else words or keep


def template_folders(
    what: Sequence[Path], templates: Path | None, kernels: Sequence[Path]
) -> tuple[Path, ...]:
    """Where the templates may lie that bundles were made of: those at hand, named or known."""
    manifests = [path for path in what if path.suffix in MANIFESTS]
    beside = [folder.parent for folder in kernels]
    return (choices.templates_for(templates, manifests), settings.sources() / "templates", *beside)


def _stems(what: Sequence[Path]) -> list[str]:
    """The names of installed kernels, which are not files."""
    return [str(path) for path in what if not path.exists() and str(path) in KERNELS]


def _installed(stems: Sequence[str]) -> list[Path]:
    """The installed bundles that hold these kernels.

    Raises:
        BundleError: there is none of one.

    """
    opened = [open_entries(path) for path in installed()] if stems else []
    for stem in stems:
        if not any(stem in bundle.kernels for bundle in opened):
            hint = "install a wheel of it, or name a bundle or a manifest"
            raise BundleError("no installed bundle holds it", where=f"kernel `{stem}`", hint=hint)
    return [bundle.path for bundle in opened if {*stems} & {*bundle.kernels}]
