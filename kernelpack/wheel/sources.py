"""The wheel of the sources of kernels of one's own: what each computes, and what it is built from.

It is for those who verify or build: a package with a folder for each kernel, which entry points
announce by stem. Servers need the wheels of cubins alone.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelpack.bundle.format import MAJOR
from kernelpack.bundle.reader import Bundle
from kernelpack.errors import BundleError, OracleError
from kernelpack.kernels.folder import Folder
from kernelpack.spec.artifact import digest
from kernelpack.spec.nearest import nearest
from kernelpack.wheel.metadata import Metadata, package
from kernelpack.wheel.releases import requirement

_TEMPLATES = "*.j2"
_SOURCES = (_TEMPLATES, "*.cuh", "*.h", "*.hpp")
_PACKAGE = b'"""Kernels, announced by entry points of the group `kernelpack.kernels`."""\n'


def sources(
    bundle: Bundle, kernels: Sequence[Folder], project: str, version: str
) -> tuple[Metadata, Mapping[str, bytes]]:
    """The metadata and the files of the wheel.

    Raises:
        BundleError: the bundle holds no such kernel, or was built from other sources.
        OracleError: a kernel has no oracle.

    """
    name = f"{project}-kernels"
    stems = [kernel.stem for kernel in kernels]
    held = {stem: tuple(sorted({v.abi for v in bundle.variants(stem)})) for stem in bundle.kernels}
    files = {f"{package(name)}/__init__.py": _PACKAGE}
    for kernel in kernels:
        _check(bundle, kernel)
        for path in _files(kernel):
            inside = path.relative_to(kernel.path).as_posix()
            files[f"{package(name)}/{kernel.stem}/{inside}"] = path.read_bytes()
        files[f"{package(name)}/{kernel.stem}/__init__.py"] = _PACKAGE
    metadata = Metadata(
        name=name,
        version=version,
        summary=f"What is computed by {', '.join(stems)}, and the sources of it",
        requires=requirement(MAJOR, held),
        kernels=tuple(stems),
    )
    return metadata, files


def _files(kernel: Folder) -> list[Path]:
    """A wheel's files of a kernel: manifest, oracle, templates and headers."""
    found = (path for pattern in _SOURCES for path in sorted(kernel.path.rglob(pattern)))
    return [kernel.manifest, kernel.oracle, *found]


def _check(bundle: Bundle, kernel: Folder) -> None:
    """Refuse a kernel that the bundle was not built from."""
    if kernel.stem not in bundle.kernels:
        hint = nearest(kernel.stem, bundle.kernels) or f"it holds {', '.join(bundle.kernels)}"
        raise BundleError(f"holds no `{kernel.stem}`", where=bundle.where, hint=hint)
    if not kernel.oracle.is_file():
        what, hint = "there is no oracle", "without one nobody can verify the kernel"
        raise OracleError(what, where=str(kernel.oracle), hint=hint)
    known = bundle.provenance.sources
    built = {f"manifests/{kernel.manifest.name}": kernel.manifest}
    built |= {f"templates/{kernel.stem}/{p.name}": p for p in kernel.path.glob(_TEMPLATES)}
    for name, path in built.items():
        if known.get(name, digest(path.read_bytes())) != digest(path.read_bytes()):
            what = f"is not what {bundle.where} was built from"
            raise BundleError(what, where=str(path), hint="build the bundle again")
