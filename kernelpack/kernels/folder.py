"""A kernel of one's own: a folder with its manifest, template and oracle, all called as it is.

rms_norm/rms_norm.yaml      what can be built, and how it is launched
rms_norm/rms_norm.cu.j2     the CUDA, for its manifest `rms_norm/rms_norm.cu.j2`
rms_norm/rms_norm.py        what it computes (`kernels.oracle`); `verify` and `run` need it
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kernelpack.errors import OracleError
from kernelpack.spec.nearest import nearest

STEM = re.compile(r"[a-z][a-z0-9_]{0,63}")
"""The pattern of kernel names in a manifest; also names of Python and of C."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder of one kernel."""

    path: Path

    @property
    def stem(self) -> str:
        """The kernel's name."""
        return self.path.name

    @property
    def manifest(self) -> Path:
        """Its manifest; a folder of a kernel has one."""
        return self.path / f"{self.stem}.yaml"

    @property
    def template(self) -> Path:
        """Its template."""
        return self.path / f"{self.stem}.cu.j2"

    @property
    def oracle(self) -> Path:
        """Its oracle."""
        return self.path / f"{self.stem}.py"

    @property
    def is_kernel(self) -> bool:
        """Whether it is a kernel's."""
        return self.manifest.is_file()


def of(manifest: Path) -> Folder | None:
    """The folder of a manifest that lies in its kernel's; None where it lies among others."""
    folder = Folder(_named(manifest.parent))
    return folder if folder.stem == manifest.stem else None


def folders(paths: Iterable[Path]) -> tuple[Folder, ...]:
    """The kernels in these folders: each is a kernel's, or holds some.

    Raises:
        OracleError: one is not a folder, or there is no kernel in it; or two kernels have one name.

    """
    found: dict[str, Folder] = {}
    for folder in (folder for path in paths for folder in _in(path)):
        other = found.setdefault(folder.stem, folder)
        if other.path.resolve() != folder.path.resolve():
            what = f"{other.path} has a kernel of this name too"
            hint = "name one of the two, or give one another name"
            raise OracleError(what, where=str(folder.path), hint=hint)
    return tuple(found.values())


def _in(path: Path) -> Iterator[Folder]:
    """The kernels of one path."""
    if not path.is_dir():
        raise OracleError("is not a folder", where=str(path), hint="name the folder of a kernel")
    itself = Folder(_named(path))
    inside = [Folder(each) for each in sorted(path.iterdir()) if each.is_dir()]
    held = [itself] if itself.is_kernel else [each for each in inside if each.is_kernel]
    if not held:
        raise OracleError("holds no kernel", where=str(path), hint=_expected(itself))
    yield from held


def _expected(folder: Folder) -> str:
    """The hint for a folder that has no kernel."""
    others = [each.name for each in folder.path.glob("*.y*ml")]
    near = nearest(folder.manifest.name, others)
    seen = f"{near} " if near else f"it has {', '.join(others)}; " if others else ""
    return f"{seen}a kernel's manifest is called as its folder: {folder.manifest}"


def _named(path: Path) -> Path:
    """The path with the folder's name at its end, which `.` has not."""
    return path if path.name not in ("", "..") else path.resolve()
