"""Wheels as pip installed them: version, requirements, and the record of their files."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path

from kernelpack.errors import ToolchainError
from kernelpack.spec.artifact import digest
from kernelpack.toolchain.releases import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """One installed wheel: its part, version, metadata file, and files with size and digest."""

    part: str
    name: str
    version: str
    root: Path
    record: tuple[tuple[str, str, int], ...]
    """`(path under root, sha256 as the wheel writes it, bytes)`, without the metadata's own."""

    @property
    def minor(self) -> str:
        """`major.minor` of the version."""
        return ".".join(self.version.split(".")[:2])

    @property
    def metadata(self) -> Path:
        """The file that has the version."""
        return self.root / f"{self.name.replace('-', '_')}-{self.version}.dist-info" / "METADATA"

    @property
    def digest(self) -> str:
        """SHA-256 over the paths and digests of its files, as recorded when it was installed."""
        return digest("\n".join(f"{path} {sha}" for path, sha, _ in sorted(self.record)))


def read_wheel(part: str, name: str, release: Release, site: Sequence[str] | None) -> Wheel:
    """The installed wheel that holds a part of a release.

    Raises:
        ToolchainError: it is not installed, or has no record of its files.

    """
    installed = distribution(name, site)
    record = installed and installed.read_text("RECORD")
    if installed is None or not record:
        state = "is not installed" if installed is None else "has no RECORD of its files"
        raise ToolchainError(
            f"the wheel {name} {state}", where=f"cuda-{release.version}", hint=release.install
        )
    return Wheel(
        part=part,
        name=name,
        version=installed.version,
        root=Path(str(installed.locate_file(""))),
        record=tuple(_files(record)),
    )


def distribution(name: str, site: Sequence[str] | None) -> Distribution | None:
    """The installed wheel of that name in the folders of `site`, or on the interpreter's path."""
    found = distributions(name=name) if site is None else distributions(name=name, path=list(site))
    return next(iter(found), None)


def _files(record: str) -> Iterator[tuple[str, str, int]]:
    """The files of a RECORD that a compiler may read: not its metadata, not Python's caches."""
    for path, sha, size in csv.reader(record.splitlines()):
        if sha and ".dist-info/" not in path and not path.endswith((".py", ".pyc")):
            yield path, sha, int(size)
