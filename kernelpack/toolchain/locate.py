"""Find a toolchain by name: in Python's wheels, or in a folder that the caller names."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kernelpack.errors import ToolchainError
from kernelpack.spec.artifact import digest
from kernelpack.spec.nearest import nearest
from kernelpack.toolchain.fit import wheels
from kernelpack.toolchain.releases import ASSEMBLER, RELEASES, Release
from kernelpack.toolchain.system import find_system
from kernelpack.toolchain.toolchain import FRONT_ENDS, Toolchain
from kernelpack.toolchain.wheels import Wheel

__all__ = ["NAMES", "Toolchain", "find"]

NAMES = (*RELEASES, "system")
"""The toolchains there are; the first is the default."""


def find(
    name: str = "cuda-13.4",
    front_end: str = "nvrtc",
    *,
    root: Path | None = None,
    site: Sequence[str] | None = None,
) -> Toolchain:
    """The toolchain of that name, with parts that belong together.

    Args:
        name: one of `NAMES`.
        front_end: one of `FRONT_ENDS`.
        root: for `system` alone, the toolkit's folder.
        site: for wheels, the folders to look in; the interpreter's own path if not given.

    Raises:
        ToolchainError: it is not one of these, not installed, or its parts are of two releases.

    """
    _known("toolchain", name, NAMES)
    _known("front end", front_end, FRONT_ENDS)
    if name != "system":
        return _from_wheels(name, RELEASES[name], front_end, wheels(RELEASES[name], site))
    if root is None:
        raise ToolchainError(
            "no CUDA toolkit is found for `system`",
            hint="set CUDA_HOME, or put a toolkit's own nvcc on PATH",
        )
    return find_system(root.resolve(), front_end)


def _known(what: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        raise ToolchainError(
            f"unknown {what} `{word}` (known: {', '.join(known)})", hint=nearest(word, known)
        )


def _from_wheels(
    name: str, release: Release, front_end: str, found: Mapping[str, Wheel]
) -> Toolchain:
    if front_end == "nvcc" and release.nvcc is None:
        raise ToolchainError(
            f"the wheels of {name} hold no nvcc program",
            where=name,
            hint="use the front end nvrtc, or the toolchain cuda-13.4",
        )
    base = found["nvcc"].root
    return Toolchain(
        name=name,
        front_end=front_end,
        release=release.version,
        nvrtc_library=base / release.nvrtc_library,
        nvcc=base / release.nvcc if release.nvcc else None,
        ptxas=base / release.ptxas,
        include_dirs=tuple(base / path for path in release.include_dirs),
        versions={wheel.name: wheel.version for wheel in found.values()},
        digest=_digest(found.values()),
        ptxas_digest=_digest(found[part] for part in ASSEMBLER),
    )


def _digest(found: Iterable[Wheel]) -> str:
    return digest("\n".join(f"{wheel.name} {wheel.digest}" for wheel in found))
