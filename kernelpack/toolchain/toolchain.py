"""`Toolchain`: the compilers of one CUDA release, as found on this machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

FRONT_ENDS = ("nvrtc", "nvcc")
"""Who turns CUDA into PTX: the library (fast), or the program (the reference; needs a host g++)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """The compilers of one CUDA release.

    Attributes:
        name: `cuda-13.4`, `cuda-12.9` or `system`.
        front_end: one of `FRONT_ENDS`.
        release: CUDA's release, `major.minor`.
        nvrtc_library: the NVRTC shared library; a `system` with the nvcc front end may lack it.
        nvcc: the nvcc program, where the release has one.
        ptxas: the assembler.
        include_dirs: where the toolkit's headers are, in search order.
        versions: each part and its version, for people and for provenance.
        digest: SHA-256 of what decides the PTX: the front end's binaries and the header tree.
        ptxas_digest: SHA-256 of what decides the machine code: the assembler.

    """

    name: str
    front_end: str
    release: str
    nvrtc_library: Path | None
    nvcc: Path | None
    ptxas: Path
    include_dirs: tuple[Path, ...]
    versions: Mapping[str, str] = field(hash=False)
    digest: str
    ptxas_digest: str

    def __str__(self) -> str:
        return f"{self.name} ({self.front_end})"

    @property
    def version(self) -> tuple[int, int]:
        """The release as numbers, to compare."""
        major, minor = self.release.split(".")[:2]
        return int(major), int(minor)
